// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The settings shared by all collections of a service: roles of keys, authorizers, release, base of metadata
/// URLs.
/// @notice The values are in the storage of the implementation, not of the factory: a clone's call has already paid for
/// accessing the implementation, so reading there is 2,500 gas cheaper. Every clone returns the same values. Only the
/// factory, which holds the admin's rules, can change them.
abstract contract ServiceSettings {
    error NotFactory(address caller);

    /// @dev One word, from the low bit in this order. `paused` duplicates the bit of the keys, for authorizations.
    struct Rules {
        address authorizer;
        uint40 releaseAt;
        bool paused;
    }

    struct PreviousAuthorizer {
        address account;
        uint40 until;
    }

    /// @dev The position of `paused` in the word of the rules.
    uint256 internal constant PAUSED_SHIFT = 200;

    address internal immutable IMPLEMENTATION = address(this);
    address internal immutable FACTORY = msg.sender;

    mapping(address account => uint256) private _roles;
    Rules private _rules;
    PreviousAuthorizer private _previous;
    string private _baseURI;

    /// @notice The factory that deploys the collections and changes their shared settings.
    function factory() external view returns (address) {
        return FACTORY;
    }

    /// @notice The roles of `account`, as bits of Roles.sol; plus 128 while the service is paused.
    function roles(address account) public view returns (uint256) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).roles(account);
        return _roles[account];
    }

    /// @notice The account whose EIP-712 signatures authorize claims and transfers (zero: none), when plain transfers
    /// become possible in Unix seconds (zero: not announced), and whether keys and authorizers are paused.
    function rules() public view returns (Rules memory) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).rules();
        return _rules;
    }

    /// @notice The rules in one word, as stored, which an authorization reads once.
    function rulesWord() public view returns (uint256 word) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).rulesWord();
        assembly ("memory-safe") {
            word := sload(_rules.slot)
        }
    }

    /// @notice The previous authorizer, and until when its signatures are valid, in Unix seconds, inclusive.
    function previousAuthorizer() public view returns (PreviousAuthorizer memory) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).previousAuthorizer();
        return _previous;
    }

    /// @notice The base of metadata URLs; empty while none is set.
    function baseURI() public view returns (string memory) {
        if (_isClone()) return ServiceSettings(IMPLEMENTATION).baseURI();
        return _baseURI;
    }

    /// @notice Whether the service has ended and plain ERC-721 transfers are possible.
    function released() public view returns (bool) {
        uint256 time = rules().releaseAt;
        return time != 0 && block.timestamp >= time;
    }

    /// @notice Sets the roles of a key. Called by the factory on the implementation.
    function setRoles(address account, uint256 bits) external {
        _requireFactory();
        _roles[account] = bits;
    }

    /// @notice Sets the rules. Called by the factory on the implementation.
    function setRules(Rules calldata changed) external {
        _requireFactory();
        _rules = changed;
    }

    /// @notice Sets the previous authorizer. Called by the factory on the implementation.
    function setPreviousAuthorizer(PreviousAuthorizer calldata changed) external {
        _requireFactory();
        _previous = changed;
    }

    /// @notice Sets the base of metadata URLs. Called by the factory on the implementation.
    function setBaseURI(string calldata base) external {
        _requireFactory();
        _baseURI = base;
    }

    function _isClone() internal view returns (bool) {
        return address(this) != IMPLEMENTATION;
    }

    function _requireFactory() internal view {
        if (msg.sender != FACTORY) revert NotFactory(msg.sender);
    }
}
