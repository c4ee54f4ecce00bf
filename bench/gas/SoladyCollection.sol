// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC721} from "solady/src/tokens/ERC721.sol";
import {ECDSA} from "solady/src/utils/ECDSA.sol";
import {EIP712} from "solady/src/utils/EIP712.sol";
import {ServiceRules} from "./ServiceRules.sol";

/// @title Solady ERC-721 with chip (40 bits) and nonce (48 bits) in the extra data beside the owner.
contract SoladyCollection is ERC721, EIP712, ServiceRules {
    uint256 private _issued;
    string private _name;
    string private _symbol;

    constructor(string memory name_, string memory symbol_, address operator, address firstAuthorizer)
        ServiceRules(operator, firstAuthorizer)
    {
        _name = name_;
        _symbol = symbol_;
    }

    function issue(uint40[] calldata chips) external onlyOperator {
        uint256 serial = _issued;
        for (uint256 i; i < chips.length; ++i) {
            _mintAndSetExtraDataUnchecked(address(this), ++serial, chips[i]);
            emit ChipSet(serial, chips[i]);
        }
        _issued = serial;
    }

    function replaceChip(uint256 serial, uint40 previousChip, uint40 chip) external onlyOperator {
        if (ownerOf(serial) != address(this)) revert AlreadyClaimed();
        uint96 extra = _getExtraData(serial);
        if (uint40(extra) != previousChip) revert ChipMismatch();
        _setExtraData(serial, extra ^ previousChip ^ chip);
        emit ChipSet(serial, chip);
    }

    function transferWithAuthorization(uint256 serial, address to, uint256 deadline, bytes calldata signature)
        external
    {
        if (ownerOf(serial) != msg.sender) revert NotOwner();
        if (block.timestamp > deadline) revert Expired();
        uint96 extra = _getExtraData(serial);
        bytes32 digest =
            _hashTypedData(keccak256(abi.encode(TRANSFER_TYPE, serial, msg.sender, to, extra >> 40, deadline)));
        if (ECDSA.recoverCalldata(digest, signature) != authorizer) revert InvalidAuthorization();
        emit AuthorizationUsed(serial, digest);
        _setExtraData(serial, extra + (1 << 40));
        _transfer(msg.sender, to, serial);
    }

    function chipOf(uint256 serial) external view returns (uint40) {
        return uint40(_getExtraData(serial));
    }

    function name() public view override returns (string memory) {
        return _name;
    }

    function symbol() public view override returns (string memory) {
        return _symbol;
    }

    function tokenURI(uint256) public pure override returns (string memory) {
        return "";
    }

    function approve(address, uint256) public payable override {
        revert TransfersLocked();
    }

    function setApprovalForAll(address, bool) public pure override {
        revert TransfersLocked();
    }

    function transferFrom(address, address, uint256) public payable override {
        revert TransfersLocked();
    }

    function _claim(uint256 serial, address recipient) internal override {
        if (ownerOf(serial) != address(this)) revert AlreadyClaimed();
        _transfer(address(this), recipient, serial);
    }

    function _domainNameAndVersion() internal pure override returns (string memory, string memory) {
        return ("service-api", "1");
    }
}
