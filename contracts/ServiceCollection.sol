// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Authorizations} from "./Authorizations.sol";
import {ChipLedger} from "./ChipLedger.sol";
import {Presentation} from "./Presentation.sol";
import {ISSUE, CLAIM, REPLACE, NotAllowed, allows} from "./Roles.sol";

interface ERC721Receiver {
    function onERC721Received(address operator, address from, uint256 tokenId, bytes calldata data)
        external
        returns (bytes4);
}

/// @title A collection of units, each an ERC-721 token bound to a chip.
/// @notice Runs behind exact ERC-1167 clones that the factory deploys.
///
/// Until it is claimed, a token is in custody: the collection itself owns it, and no owner is stored. So a `Transfer`
/// from zero to the collection is an issuance, and one from the collection to another account is a claim. The
/// collection never calls itself, so nobody can act as that owner.
///
/// Tokens are locked (ERC-5192): until the service is released, they move only by claim and by authorized transfer.
/// `locked` is correct for every token, but no `Locked` event is emitted per token: ERC-5192 recommends one at
/// issuance, which would make issuing a quarter dearer. The lock ends for all tokens at the announced time.
///
/// Repeats are harmless: a call that was executed before returns without effect if its outcome still stands, and
/// reverts otherwise. That a chip is bound to only one unit is ensured by the service's database, not here.
contract ServiceCollection is Authorizations, Presentation, ChipLedger {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    /// @notice Serials from `first` on were issued with these chips: five bytes each, in order.
    event Issued(uint256 indexed first, bytes chips);
    event ClaimSkipped(uint256 indexed serial, address indexed recipient);
    event ChipReplaced(uint256 indexed serial, uint40 previousChip, uint40 chip);

    error NotClone();
    error NotIssued(uint256 serial);
    error InvalidBatchSize(uint256 size, uint256 maximum);
    /// @notice The bytes are not a whole number of chips, five bytes each.
    error InvalidLength(uint256 length);
    error InvalidChip(uint256 serial);
    error InvalidRecipient(address recipient);
    error TooManySerials(uint256 last, uint256 maximum);
    /// @notice An earlier batch is missing: the next serial is below the expected one.
    error SerialGap(uint256 expectedFirst, uint256 next);
    /// @notice The serial was issued with another chip. Zero: it was not issued yet.
    error IssuedDifferently(uint256 serial, uint40 issuedChip, uint40 chip);
    error LengthMismatch(uint256 serials, uint256 recipients);
    error AlreadyClaimed(uint256 serial, address owner);
    error NotRecipient(address caller, address recipient);
    error NotOwner(address account, uint256 serial, address owner);
    error NotApproved(address caller, uint256 serial);
    error ChipMismatch(uint256 serial, uint40 currentChip, uint40 previousChip);
    error ChipLocked(uint256 serial);
    error TransfersLocked();
    error UnsafeRecipient(address recipient);
    error ZeroAddress();

    /// @notice The most entries that one call can issue or claim.
    uint256 public constant MAX_BATCH = 250;

    // A token's word, from the low bit: owner (160 bits), chip that replaced the issued one (40), nonce (48), whether
    // an account is approved (1), whether the token moved after its claim (1).
    uint256 private constant CHIP_SHIFT = 160;
    uint256 private constant NONCE_SHIFT = 200;
    uint256 private constant NONCE_ONE = 1 << NONCE_SHIFT;
    uint256 private constant NONCES = 0xffffffffffff << NONCE_SHIFT;
    uint256 private constant APPROVED = 1 << 248;
    uint256 private constant TRANSFERRED = 1 << 249;

    struct Counts {
        uint64 issued;
        uint64 claimed;
        uint64 stores;
    }

    Counts private _counts;
    mapping(uint256 serial => uint256) private _tokens;
    mapping(address owner => uint256) private _balances;
    mapping(uint256 serial => address) private _approvals;
    mapping(address owner => mapping(address operator => bool)) private _approvedForAll;

    modifier only(uint256 role) {
        if (!allows(roles(msg.sender), role)) revert NotAllowed(msg.sender, role);
        _;
    }

    modifier onlyReleased() {
        if (!released()) revert TransfersLocked();
        _;
    }

    /// @notice Issues one token per chip (five bytes each), from serial `expectedFirst` on. No effect if exactly these
    /// chips were issued at these serials before, whatever happened to them since. `asCode` chooses how the chips are
    /// stored, which only affects gas: as code for large batches, in slots for small ones.
    function issue(uint256 expectedFirst, bytes calldata chips, bool asCode) external only(ISSUE) {
        if (!_isClone()) revert NotClone();
        uint256 size = chips.length / 5;
        if (size == 0 || size > MAX_BATCH) revert InvalidBatchSize(size, MAX_BATCH);
        if (chips.length % 5 != 0) revert InvalidLength(chips.length);

        uint256 last = _counts.issued;
        if (expectedFirst != last + 1) return _requireIssuedAs(expectedFirst, last, chips);
        unchecked {
            last += size;
        }
        // A store's first serial must fit into four bytes.
        if (last > type(uint32).max) revert TooManySerials(last, type(uint32).max);

        _counts.issued = uint64(last);
        if (asCode) {
            ++_counts.stores;
            _keepAsCode(expectedFirst, chips);
        } else {
            _keepInSlots(expectedFirst, chips);
        }
        _emitIssued(expectedFirst, size, chips);
    }

    /// @notice Claims a token in custody for `recipient`. No effect if this claim was made before and still stands.
    function claim(uint256 serial, address recipient) external only(CLAIM) {
        if (!_isRecipient(recipient)) revert InvalidRecipient(recipient);
        uint256 token = _tokens[serial];
        if (_isClaimBy(token, recipient)) return;
        _requireUnclaimed(serial, token);
        ++_counts.claimed;
        _claim(serial, token, recipient);
    }

    /// @notice Claims each `serials[i]` for `recipients[i]`. Skips an entry that cannot be claimed, with
    /// `ClaimSkipped`, and silently skips a claim that was made before.
    function claimBatch(uint256[] calldata serials, address[] calldata recipients) external only(CLAIM) {
        uint256 size = serials.length;
        if (size != recipients.length) revert LengthMismatch(size, recipients.length);
        if (size == 0 || size > MAX_BATCH) revert InvalidBatchSize(size, MAX_BATCH);

        Counts memory counts = _counts;
        uint256 claims;
        for (uint256 i; i < size; ++i) {
            uint256 serial = serials[i];
            address recipient = recipients[i];
            uint256 token = _tokens[serial];
            if (address(uint160(token)) != address(0)) {
                if (!_isClaimBy(token, recipient)) emit ClaimSkipped(serial, recipient);
            } else if (serial == 0 || serial > counts.issued || !_isRecipient(recipient)) {
                emit ClaimSkipped(serial, recipient);
            } else {
                _claim(serial, token, recipient);
                ++claims;
            }
        }
        if (claims != 0) _counts.claimed = counts.claimed + uint64(claims);
    }

    /// @notice Claims a token in custody for the caller, with an authorizer's signature over
    /// `Claim(serial, recipient, nonce, deadline)`. `deadline` is in Unix seconds, inclusive.
    function claimWithAuthorization(uint256 serial, address recipient, uint256 deadline, bytes calldata signature)
        external
    {
        if (msg.sender != recipient) revert NotRecipient(msg.sender, recipient);
        uint256 token = _tokens[serial];
        _requireUnclaimed(serial, token);
        _useClaim(serial, recipient, _nonce(token), deadline, signature);
        ++_counts.claimed;
        _claim(serial, token, recipient);
    }

    /// @notice Transfers the caller's own token, with an authorizer's signature over
    /// `Transfer(serial, from, to, nonce, deadline)`. `deadline` is in Unix seconds, inclusive.
    function transferWithAuthorization(uint256 serial, address to, uint256 deadline, bytes calldata signature)
        external
    {
        uint256 token = _tokens[serial];
        address owner = address(uint160(token));
        if (msg.sender != owner) revert NotOwner(msg.sender, serial, ownerOf(serial));
        if (!_isRecipient(to)) revert InvalidRecipient(to);
        _useTransfer(serial, to, _nonce(token), deadline, signature);
        _transfer(serial, token, owner, to);
    }

    /// @notice The nonce of the next authorization: how often the token has changed its owner or its chip.
    function authorizationNonce(uint256 serial) external view returns (uint256) {
        _requireIssued(serial);
        return _nonce(_tokens[serial]);
    }

    /// @notice Binds `chip` in place of `previousChip`, until the claim, and invalidates all authorizations given
    /// before. No effect if it is bound already.
    function replaceChip(uint256 serial, uint40 previousChip, uint40 chip) external only(REPLACE) {
        if (chip == 0) revert InvalidChip(serial);
        uint40 current = chipOf(serial);
        if (current == chip) return;
        if (current != previousChip) revert ChipMismatch(serial, current, previousChip);
        uint256 token = _tokens[serial];
        if (address(uint160(token)) != address(0)) revert ChipLocked(serial);
        _tokens[serial] = ((token & NONCES) + NONCE_ONE) | uint256(chip) << CHIP_SHIFT;
        emit ChipReplaced(serial, previousChip, chip);
        emit MetadataUpdate(serial);
    }

    /// @notice Asks marketplaces and indexers to read the metadata of the issued serials among `from` to `to`, and of
    /// the collection, again (ERC-4906, ERC-7572).
    function refreshMetadata(uint256 from, uint256 to) external only(ISSUE) {
        uint256 last = _counts.issued;
        _announceMetadata(from == 0 ? 1 : from, to < last ? to : last);
    }

    /// @notice The chip that a token is bound to.
    function chipOf(uint256 serial) public view returns (uint40) {
        _requireIssued(serial);
        uint40 replacement = uint40(_tokens[serial] >> CHIP_SHIFT);
        return replacement == 0 ? _issuedChip(serial) : replacement;
    }

    /// @notice How many tokens were issued, which is also the last serial.
    function issued() public view returns (uint256) {
        return _counts.issued;
    }

    /// @notice How many tokens were claimed.
    function claimed() external view returns (uint256) {
        return _counts.claimed;
    }

    /// @notice How many tokens exist: equal to `issued`, since none is ever burned.
    function totalSupply() external view returns (uint256) {
        return _counts.issued;
    }

    /// @notice ERC-721: the owner; the collection itself until the claim.
    function ownerOf(uint256 serial) public view returns (address) {
        _requireIssued(serial);
        address owner = address(uint160(_tokens[serial]));
        return owner == address(0) ? address(this) : owner;
    }

    /// @notice ERC-721: how many tokens `owner` has; for the collection itself, the unclaimed ones.
    function balanceOf(address owner) external view returns (uint256) {
        if (owner == address(0)) revert ZeroAddress();
        if (owner == address(this)) return _counts.issued - _counts.claimed;
        return _balances[owner];
    }

    /// @notice ERC-721: the URL of the token's metadata; empty while no base is set.
    function tokenURI(uint256 serial) external view returns (string memory) {
        _requireIssued(serial);
        return _tokenURI(serial);
    }

    /// @notice ERC-5192: whether plain transfers of the token revert, as they do until the release.
    function locked(uint256 serial) external view returns (bool) {
        _requireIssued(serial);
        return !released();
    }

    /// @notice ERC-165: itself, ERC-721, its metadata extension, ERC-5192 and ERC-4906.
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f || id == 0xb45a3c0e || id == 0x49064906;
    }

    /// @notice ERC-721: lets `to` move the token. Only after the release.
    function approve(address to, uint256 serial) external onlyReleased {
        address owner = ownerOf(serial);
        if (msg.sender != owner && !_approvedForAll[owner][msg.sender]) revert NotApproved(msg.sender, serial);
        uint256 token = _tokens[serial];
        _tokens[serial] = to == address(0) ? token & ~APPROVED : token | APPROVED;
        _approvals[serial] = to;
        emit Approval(owner, to, serial);
    }

    /// @notice ERC-721: lets `operator` move all tokens of the caller, or revokes that. Only after the release.
    function setApprovalForAll(address operator, bool approved) external onlyReleased {
        if (operator == address(0)) revert ZeroAddress();
        _approvedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    /// @notice ERC-721: the account that may move this token besides its owner.
    function getApproved(uint256 serial) public view returns (address) {
        _requireIssued(serial);
        return _approvals[serial];
    }

    /// @notice ERC-721: whether `operator` may move all tokens of `owner`.
    function isApprovedForAll(address owner, address operator) external view returns (bool) {
        return _approvedForAll[owner][operator];
    }

    /// @notice ERC-721: transfers a claimed token. Only after the release.
    function transferFrom(address from, address to, uint256 serial) public onlyReleased {
        address owner = ownerOf(serial);
        if (from != owner) revert NotOwner(from, serial, owner);
        if (!_isRecipient(to)) revert InvalidRecipient(to);
        if (msg.sender != owner && !_approvedForAll[owner][msg.sender] && msg.sender != _approvals[serial]) {
            revert NotApproved(msg.sender, serial);
        }
        _transfer(serial, _tokens[serial], owner, to);
    }

    /// @notice ERC-721: transfers a claimed token to an account or a contract that accepts it. Only after the release.
    function safeTransferFrom(address from, address to, uint256 serial) external {
        safeTransferFrom(from, to, serial, "");
    }

    /// @notice ERC-721: transfers a claimed token to an account or a contract that accepts it. Only after the release.
    function safeTransferFrom(address from, address to, uint256 serial, bytes memory data) public {
        transferFrom(from, to, serial);
        if (to.code.length == 0) return;
        bytes memory question = abi.encodeCall(ERC721Receiver.onERC721Received, (msg.sender, from, serial, data));
        bytes32 answer;
        // In assembly, so that only the first word of the returned data is copied, however much there is.
        assembly ("memory-safe") {
            mstore(0, 0)
            if call(gas(), to, 0, add(question, 32), mload(question), 0, 32) {
                if gt(returndatasize(), 31) { answer := mload(0) }
            }
        }
        if (answer != bytes32(ERC721Receiver.onERC721Received.selector)) revert UnsafeRecipient(to);
    }

    function _stores() internal view override returns (uint256) {
        return _counts.stores;
    }

    /// @dev In assembly, because this is where a large issuance spends its gas.
    function _emitIssued(uint256 first, uint256 size, bytes calldata chips) private {
        bytes32 topic = Transfer.selector;
        uint256 serial = first;
        bool refused;
        assembly ("memory-safe") {
            let source := chips.offset
            for { let end := add(serial, size) } lt(serial, end) { serial := add(serial, 1) } {
                if iszero(shr(216, calldataload(source))) {
                    refused := 1
                    break
                }
                log4(0, 0, topic, 0, address(), serial)
                source := add(source, 5)
            }
        }
        if (refused) revert InvalidChip(serial);
        emit Issued(first, chips);
    }

    function _claim(uint256 serial, uint256 token, address recipient) private {
        unchecked {
            _tokens[serial] = (token + NONCE_ONE) | uint160(recipient);
            ++_balances[recipient];
        }
        emit Transfer(address(this), recipient, serial);
    }

    function _transfer(uint256 serial, uint256 token, address from, address to) private {
        unchecked {
            uint256 kept = (token ^ uint160(from)) & ~APPROVED;
            _tokens[serial] = (kept + NONCE_ONE) | TRANSFERRED | uint160(to);
            --_balances[from];
            ++_balances[to];
        }
        if (token & APPROVED != 0) delete _approvals[serial];
        emit Transfer(from, to, serial);
    }

    function _requireIssuedAs(uint256 first, uint256 last, bytes calldata chips) private view {
        if (first > last) revert SerialGap(first, last + 1);
        if (first == 0) revert NotIssued(0);
        if (_isStore(first, chips)) return;
        for (uint256 offset; offset < chips.length; offset += 5) {
            uint256 serial = first + offset / 5;
            uint40 chip = uint40(_chipAt(chips, offset));
            uint40 issuedChip = serial <= last ? _issuedChip(serial) : 0;
            if (issuedChip != chip || issuedChip == 0) revert IssuedDifferently(serial, issuedChip, chip);
        }
    }

    function _requireUnclaimed(uint256 serial, uint256 token) private view {
        address owner = address(uint160(token));
        if (owner != address(0)) revert AlreadyClaimed(serial, owner);
        _requireIssued(serial);
    }

    function _requireIssued(uint256 serial) private view {
        if (serial == 0 || serial > _counts.issued) revert NotIssued(serial);
    }

    function _isRecipient(address recipient) private view returns (bool) {
        return recipient != address(0) && recipient != address(this);
    }

    /// @dev The nonce cannot tell, because chip replacements increase it too.
    function _isClaimBy(uint256 token, address recipient) private pure returns (bool) {
        return token & TRANSFERRED == 0 && address(uint160(token)) == recipient;
    }

    function _nonce(uint256 token) private pure returns (uint256) {
        return uint48(token >> NONCE_SHIFT);
    }
}
