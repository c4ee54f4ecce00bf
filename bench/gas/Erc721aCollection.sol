// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC721A} from "erc721a/contracts/ERC721A.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ServiceRules} from "./ServiceRules.sol";

/// @title ERC721A with a mapping for chips (its extra data has 24 bits, too few) and one for nonces. Custody is the operator's
/// account: ERC721A has no transfer without a check of the caller, so this is the cheapest way.
contract Erc721aCollection is ERC721A, EIP712, ServiceRules {
    mapping(uint256 serial => uint40) public chipOf;
    mapping(uint256 serial => uint256) private _nonces;

    constructor(string memory name, string memory symbol, address operator, address firstAuthorizer)
        ERC721A(name, symbol)
        EIP712("service-api", "1")
        ServiceRules(operator, firstAuthorizer)
    {}

    function issue(uint40[] calldata chips) external onlyOperator {
        uint256 first = _nextTokenId();
        for (uint256 i; i < chips.length; ++i) {
            chipOf[first + i] = chips[i];
            emit ChipSet(first + i, chips[i]);
        }
        _mint(msg.sender, chips.length);
    }

    function replaceChip(uint256 serial, uint40 previousChip, uint40 chip) external onlyOperator {
        if (ownerOf(serial) != msg.sender) revert AlreadyClaimed();
        if (chipOf[serial] != previousChip) revert ChipMismatch();
        chipOf[serial] = chip;
        emit ChipSet(serial, chip);
    }

    function transferWithAuthorization(uint256 serial, address to, uint256 deadline, bytes calldata signature)
        external
    {
        if (ownerOf(serial) != msg.sender) revert NotOwner();
        if (block.timestamp > deadline) revert Expired();
        bytes32 digest =
            _hashTypedDataV4(keccak256(abi.encode(TRANSFER_TYPE, serial, msg.sender, to, _nonces[serial]++, deadline)));
        if (ECDSA.recoverCalldata(digest, signature) != authorizer) revert InvalidAuthorization();
        emit AuthorizationUsed(serial, digest);
        super.transferFrom(msg.sender, to, serial);
    }

    function approve(address, uint256) public payable override {
        revert TransfersLocked();
    }

    function setApprovalForAll(address, bool) public pure override {
        revert TransfersLocked();
    }

    function transferFrom(address, address, uint256) public payable override {
        revert TransfersLocked();
    }

    function _claim(uint256 serial, address recipient) internal override {
        if (ownerOf(serial) != msg.sender) revert AlreadyClaimed();
        super.transferFrom(msg.sender, recipient, serial);
    }

    function _startTokenId() internal pure override returns (uint256) {
        return 1;
    }
}
