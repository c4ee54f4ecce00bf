// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ServiceSettings} from "./ServiceSettings.sol";

/// @title What a collection shows of itself: name, symbol, and the URLs of its metadata.
abstract contract Presentation is ServiceSettings {
    event MetadataUpdate(uint256 tokenId);
    event BatchMetadataUpdate(uint256 fromTokenId, uint256 toTokenId);
    event ContractURIUpdated();

    /// @dev One byte for the symbol's size, the symbol, and the name. For most collections this fits into one slot.
    bytes private _label;

    /// @notice Sets the name and symbol of a new clone. Called by the factory, once.
    function setLabel(bytes calldata label) external {
        _requireFactory();
        _label = label;
    }

    /// @notice ERC-721: the collection's name.
    function name() external view returns (string memory) {
        bytes memory label = _label;
        if (label.length == 0) return "";
        return _part(label, 1 + uint256(uint8(label[0])), label.length);
    }

    /// @notice ERC-721: the collection's symbol.
    function symbol() external view returns (string memory) {
        bytes memory label = _label;
        if (label.length == 0) return "";
        return _part(label, 1, 1 + uint256(uint8(label[0])));
    }

    /// @notice ERC-7572: the URL of the collection's metadata; empty while no base is set.
    function contractURI() public view returns (string memory) {
        string memory base = baseURI();
        if (bytes(base).length == 0) return "";
        return string.concat(base, "/", _decimal(block.chainid), "/", _lowerCase(address(this)));
    }

    /// @dev The URL of a token's metadata; empty while no base is set.
    function _tokenURI(uint256 serial) internal view returns (string memory) {
        string memory uri = contractURI();
        return bytes(uri).length == 0 ? "" : string.concat(uri, "/", _decimal(serial));
    }

    /// @dev Asks marketplaces and indexers to read the metadata of these tokens and of the collection again.
    function _announceMetadata(uint256 from, uint256 to) internal {
        if (from == to) emit MetadataUpdate(from);
        else if (from < to) emit BatchMetadataUpdate(from, to);
        emit ContractURIUpdated();
    }

    function _part(bytes memory label, uint256 start, uint256 end) private pure returns (string memory part) {
        uint256 size = end - start;
        part = new string(size);
        assembly ("memory-safe") {
            mcopy(add(part, 32), add(add(label, 32), start), size)
        }
    }

    function _decimal(uint256 value) private pure returns (string memory text) {
        uint256 size = 1;
        for (uint256 rest = value / 10; rest != 0; rest /= 10) {
            ++size;
        }
        text = new string(size);
        for (uint256 index = size; index != 0; value /= 10) {
            bytes(text)[--index] = bytes1(uint8(48 + value % 10));
        }
    }

    function _lowerCase(address account) private pure returns (string memory text) {
        bytes16 digits = "0123456789abcdef";
        text = "0x0000000000000000000000000000000000000000";
        uint256 value = uint160(account);
        for (uint256 index = 42; index != 2; value >>= 4) {
            bytes(text)[--index] = digits[value & 15];
        }
    }
}
