// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// Roles of keys, as bits that are added up. Frozen: they are stored on chain.

uint256 constant ISSUE = 1;
uint256 constant CLAIM = 2;
uint256 constant REPLACE = 4;
uint256 constant DEPLOY = 8;
uint256 constant ALL_ROLES = 15;
/// @dev Set in addition while the service is paused: a key with it may do nothing.
uint256 constant PAUSED = 128;

/// @notice The key does not have the role, or the service is paused.
error NotAllowed(address caller, uint256 role);

function allows(uint256 roles, uint256 role) pure returns (bool) {
    return roles & (role | PAUSED) == role;
}
