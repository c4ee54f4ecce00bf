// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title What all collections of one service share: operators, authorizer, release.
/// @notice The values live in the storage of the implementation, not of the factory: a clone's call has already
/// paid for touching the implementation, so asking there is 2,500 gas cheaper. Every clone gives the same answers.
/// Only the factory, where the admin's rules are, can change them.
abstract contract ServiceSettings {
    error NotFactory(address caller);

    address internal immutable IMPLEMENTATION = address(this);
    address internal immutable FACTORY = msg.sender;

    mapping(address account => bool) private _operators;
    address private _authorizer;
    bool private _released;

    /// @notice The factory that deploys the collections and changes their shared settings.
    function factory() external view returns (address) {
        return FACTORY;
    }

    /// @notice Whether `account` may issue, claim for others and replace chips.
    function isOperator(address account) public view returns (bool) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).isOperator(account);
        return _operators[account];
    }

    /// @notice The account whose EIP-712 signatures authorize claims and transfers. Zero: nobody's do.
    function authorizer() public view returns (address) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).authorizer();
        return _authorizer;
    }

    /// @notice Whether the service has ended and plain ERC-721 transfers are free.
    function released() public view returns (bool) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).released();
        return _released;
    }

    /// @notice Allows or stops an operator. Called by the factory on the implementation.
    function setOperator(address account, bool allowed) external {
        _requireFactory();
        _operators[account] = allowed;
    }

    /// @notice Names the authorizer. Called by the factory on the implementation.
    function setAuthorizer(address account) external {
        _requireFactory();
        _authorizer = account;
    }

    /// @notice Frees plain transfers, for good. Called by the factory on the implementation.
    function release() external {
        _requireFactory();
        _released = true;
    }

    function _isClone() internal view returns (bool) {
        return address(this) != IMPLEMENTATION;
    }

    function _requireFactory() private view {
        if (msg.sender != FACTORY) revert NotFactory(msg.sender);
    }
}
