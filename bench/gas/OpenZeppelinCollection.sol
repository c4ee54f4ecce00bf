// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ServiceRules} from "./ServiceRules.sol";

/// @title OpenZeppelin ERC-721 with a mapping for chips and one for nonces.
contract OpenZeppelinCollection is ERC721, EIP712, ServiceRules {
    uint256 private _issued;
    mapping(uint256 serial => uint40) public chipOf;
    mapping(uint256 serial => uint256) private _nonces;

    constructor(string memory name, string memory symbol, address operator, address firstAuthorizer)
        ERC721(name, symbol)
        EIP712("service-api", "1")
        ServiceRules(operator, firstAuthorizer)
    {}

    function issue(uint40[] calldata chips) external onlyOperator {
        uint256 serial = _issued;
        for (uint256 i; i < chips.length; ++i) {
            chipOf[++serial] = chips[i];
            _mint(address(this), serial);
            emit ChipSet(serial, chips[i]);
        }
        _issued = serial;
    }

    function replaceChip(uint256 serial, uint40 previousChip, uint40 chip) external onlyOperator {
        if (ownerOf(serial) != address(this)) revert AlreadyClaimed();
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
        _transfer(msg.sender, to, serial);
    }

    function approve(address, uint256) public pure override {
        revert TransfersLocked();
    }

    function setApprovalForAll(address, bool) public pure override {
        revert TransfersLocked();
    }

    function transferFrom(address, address, uint256) public pure override {
        revert TransfersLocked();
    }

    function _claim(uint256 serial, address recipient) internal override {
        if (ownerOf(serial) != address(this)) revert AlreadyClaimed();
        _transfer(address(this), recipient, serial);
    }
}
