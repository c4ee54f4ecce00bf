// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title What the compared collections share, so that they differ in their tokens only.
abstract contract ServiceRules {
    event ChipSet(uint256 indexed serial, uint40 chip);
    event AuthorizationUsed(uint256 indexed serial, bytes32 indexed authorization);

    error NotOperator();
    error NotOwner();
    error AlreadyClaimed();
    error ChipMismatch();
    error Expired();
    error InvalidAuthorization();
    error TransfersLocked();

    bytes32 internal constant TRANSFER_TYPE =
        keccak256("Transfer(uint256 serial,address from,address to,uint256 nonce,uint256 deadline)");

    mapping(address account => bool) private _operators;
    address internal authorizer;

    modifier onlyOperator() {
        if (!_operators[msg.sender]) revert NotOperator();
        _;
    }

    constructor(address operator, address firstAuthorizer) {
        _operators[operator] = true;
        authorizer = firstAuthorizer;
    }

    function claim(uint256 serial, address recipient) external onlyOperator {
        _claim(serial, recipient);
    }

    function claimBatch(uint256[] calldata serials, address[] calldata recipients) external onlyOperator {
        for (uint256 i; i < serials.length; ++i) {
            _claim(serials[i], recipients[i]);
        }
    }

    function _claim(uint256 serial, address recipient) internal virtual;
}
