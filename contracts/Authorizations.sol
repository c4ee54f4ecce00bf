// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ServiceSettings} from "./ServiceSettings.sol";

/// @title EIP-712 authorizations that the service signs so that people can claim and transfer by themselves.
/// @notice An authorizer is a key, or a contract that verifies signatures itself (ERC-1271). Signatures of the previous
/// authorizer may stay valid until a set time, so that a rotation does not break authorizations already given out.
abstract contract Authorizations is ServiceSettings {
    /// @notice `authorization` is the EIP-712 digest that the authorizer signed.
    event AuthorizationUsed(uint256 indexed serial, bytes32 indexed authorization);

    error AuthorizationExpired(uint256 deadline, uint256 timestamp);
    /// @notice Not an authorizer's signature over these values and the token's current nonce; used ones fail too.
    error InvalidAuthorization(uint256 serial, uint256 nonce);
    error AuthorizationsPaused();

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant DOMAIN_NAME = keccak256("service-api");
    bytes32 private constant DOMAIN_VERSION = keccak256("1");
    bytes32 private constant CLAIM_TYPE =
        keccak256("Claim(uint256 serial,address recipient,uint256 nonce,uint256 deadline)");
    bytes32 private constant TRANSFER_TYPE =
        keccak256("Transfer(uint256 serial,address from,address to,uint256 nonce,uint256 deadline)");
    uint256 private constant HALF_CURVE_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
    bytes4 private constant IS_VALID_SIGNATURE = 0x1626ba7e;

    /// @dev `deadline` is in Unix seconds, inclusive.
    function _useClaim(
        uint256 serial,
        address recipient,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) internal {
        bytes32 content = keccak256(abi.encode(CLAIM_TYPE, serial, recipient, nonce, deadline));
        if (block.timestamp > deadline) revert AuthorizationExpired(deadline, block.timestamp);
        _use(serial, nonce, content, signature);
    }

    function _useTransfer(
        uint256 serial,
        address to,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) internal {
        // Only the owner can submit it.
        bytes32 content = keccak256(abi.encode(TRANSFER_TYPE, serial, msg.sender, to, nonce, deadline));
        if (block.timestamp > deadline) revert AuthorizationExpired(deadline, block.timestamp);
        _use(serial, nonce, content, signature);
    }

    /// @notice ERC-5267: the EIP-712 domain of the authorizations.
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory domainName,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (0x0f, "service-api", "1", block.chainid, address(this), 0, new uint256[](0));
    }

    function _use(uint256 serial, uint256 nonce, bytes32 content, bytes calldata signature) private {
        bytes32 domain =
            keccak256(abi.encode(DOMAIN_TYPE, DOMAIN_NAME, DOMAIN_VERSION, block.chainid, address(this)));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", domain, content));
        uint256 word = rulesWord();
        if (word >> PAUSED_SHIFT != 0) revert AuthorizationsPaused();
        address signer = _signer(digest, signature);
        if (!_isBy(address(uint160(word)), signer, digest, signature)) {
            PreviousAuthorizer memory previous = previousAuthorizer();
            if (block.timestamp > previous.until || !_isBy(previous.account, signer, digest, signature)) {
                revert InvalidAuthorization(serial, nonce);
            }
        }
        emit AuthorizationUsed(serial, digest);
    }

    /// @dev Checks the recovered key first: the usual case, for which the account's code need not be read.
    function _isBy(address authorizer, address signer, bytes32 digest, bytes calldata signature)
        private
        view
        returns (bool isBy)
    {
        if (authorizer == address(0)) return false;
        if (authorizer == signer) return true;
        if (authorizer.code.length == 0) return false;
        bytes memory question = abi.encodeWithSelector(IS_VALID_SIGNATURE, digest, signature);
        bytes32 yes = bytes32(IS_VALID_SIGNATURE);
        // In assembly, so that only the first word of the returned data is copied, however much there is.
        assembly ("memory-safe") {
            mstore(0, 0)
            let answered := staticcall(gas(), authorizer, add(question, 32), mload(question), 0, 32)
            isBy := and(and(answered, gt(returndatasize(), 31)), eq(mload(0), yes))
        }
    }

    /// @dev Recovers the signer. Returns zero for anything but the canonical form of a signature: 65 bytes, low s.
    function _signer(bytes32 digest, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > HALF_CURVE_ORDER) return address(0);
        return ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
    }
}
