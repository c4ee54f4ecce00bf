// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ALL_ROLES, DEPLOY, PAUSED, NotAllowed, allows} from "./Roles.sol";
import {ServiceCollection} from "./ServiceCollection.sol";
import {ServiceSettings} from "./ServiceSettings.sol";

/// @title Deploys the collections of a service and holds the rules of its admin.
/// @notice The admin grants roles to keys, sets authorizers and the base of metadata URLs, and can announce the
/// service's release. A guardian can only stop things: pause the service, and cancel a release before its time.
contract ServiceFactory {
    event CollectionDeployed(address indexed collection, bytes32 indexed salt, string name, string symbol);
    event RolesSet(address indexed account, uint256 roles);
    event AuthorizerSet(address indexed authorizer, address indexed previous, uint256 previousUntil);
    event GuardianSet(address indexed guardian);
    event AdminTransferStarted(address indexed admin, address indexed pendingAdmin);
    event AdminTransferred(address indexed previousAdmin, address indexed admin);
    event Paused(address indexed by);
    event Resumed();
    /// @notice From `time` (Unix seconds) on, all collections allow plain ERC-721 transfers, unless it is cancelled.
    event ReleaseAnnounced(uint256 time);
    event ReleaseCancelled(address indexed by);
    event BaseURISet(string base);
    event BaseURIFrozen(string base);

    error NotAdmin(address caller);
    error NotPendingAdmin(address caller);
    error NotGuardian(address caller);
    error ZeroAddress();
    error NameTooLong(uint256 size);
    error DeploymentFailed(bytes32 salt);
    error UnknownRoles(uint256 roles);
    error TooManyKeys(uint256 maximum);
    error OverlapTooLong(uint256 until, uint256 latest);
    error AlreadyReleased(uint256 time);
    error BaseIsFrozen();
    error BaseIsEmpty();

    struct Grant {
        address account;
        uint256 roles;
    }

    /// @notice How long in advance a release is announced.
    uint256 public constant RELEASE_DELAY = 7 days;
    /// @notice How long the previous authorizer's signatures can stay valid.
    uint256 public constant MAX_OVERLAP = 7 days;
    /// @notice The most keys with roles at a time: a pause loops over all of them.
    uint256 public constant MAX_KEYS = 32;
    /// @notice The maximum size of a collection's name in bytes; that of a symbol is 255.
    uint256 public constant MAX_NAME = 4096;

    /// @notice The code that all collections run, whose storage holds their shared settings.
    address public immutable implementation;

    /// @notice The account that changes the settings and can announce the release.
    address public admin;

    /// @notice The account that can become admin by accepting. Zero: none.
    address public pendingAdmin;

    /// @notice The account that can pause, and cancel a release, besides the admin. Zero: none.
    address public guardian;

    /// @notice Whether the base of metadata URLs can no longer change.
    bool public baseURIFrozen;

    address[] private _keys;

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
        _;
    }

    modifier onlyGuardian() {
        if (msg.sender != guardian && msg.sender != admin) revert NotGuardian(msg.sender);
        _;
    }

    constructor(
        address firstAdmin,
        address firstGuardian,
        address firstAuthorizer,
        Grant[] memory grants,
        string memory base
    ) {
        if (firstAdmin == address(0)) revert ZeroAddress();
        // Must be the first contract that this one creates: the service computes its address.
        implementation = address(new ServiceCollection());
        admin = firstAdmin;
        emit AdminTransferred(address(0), firstAdmin);
        guardian = firstGuardian;
        emit GuardianSet(firstGuardian);
        _setAuthorizer(firstAuthorizer, 0);
        for (uint256 i; i < grants.length; ++i) {
            _setRoles(grants[i].account, grants[i].roles);
        }
        if (bytes(base).length != 0) _setBaseURI(base);
    }

    /// @notice The generation of these contracts. Factories of the first generation do not have this function.
    function generation() external pure returns (uint256) {
        return 2;
    }

    /// @notice Deploys a collection, to an address that depends on all three values. No effect if it is already
    /// deployed. Requires the role to deploy.
    function deploy(bytes32 salt, string calldata name, string calldata symbol) external returns (address collection) {
        if (!allows(roles(msg.sender), DEPLOY)) revert NotAllowed(msg.sender, DEPLOY);
        (uint256 nameSize, uint256 symbolSize) = (bytes(name).length, bytes(symbol).length);
        if (nameSize > MAX_NAME) revert NameTooLong(nameSize);
        if (symbolSize > type(uint8).max) revert NameTooLong(symbolSize);
        bytes memory code = _creationCode();
        bytes32 ownSalt = _saltOf(salt, name, symbol);
        collection = _addressOf(ownSalt, code);
        if (collection.code.length != 0) return collection;
        address deployed;
        assembly ("memory-safe") {
            deployed := create2(0, add(code, 32), mload(code), ownSalt)
        }
        if (deployed == address(0)) revert DeploymentFailed(salt);
        ServiceCollection(deployed).setLabel(abi.encodePacked(uint8(symbolSize), symbol, name));
        emit CollectionDeployed(collection, salt, name, symbol);
    }

    /// @notice The address of a collection, deployed or not.
    function addressOf(bytes32 salt, string calldata name, string calldata symbol) external view returns (address) {
        return _addressOf(_saltOf(salt, name, symbol), _creationCode());
    }

    /// @notice The roles of `account`: 1 issue, 2 claim, 4 replace chips, 8 deploy; plus 128 while paused.
    function roles(address account) public view returns (uint256) {
        return _settings().roles(account);
    }

    /// @notice All keys that have a role.
    function keys() external view returns (address[] memory) {
        return _keys;
    }

    /// @notice The account whose EIP-712 signatures authorize claims and transfers. Zero: none.
    function authorizer() external view returns (address) {
        return _settings().rules().authorizer;
    }

    /// @notice The previous authorizer, and until when its signatures are valid, in Unix seconds, inclusive.
    function previousAuthorizer() external view returns (address account, uint256 until) {
        ServiceSettings.PreviousAuthorizer memory previous = _settings().previousAuthorizer();
        return (previous.account, previous.until);
    }

    /// @notice Whether keys and authorizers are paused.
    function paused() external view returns (bool) {
        return _settings().rules().paused;
    }

    /// @notice When plain ERC-721 transfers become possible, in Unix seconds. Zero: no release is announced.
    function releaseAt() external view returns (uint256) {
        return _settings().rules().releaseAt;
    }

    /// @notice Whether the service has ended and plain ERC-721 transfers are possible.
    function released() external view returns (bool) {
        return _settings().released();
    }

    /// @notice The base of metadata URLs; empty while none is set.
    function baseURI() external view returns (string memory) {
        return _settings().baseURI();
    }

    /// @notice Gives `account` exactly these roles; 0 revokes all. Admin only.
    function setRoles(address account, uint256 granted) external onlyAdmin {
        _setRoles(account, granted);
    }

    /// @notice Sets the authorizer; zero for none. Signatures of the current one stay valid until `previousUntil`, in
    /// Unix seconds, at most seven days from now; 0 ends them at once. Those of the previous one end at once, unless
    /// the current one is set again, which only moves that end. Admin only.
    function setAuthorizer(address account, uint256 previousUntil) external onlyAdmin {
        _setAuthorizer(account, previousUntil);
    }

    /// @notice Sets the guardian; zero for none. Admin only.
    function setGuardian(address account) external onlyAdmin {
        guardian = account;
        emit GuardianSet(account);
    }

    /// @notice Invites `account` to become admin; zero withdraws the invitation. Admin only.
    function transferAdmin(address account) external onlyAdmin {
        pendingAdmin = account;
        emit AdminTransferStarted(msg.sender, account);
    }

    /// @notice Makes the caller, who must be the pending admin, the admin.
    function acceptAdmin() external {
        if (msg.sender != pendingAdmin) revert NotPendingAdmin(msg.sender);
        emit AdminTransferred(admin, msg.sender);
        admin = msg.sender;
        pendingAdmin = address(0);
    }

    /// @notice Stops all keys and authorizers; plain transfers after the release continue. Guardian or admin.
    function pause() external onlyGuardian {
        _setPaused(true);
        emit Paused(msg.sender);
    }

    /// @notice Lets all keys and authorizers continue. Admin only.
    function resume() external onlyAdmin {
        _setPaused(false);
        emit Resumed();
    }

    /// @notice Announces that in seven days plain ERC-721 transfers of claimed tokens become possible in all
    /// collections, for ever. Claims, authorized transfers and chip replacements continue as before. No effect if
    /// already announced. Admin only.
    function announceRelease() external onlyAdmin {
        ServiceSettings.Rules memory rules = _settings().rules();
        if (rules.releaseAt != 0) return;
        rules.releaseAt = uint40(block.timestamp + RELEASE_DELAY);
        _settings().setRules(rules);
        emit ReleaseAnnounced(rules.releaseAt);
    }

    /// @notice Cancels an announced release before its time. Guardian or admin.
    function cancelRelease() external onlyGuardian {
        ServiceSettings.Rules memory rules = _settings().rules();
        if (rules.releaseAt == 0) return;
        if (block.timestamp >= rules.releaseAt) revert AlreadyReleased(rules.releaseAt);
        rules.releaseAt = 0;
        _settings().setRules(rules);
        emit ReleaseCancelled(msg.sender);
    }

    /// @notice Sets the base of metadata URLs, without a slash at its end. Admin only.
    function setBaseURI(string calldata base) external onlyAdmin {
        if (baseURIFrozen) revert BaseIsFrozen();
        _setBaseURI(base);
    }

    /// @notice Makes the base of metadata URLs permanent. Admin only.
    function freezeBaseURI() external onlyAdmin {
        string memory base = _settings().baseURI();
        if (bytes(base).length == 0) revert BaseIsEmpty();
        baseURIFrozen = true;
        emit BaseURIFrozen(base);
    }

    function _setRoles(address account, uint256 granted) private {
        if (account == address(0)) revert ZeroAddress();
        if (granted > ALL_ROLES) revert UnknownRoles(granted);
        bool isKey = roles(account) != 0;
        if (granted != 0 && !isKey) {
            if (_keys.length == MAX_KEYS) revert TooManyKeys(MAX_KEYS);
            _keys.push(account);
        }
        if (granted == 0 && isKey) _removeKey(account);
        bool stopped = granted != 0 && _settings().rules().paused;
        _settings().setRoles(account, stopped ? granted | PAUSED : granted);
        emit RolesSet(account, granted);
    }

    function _removeKey(address account) private {
        uint256 last = _keys.length - 1;
        for (uint256 i; i < last; ++i) {
            if (_keys[i] == account) {
                _keys[i] = _keys[last];
                break;
            }
        }
        _keys.pop();
    }

    function _setPaused(bool stopped) private {
        ServiceCollection settings = _settings();
        ServiceSettings.Rules memory rules = settings.rules();
        rules.paused = stopped;
        settings.setRules(rules);
        for (uint256 i; i < _keys.length; ++i) {
            address key = _keys[i];
            uint256 granted = settings.roles(key) & ALL_ROLES;
            settings.setRoles(key, stopped ? granted | PAUSED : granted);
        }
    }

    function _setAuthorizer(address account, uint256 previousUntil) private {
        uint256 latest = block.timestamp + MAX_OVERLAP;
        if (previousUntil > latest) revert OverlapTooLong(previousUntil, latest);
        ServiceSettings.Rules memory rules = _settings().rules();
        address previous = rules.authorizer;
        if (account == previous) previous = _settings().previousAuthorizer().account;
        rules.authorizer = account;
        _settings().setRules(rules);
        _settings().setPreviousAuthorizer(ServiceSettings.PreviousAuthorizer(previous, uint40(previousUntil)));
        emit AuthorizerSet(account, previous, previousUntil);
    }

    function _setBaseURI(string memory base) private {
        _settings().setBaseURI(base);
        emit BaseURISet(base);
    }

    function _settings() private view returns (ServiceCollection) {
        return ServiceCollection(implementation);
    }

    function _saltOf(bytes32 salt, string calldata name, string calldata symbol) private pure returns (bytes32) {
        return keccak256(abi.encode(salt, name, symbol));
    }

    function _addressOf(bytes32 ownSalt, bytes memory code) private view returns (address) {
        bytes32 hash = keccak256(abi.encodePacked(hex"ff", address(this), ownSalt, keccak256(code)));
        return address(uint160(uint256(hash)));
    }

    /// @dev The 45 bytes of an ERC-1167 proxy, which explorers recognize, preceded by nine bytes that return them.
    function _creationCode() private view returns (bytes memory) {
        return abi.encodePacked(
            hex"602d3d8160093d39f3363d3d373d3d3d363d73", implementation, hex"5af43d82803e903d91602b57fd5bf3"
        );
    }
}
