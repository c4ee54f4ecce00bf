// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ServiceSettings} from "./ServiceSettings.sol";

interface ERC721Receiver {
    function onERC721Received(address operator, address from, uint256 tokenId, bytes calldata data)
        external
        returns (bytes4);
}

/// @title A collection of units, each an ERC-721 token bound to a chip.
/// @notice Runs behind clones that the factory deploys; name and symbol are part of a clone's code.
///
/// Until its claim a token is in custody: it is owned by the collection itself, and no owner is stored. So a
/// `Transfer` from zero to the collection is an issuance, and one from the collection to somebody is a claim.
///
/// Tokens are locked (ERC-5192): they move by claim and by authorized transfer only, until the service is released.
/// `locked` answers for every token; no `Locked` event is emitted per token, which ERC-5192 recommends at issuance
/// and which would make issuing 15 % dearer. The lock ends for all tokens at once with `Released` of the factory.
///
/// Repeats are harmless: a call that was executed before returns without effect where the outcome is still the
/// asked one, and reverts where it is not. That a chip is bound to one unit only is the service's database's duty.
contract ServiceCollection is ServiceSettings {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    event MetadataUpdate(uint256 tokenId);
    /// @notice Serials from `first` were issued with these chips: five bytes each, in order.
    event Issued(uint256 indexed first, bytes chips);
    event ClaimSkipped(uint256 indexed serial, address indexed recipient);
    /// @notice `authorization` is the EIP-712 digest that the authorizer signed.
    event AuthorizationUsed(uint256 indexed serial, bytes32 indexed authorization);
    event ChipReplaced(uint256 indexed serial, uint40 previousChip, uint40 chip);

    error NotOperator(address caller);
    error NotClone();
    error NotIssued(uint256 serial);
    error InvalidBatchSize(uint256 size, uint256 maximum);
    error InvalidChip(uint256 serial);
    error InvalidRecipient(address recipient);
    /// @notice An earlier batch is missing: the next serial is still below the expected one.
    error SerialGap(uint256 expectedFirst, uint256 next);
    /// @notice The serial was issued with another chip. Zero: it was not issued yet.
    error IssuedDifferently(uint256 serial, uint40 issuedChip, uint40 chip);
    error LengthMismatch(uint256 serials, uint256 recipients);
    error AlreadyClaimed(uint256 serial, address owner);
    error NotRecipient(address caller, address recipient);
    error NotOwner(address account, uint256 serial, address owner);
    error NotApproved(address caller, uint256 serial);
    error AuthorizationExpired(uint256 deadline, uint256 timestamp);
    /// @notice Not the authorizer's signature over these values and the token's present nonce; used ones end here.
    error InvalidAuthorization(uint256 serial, uint256 nonce);
    error ChipMismatch(uint256 serial, uint40 currentChip, uint40 previousChip);
    error ChipLocked(uint256 serial);
    error TransfersLocked();
    error UnsafeRecipient(address recipient);
    error ZeroAddress();

    /// @notice The most entries one call may issue or claim.
    uint256 public constant MAX_BATCH = 250;

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant DOMAIN_NAME = keccak256("service-api");
    bytes32 private constant DOMAIN_VERSION = keccak256("1");
    bytes32 private constant CLAIM_TYPE =
        keccak256("Claim(uint256 serial,address recipient,uint256 nonce,uint256 deadline)");
    bytes32 private constant TRANSFER_TYPE =
        keccak256("Transfer(uint256 serial,address from,address to,uint256 nonce,uint256 deadline)");
    uint256 private constant HALF_CURVE_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    uint256 private constant CLONE_CODE_SIZE = 45;
    uint256 private constant CHIPS_PER_WORD = 6;
    uint256 private constant CHIP_BITS = 40;

    // A token's word, from the low bit: owner (160), chip that replaced the issued one (40), nonce (48), approved (1).
    uint256 private constant CHIP_SHIFT = 160;
    uint256 private constant NONCE_SHIFT = 200;
    uint256 private constant NONCE_ONE = 1 << NONCE_SHIFT;
    uint256 private constant APPROVED = 1 << 248;

    struct Counts {
        uint64 issued;
        uint64 claimed;
    }

    Counts private _counts;
    // As issued, never changed afterwards: what makes the repeat of an issuance recognisable after a replacement.
    mapping(uint256 index => uint256) private _issuedChips;
    mapping(uint256 serial => uint256) private _tokens;
    mapping(address owner => uint256) private _balances;
    mapping(uint256 serial => address) private _approvals;
    mapping(address owner => mapping(address operator => bool)) private _approvedForAll;

    modifier onlyOperator() {
        if (!isOperator(msg.sender)) revert NotOperator(msg.sender);
        _;
    }

    modifier onlyReleased() {
        if (!released()) revert TransfersLocked();
        _;
    }

    /// @notice Issues one token per chip, from serial `expectedFirst` on. Without effect when these very chips were
    /// issued at these serials before, whatever happened to them since.
    function issue(uint256 expectedFirst, uint40[] calldata chips) external onlyOperator {
        if (!_isClone()) revert NotClone();
        uint256 size = chips.length;
        if (size == 0 || size > MAX_BATCH) revert InvalidBatchSize(size, MAX_BATCH);

        uint256 next = uint256(_counts.issued) + 1;
        if (expectedFirst > next) revert SerialGap(expectedFirst, next);
        if (expectedFirst < next) return _requireIssuedAs(expectedFirst, next, chips);

        unchecked {
            _counts.issued = uint64(expectedFirst - 1 + size);
        }
        (uint256 index, uint256 position) = _locate(expectedFirst);
        uint256 word = position == 0 ? 0 : _issuedChips[index];
        bytes memory packed = new bytes(size * 5);
        bytes32 topic = Transfer.selector;
        uint256 source;
        uint256 target;
        assembly ("memory-safe") {
            source := chips.offset
            target := add(packed, 32)
        }
        for (uint256 serial = expectedFirst; size != 0;) {
            bool refused;
            // By hand, because this is where the gas of an issuance goes: up to six chips, which share a word.
            assembly ("memory-safe") {
                for {} and(iszero(eq(position, 240)), gt(size, 0)) {} {
                    let chip := calldataload(source)
                    refused := or(iszero(chip), gt(chip, 0xffffffffff))
                    if refused { break }
                    word := or(word, shl(position, chip))
                    mstore(target, shl(216, chip)) // a whole word: the zeros after the chip are overwritten or padding
                    log4(0, 0, topic, 0, address(), serial)
                    source := add(source, 32)
                    target := add(target, 5)
                    position := add(position, 40)
                    serial := add(serial, 1)
                    size := sub(size, 1)
                }
            }
            if (refused) revert InvalidChip(serial);
            _issuedChips[index] = word;
            unchecked {
                ++index;
            }
            word = 0;
            position = 0;
        }
        emit Issued(expectedFirst, packed);
    }

    /// @notice Hands a token in custody to `recipient`. Without effect when this claim was made and still stands.
    function claim(uint256 serial, address recipient) external onlyOperator {
        if (!_isRecipient(recipient)) revert InvalidRecipient(recipient);
        uint256 token = _tokens[serial];
        if (_isClaimBy(token, recipient)) return;
        _requireUnclaimed(serial, token);
        ++_counts.claimed;
        _claim(serial, token, recipient);
    }

    /// @notice Claims each `serials[i]` for `recipients[i]`. An entry that cannot be claimed so is passed over with
    /// `ClaimSkipped`; a repeated one is passed over in silence.
    function claimBatch(uint256[] calldata serials, address[] calldata recipients) external onlyOperator {
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

    /// @notice Claims a token in custody for the caller, with the authorizer's signature over
    /// `Claim(serial, recipient, nonce, deadline)`. `deadline` is in Unix seconds, inclusive.
    function claimWithAuthorization(uint256 serial, address recipient, uint256 deadline, bytes calldata signature)
        external
    {
        if (msg.sender != recipient) revert NotRecipient(msg.sender, recipient);
        uint256 token = _tokens[serial];
        _requireUnclaimed(serial, token);
        bytes32 content = keccak256(abi.encode(CLAIM_TYPE, serial, recipient, 0, deadline));
        _useAuthorization(serial, 0, content, deadline, signature);
        ++_counts.claimed;
        _claim(serial, token, recipient);
    }

    /// @notice Moves the caller's own token, with the authorizer's signature over
    /// `Transfer(serial, from, to, nonce, deadline)`. `deadline` is in Unix seconds, inclusive.
    function transferWithAuthorization(uint256 serial, address to, uint256 deadline, bytes calldata signature)
        external
    {
        uint256 token = _tokens[serial];
        address owner = address(uint160(token));
        if (msg.sender != owner) revert NotOwner(msg.sender, serial, ownerOf(serial));
        if (!_isRecipient(to)) revert InvalidRecipient(to);
        uint256 nonce = _nonce(token);
        bytes32 content = keccak256(abi.encode(TRANSFER_TYPE, serial, owner, to, nonce, deadline));
        _useAuthorization(serial, nonce, content, deadline, signature);
        _transfer(serial, token, owner, to);
    }

    /// @notice The number of ownership changes so far, which the next authorization must carry. Zero: unclaimed.
    function authorizationNonce(uint256 serial) external view returns (uint256) {
        _requireIssued(serial);
        return _nonce(_tokens[serial]);
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

    /// @notice Binds `chip` instead of `previousChip`, until the claim. Without effect when it is bound already.
    function replaceChip(uint256 serial, uint40 previousChip, uint40 chip) external onlyOperator {
        if (chip == 0) revert InvalidChip(serial);
        uint40 current = chipOf(serial);
        if (current == chip) return;
        if (current != previousChip) revert ChipMismatch(serial, current, previousChip);
        uint256 token = _tokens[serial];
        if (address(uint160(token)) != address(0)) revert ChipLocked(serial);
        _tokens[serial] = uint256(chip) << CHIP_SHIFT;
        emit ChipReplaced(serial, previousChip, chip);
        emit MetadataUpdate(serial);
    }

    /// @notice The chip a token is bound to.
    function chipOf(uint256 serial) public view returns (uint40) {
        _requireIssued(serial);
        uint40 replacement = uint40(_tokens[serial] >> CHIP_SHIFT);
        return replacement == 0 ? _issuedChip(serial) : replacement;
    }

    /// @notice How many tokens were issued; the last serial.
    function issued() public view returns (uint256) {
        return _counts.issued;
    }

    /// @notice How many tokens were claimed.
    function claimed() external view returns (uint256) {
        return _counts.claimed;
    }

    /// @notice How many tokens exist, which is `issued`: none is ever destroyed.
    function totalSupply() external view returns (uint256) {
        return _counts.issued;
    }

    /// @notice ERC-721: the owner; the collection itself until the claim.
    function ownerOf(uint256 serial) public view returns (address) {
        _requireIssued(serial);
        address owner = address(uint160(_tokens[serial]));
        return owner == address(0) ? address(this) : owner;
    }

    /// @notice ERC-721: how many tokens `owner` has; the collection itself has the unclaimed ones.
    function balanceOf(address owner) external view returns (uint256) {
        if (owner == address(0)) revert ZeroAddress();
        if (owner == address(this)) return _counts.issued - _counts.claimed;
        return _balances[owner];
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

    /// @notice ERC-721: lets `operator` move all tokens of the caller, or no longer. Only after the release.
    function setApprovalForAll(address operator, bool approved) external onlyReleased {
        if (operator == address(0)) revert ZeroAddress();
        _approvedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    /// @notice ERC-721: who may move this token besides its owner.
    function getApproved(uint256 serial) public view returns (address) {
        _requireIssued(serial);
        return _approvals[serial];
    }

    /// @notice ERC-721: whether `operator` may move all tokens of `owner`.
    function isApprovedForAll(address owner, address operator) external view returns (bool) {
        return _approvedForAll[owner][operator];
    }

    /// @notice ERC-721: moves a claimed token. Only after the release.
    function transferFrom(address from, address to, uint256 serial) public onlyReleased {
        address owner = ownerOf(serial);
        if (from != owner) revert NotOwner(from, serial, owner);
        if (!_isRecipient(to)) revert InvalidRecipient(to);
        if (msg.sender != owner && !_approvedForAll[owner][msg.sender] && msg.sender != _approvals[serial]) {
            revert NotApproved(msg.sender, serial);
        }
        _transfer(serial, _tokens[serial], owner, to);
    }

    /// @notice ERC-721: moves a claimed token to an account or to a contract that accepts it. Only after the release.
    function safeTransferFrom(address from, address to, uint256 serial) external {
        safeTransferFrom(from, to, serial, "");
    }

    /// @notice ERC-721: moves a claimed token to an account or to a contract that accepts it. Only after the release.
    function safeTransferFrom(address from, address to, uint256 serial, bytes memory data) public {
        transferFrom(from, to, serial);
        if (to.code.length == 0) return;
        (bool success, bytes memory answer) =
            to.call(abi.encodeCall(ERC721Receiver.onERC721Received, (msg.sender, from, serial, data)));
        if (!success || bytes4(answer) != ERC721Receiver.onERC721Received.selector) revert UnsafeRecipient(to);
    }

    /// @notice ERC-721: the collection's name.
    function name() external view returns (string memory) {
        return _isClone() ? _text(CLONE_CODE_SIZE + 2, _nameSize()) : "";
    }

    /// @notice ERC-721: the collection's symbol.
    function symbol() external view returns (string memory) {
        if (!_isClone()) return "";
        uint256 start = CLONE_CODE_SIZE + 2 + _nameSize();
        return _text(start, address(this).code.length - start);
    }

    /// @notice ERC-721: empty; what a unit is, its owner reads from the service.
    function tokenURI(uint256 serial) external view returns (string memory) {
        _requireIssued(serial);
        return "";
    }

    /// @notice ERC-5192: whether plain transfers of the token are refused, which they are until the release.
    function locked(uint256 serial) external view returns (bool) {
        _requireIssued(serial);
        return !released();
    }

    /// @notice ERC-165: itself, ERC-721, its metadata, ERC-5192 and ERC-4906.
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f || id == 0xb45a3c0e || id == 0x49064906;
    }

    function _claim(uint256 serial, uint256 token, address recipient) private {
        _tokens[serial] = token | NONCE_ONE | uint160(recipient);
        unchecked {
            ++_balances[recipient];
        }
        emit Transfer(address(this), recipient, serial);
    }

    function _transfer(uint256 serial, uint256 token, address from, address to) private {
        unchecked {
            _tokens[serial] = ((token ^ uint160(from)) & ~APPROVED) + NONCE_ONE | uint160(to);
            --_balances[from];
            ++_balances[to];
        }
        if (token & APPROVED != 0) delete _approvals[serial];
        emit Transfer(from, to, serial);
    }

    function _useAuthorization(
        uint256 serial,
        uint256 nonce,
        bytes32 content,
        uint256 deadline,
        bytes calldata signature
    ) private {
        if (block.timestamp > deadline) revert AuthorizationExpired(deadline, block.timestamp);
        bytes32 domain =
            keccak256(abi.encode(DOMAIN_TYPE, DOMAIN_NAME, DOMAIN_VERSION, block.chainid, address(this)));
        bytes32 authorization = keccak256(abi.encodePacked(hex"1901", domain, content));
        address signer = _signer(authorization, signature);
        if (signer == address(0) || signer != authorizer()) revert InvalidAuthorization(serial, nonce);
        emit AuthorizationUsed(serial, authorization);
    }

    /// @dev Zero for anything but the one canonical form of a signature: 65 bytes, low s.
    function _signer(bytes32 digest, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > HALF_CURVE_ORDER) return address(0);
        return ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
    }

    function _requireIssuedAs(uint256 first, uint256 next, uint40[] calldata chips) private view {
        if (first == 0) revert NotIssued(0);
        for (uint256 i; i < chips.length; ++i) {
            uint256 serial = first + i;
            uint40 issuedChip = serial < next ? _issuedChip(serial) : 0;
            if (issuedChip != chips[i] || issuedChip == 0) revert IssuedDifferently(serial, issuedChip, chips[i]);
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

    function _isClaimBy(uint256 token, address recipient) private pure returns (bool) {
        return _nonce(token) == 1 && address(uint160(token)) == recipient;
    }

    function _nonce(uint256 token) private pure returns (uint256) {
        return uint48(token >> NONCE_SHIFT);
    }

    function _issuedChip(uint256 serial) private view returns (uint40) {
        (uint256 index, uint256 position) = _locate(serial);
        return uint40(_issuedChips[index] >> position);
    }

    /// @dev The word of a serial's chip, and the chip's lowest bit in it.
    function _locate(uint256 serial) private pure returns (uint256 index, uint256 position) {
        unchecked {
            index = (serial - 1) / CHIPS_PER_WORD;
            position = (serial - 1) % CHIPS_PER_WORD * CHIP_BITS;
        }
    }

    /// @dev A clone's code ends with the length of its name (two bytes), the name and the symbol.
    function _nameSize() private view returns (uint256 size) {
        assembly ("memory-safe") {
            mstore(0, 0)
            extcodecopy(address(), 30, CLONE_CODE_SIZE, 2)
            size := mload(0)
        }
    }

    function _text(uint256 start, uint256 size) private view returns (string memory text) {
        text = new string(size);
        assembly ("memory-safe") {
            extcodecopy(address(), add(text, 32), start, size)
        }
    }
}
