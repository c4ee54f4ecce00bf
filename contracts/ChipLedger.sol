// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The chips that serials were issued with: five bytes each, never changed afterwards.
/// @notice Batches are kept in one of two ways, which the issuer chooses by gas: six chips in a storage slot, or the
/// whole batch as the code of a contract that the collection creates (a store). Readers need not know which.
///
/// The addresses of stores are not recorded. A contract's address follows from its creator and its number among the
/// creator's contracts, and a store begins with its first serial, so a binary search finds the store of a serial.
abstract contract ChipLedger {
    uint256 private constant CHIP_BYTES = 5;
    uint256 private constant CHIP_BITS = 40;
    uint256 private constant CHIPS_PER_SLOT = 6;
    uint256 private constant SLOT_BITS = CHIP_BITS * CHIPS_PER_SLOT;

    mapping(uint256 index => uint256) private _slots;

    /// @dev How many stores the collection has created. It creates no other contracts.
    function _stores() internal view virtual returns (uint256);

    /// @dev Returns zero if the serial was not issued.
    function _issuedChip(uint256 serial) internal view returns (uint40 chip) {
        (uint256 index, uint256 position) = _locate(serial);
        chip = uint40(_slots[index] >> position);
        if (chip != 0) return chip;
        (address store, uint256 first) = _storeOf(serial);
        if (store == address(0)) return 0;
        // Reading past the end of the code gives zeros.
        return uint40(_fiveBytes(store, CHIP_BYTES * (serial - first + 1)));
    }

    /// @dev Returns whether one store holds exactly these chips from this serial on: one comparison, not one per chip.
    function _isStore(uint256 first, bytes calldata chips) internal view returns (bool) {
        (address store,) = _storeOf(first);
        return store != address(0) && store.codehash == keccak256(abi.encodePacked(uint40(first), chips));
    }

    function _keepInSlots(uint256 first, bytes calldata chips) internal {
        (uint256 index, uint256 position) = _locate(first);
        uint256 word = position == 0 ? 0 : _slots[index];
        unchecked {
            for (uint256 offset; offset != chips.length;) {
                word |= _chipAt(chips, offset) << position;
                offset += CHIP_BYTES;
                position += CHIP_BITS;
                if (position == SLOT_BITS || offset == chips.length) {
                    _slots[index++] = word;
                    word = 0;
                    position = 0;
                }
            }
        }
    }

    /// @dev Creates a store, whose code is the first serial and the chips, five bytes each. The code's first byte is
    /// zero, which stops any call to it, and so is not 0xef, which no code may begin with.
    function _keepAsCode(uint256 first, bytes calldata chips) internal {
        assembly ("memory-safe") {
            let length := add(chips.length, 5)
            let made := mload(0x40)
            // PUSH2 length DUP1 PUSH1 10 RETURNDATASIZE CODECOPY RETURNDATASIZE RETURN: ten bytes that return the rest.
            mstore(made, shl(136, or(shl(40, or(0x61000080600a3d393df3, shl(56, length))), first)))
            calldatacopy(add(made, 15), chips.offset, chips.length)
            // Creation can only fail for lack of gas, and then reverts without data, as running out of gas does.
            if iszero(create(0, made, add(length, 10))) { revert(0, 0) }
        }
    }

    /// @dev The chip whose five bytes begin at the offset.
    function _chipAt(bytes calldata chips, uint256 offset) internal pure returns (uint256 chip) {
        assembly ("memory-safe") {
            chip := shr(216, calldataload(add(chips.offset, offset)))
        }
    }

    /// @dev Returns the last store that begins at or before the serial, and its first serial; or the zero address.
    function _storeOf(uint256 serial) private view returns (address store, uint256 first) {
        uint256 low;
        uint256 high = _stores();
        while (low < high) {
            uint256 middle = (low + high + 1) / 2;
            address candidate = _store(middle);
            uint256 begin = _fiveBytes(candidate, 0);
            if (begin <= serial) (low, store, first) = (middle, candidate, begin);
            else high = middle - 1;
        }
    }

    /// @dev The address of the `number`th contract that this one created: the hash of the RLP list of both, whose
    /// encoding depends on the size of the number.
    function _store(uint256 number) private view returns (address) {
        bytes memory list;
        if (number < 0x80) list = abi.encodePacked(hex"d694", this, uint8(number));
        else if (number < 0x100) list = abi.encodePacked(hex"d794", this, hex"81", uint8(number));
        else if (number < 0x10000) list = abi.encodePacked(hex"d894", this, hex"82", uint16(number));
        else if (number < 0x1000000) list = abi.encodePacked(hex"d994", this, hex"83", uint24(number));
        else list = abi.encodePacked(hex"da94", this, hex"84", uint32(number));
        return address(uint160(uint256(keccak256(list))));
    }

    function _fiveBytes(address store, uint256 offset) private view returns (uint256 value) {
        assembly ("memory-safe") {
            mstore(0, 0)
            extcodecopy(store, 27, offset, 5)
            value := mload(0)
        }
    }

    /// @dev Returns the slot of a serial's chip, and the position of its lowest bit there.
    function _locate(uint256 serial) private pure returns (uint256 index, uint256 position) {
        unchecked {
            index = (serial - 1) / CHIPS_PER_SLOT;
            position = (serial - 1) % CHIPS_PER_SLOT * CHIP_BITS;
        }
    }
}
