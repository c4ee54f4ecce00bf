// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ServiceCollection} from "./ServiceCollection.sol";

/// @title Deploys the collections of a service and holds the rules of its admin.
/// @notice The admin names operators and the authorizer, and can release the service once and for all.
contract ServiceFactory {
    event CollectionDeployed(address indexed collection, bytes32 indexed salt, string name, string symbol);
    event OperatorSet(address indexed operator, bool allowed);
    event AuthorizerSet(address indexed authorizer);
    event AdminTransferStarted(address indexed admin, address indexed pendingAdmin);
    event AdminTransferred(address indexed previousAdmin, address indexed admin);
    /// @notice The service has ended: all collections answer plain ERC-721 transfers from now on.
    event Released();

    error NotAdmin(address caller);
    error NotPendingAdmin(address caller);
    error NotOperator(address caller);
    error ZeroAddress();
    error NameTooLong(uint256 size);
    error DeploymentFailed(bytes32 salt);

    /// @notice The code that all collections run, and the store of their shared settings.
    address public immutable implementation;

    /// @notice Who sets operators and authorizer, and can release.
    address public admin;

    /// @notice Who can become admin by accepting. Zero: nobody was asked.
    address public pendingAdmin;

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
        _;
    }

    constructor(address firstAdmin, address firstAuthorizer, address[] memory operators) {
        if (firstAdmin == address(0)) revert ZeroAddress();
        implementation = address(new ServiceCollection());
        admin = firstAdmin;
        emit AdminTransferred(address(0), firstAdmin);
        _setAuthorizer(firstAuthorizer);
        for (uint256 i; i < operators.length; ++i) {
            _setOperator(operators[i], true);
        }
    }

    /// @notice Deploys a collection, to the address that follows from all three values. Without effect when it is
    /// there already. Operators only.
    function deploy(bytes32 salt, string calldata name, string calldata symbol) external returns (address collection) {
        if (!isOperator(msg.sender)) revert NotOperator(msg.sender);
        bytes memory code = _creationCode(name, symbol);
        collection = _addressOf(salt, code);
        if (collection.code.length != 0) return collection;
        address deployed;
        assembly ("memory-safe") {
            deployed := create2(0, add(code, 32), mload(code), salt)
        }
        if (deployed == address(0)) revert DeploymentFailed(salt);
        emit CollectionDeployed(collection, salt, name, symbol);
    }

    /// @notice The address of a collection, deployed or not.
    function addressOf(bytes32 salt, string calldata name, string calldata symbol) external view returns (address) {
        return _addressOf(salt, _creationCode(name, symbol));
    }

    /// @notice Whether `account` may deploy, issue, claim for others and replace chips.
    function isOperator(address account) public view returns (bool) {
        return ServiceCollection(implementation).isOperator(account);
    }

    /// @notice The account whose EIP-712 signatures authorize claims and transfers. Zero: nobody's do.
    function authorizer() external view returns (address) {
        return ServiceCollection(implementation).authorizer();
    }

    /// @notice Whether the service has ended and plain ERC-721 transfers are free.
    function released() public view returns (bool) {
        return ServiceCollection(implementation).released();
    }

    /// @notice Allows or stops an operator. Admin only.
    function setOperator(address account, bool allowed) external onlyAdmin {
        _setOperator(account, allowed);
    }

    /// @notice Names the authorizer; signatures of the one before end with it. Zero: none. Admin only.
    function setAuthorizer(address account) external onlyAdmin {
        _setAuthorizer(account);
    }

    /// @notice Asks `account` to become admin; zero takes the question back. Admin only.
    function transferAdmin(address account) external onlyAdmin {
        pendingAdmin = account;
        emit AdminTransferStarted(msg.sender, account);
    }

    /// @notice Makes the caller, who was asked, the admin.
    function acceptAdmin() external {
        if (msg.sender != pendingAdmin) revert NotPendingAdmin(msg.sender);
        emit AdminTransferred(admin, msg.sender);
        admin = msg.sender;
        pendingAdmin = address(0);
    }

    /// @notice Frees plain ERC-721 transfers of claimed tokens in all collections, for good. Claims, authorized
    /// transfers and chip replacements go on as before. Without effect when done before. Admin only.
    function release() external onlyAdmin {
        if (released()) return;
        ServiceCollection(implementation).release();
        emit Released();
    }

    function _setOperator(address account, bool allowed) private {
        if (account == address(0)) revert ZeroAddress();
        ServiceCollection(implementation).setOperator(account, allowed);
        emit OperatorSet(account, allowed);
    }

    function _setAuthorizer(address account) private {
        ServiceCollection(implementation).setAuthorizer(account);
        emit AuthorizerSet(account);
    }

    function _addressOf(bytes32 salt, bytes memory code) private view returns (address) {
        bytes32 hash = keccak256(abi.encodePacked(hex"ff", address(this), salt, keccak256(code)));
        return address(uint160(uint256(hash)));
    }

    /// @dev An ERC-1167 proxy (45 bytes) followed by the length of the name (two bytes), the name and the symbol,
    /// behind ten bytes that return all of it.
    function _creationCode(string calldata name, string calldata symbol) private view returns (bytes memory) {
        uint256 size = 47 + bytes(name).length + bytes(symbol).length;
        if (size > type(uint16).max) revert NameTooLong(size - 47);
        return abi.encodePacked(
            hex"61",
            uint16(size),
            hex"3d81600a3d39f3363d3d373d3d3d363d73",
            implementation,
            hex"5af43d82803e903d91602b57fd5bf3",
            uint16(bytes(name).length),
            name,
            symbol
        );
    }
}
