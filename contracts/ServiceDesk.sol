// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISSUE, CLAIM, REPLACE, NotAllowed, allows} from "./Roles.sol";
import {ServiceCollection} from "./ServiceCollection.sol";
import {ServiceFactory} from "./ServiceFactory.sol";

/// @title Sends calls to many collections in one transaction.
/// @notice Not part of the frozen code: it holds roles as a key does, so the admin can grant them to another desk or to
/// none. Its caller needs the role of every call too, so a key without roles, or a paused one, cannot use the desk's.
contract ServiceDesk {
    struct Call {
        address to;
        bytes data;
    }

    /// @notice The collection reverted the call with this reason (at most 256 bytes of it); the others were made.
    event CallSkipped(uint256 indexed index, address indexed to, bytes reason);

    /// @notice Reason of a skipped call: a call to an address without code would succeed without effect.
    error NoContract();
    /// @notice The desk does not make such calls.
    error UnknownCall(uint256 index, bytes4 selector);
    /// @notice The call reverted without data, as for lack of gas: send again with more.
    error CallRanOut(uint256 index);

    ServiceCollection private immutable SETTINGS;

    constructor(ServiceFactory factory) {
        SETTINGS = ServiceCollection(factory.implementation());
    }

    /// @notice Makes the calls in order. Skips a call that reverts, with `CallSkipped`; if all do, reverts with the
    /// reason of the last one. Never skips a call that only lacked gas.
    function run(Call[] calldata calls) external {
        uint256 roles = SETTINGS.roles(msg.sender);
        uint256 skipped;
        for (uint256 i; i < calls.length; ++i) {
            Call calldata each = calls[i];
            uint256 role = _roleFor(i, bytes4(each.data));
            if (!allows(roles, role)) revert NotAllowed(msg.sender, role);
            bool isThere = each.to.code.length != 0;
            if (isThere && _succeeds(each.to, each.data)) continue;
            bytes memory reason = isThere ? _reason(i) : abi.encodeWithSelector(NoContract.selector);
            if (++skipped == calls.length) _revertWith(reason);
            emit CallSkipped(i, each.to, reason);
        }
    }

    function _roleFor(uint256 index, bytes4 selector) private pure returns (uint256) {
        if (selector == ServiceCollection.claim.selector) return CLAIM;
        if (selector == ServiceCollection.claimBatch.selector) return CLAIM;
        if (selector == ServiceCollection.issue.selector) return ISSUE;
        if (selector == ServiceCollection.refreshMetadata.selector) return ISSUE;
        if (selector == ServiceCollection.replaceChip.selector) return REPLACE;
        revert UnknownCall(index, selector);
    }

    /// @dev In assembly, so that no returned data is copied.
    function _succeeds(address to, bytes calldata data) private returns (bool success) {
        assembly ("memory-safe") {
            let question := mload(0x40)
            calldatacopy(question, data.offset, data.length)
            success := call(gas(), to, 0, question, data.length, 0, 0)
        }
    }

    /// @dev The revert data of the last call, cut to a size that holds every error of the collections.
    function _reason(uint256 index) private pure returns (bytes memory reason) {
        uint256 size;
        assembly ("memory-safe") {
            size := returndatasize()
        }
        if (size == 0) revert CallRanOut(index);
        reason = new bytes(size < 256 ? size : 256);
        assembly ("memory-safe") {
            returndatacopy(add(reason, 32), 0, mload(reason))
        }
    }

    function _revertWith(bytes memory reason) private pure {
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
