import {
  type Address,
  concatHex,
  encodeAbiParameters,
  getContractAddress,
  type Hex,
  keccak256,
  numberToHex,
  size,
  stringToHex,
} from "viem"
import type { Generation } from "./generations.ts"

type NamedCollection = {
  factory: Address
  /** The `collectionSalt` of its id. */
  salt: Hex
  name: string
  symbol: string
}

/**
 * Returns the address at which the factory deploys a collection, known before the
 * deployment: that of CREATE2 (EIP-1014).
 */
export function collectionAddress(generation: Generation, collection: NamedCollection): Address {
  const creation =
    generation === 1
      ? { salt: collection.salt, bytecode: creationCodeOfFirst(collection) }
      : { salt: saltOf(collection), bytecode: creationCode(collection) }
  return getContractAddress({ opcode: "CREATE2", from: collection.factory, ...creation })
}

/** Returns the address of the implementation, which is the first contract that the factory's constructor deploys. */
export function implementationOf(factory: Address): Address {
  return getContractAddress({ from: factory, nonce: 1n })
}

/** Returns the salt of a collection: keccak256 of the 16 bytes of its UUID. */
export function collectionSalt(collectionId: string): Hex {
  return keccak256(`0x${collectionId.replaceAll("-", "")}`)
}

const proxyHead = "0x363d3d373d3d3d363d73"
const proxyTail = "0x5af43d82803e903d91602b57fd5bf3"

/** Returns the creation code of an exact ERC-1167 proxy (`_creationCode` in contracts/ServiceFactory.sol). */
function creationCode({ factory }: NamedCollection): Hex {
  return concatHex(["0x602d3d8160093d39f3", proxyHead, implementationOf(factory), proxyTail])
}

/** Name and symbol go into the salt, because all collections have the same code. */
function saltOf({ salt, name, symbol }: NamedCollection): Hex {
  const types = [{ type: "bytes32" }, { type: "string" }, { type: "string" }] as const
  return keccak256(encodeAbiParameters(types, [salt, name, symbol]))
}

/** In the first generation, the length of the name, the name and the symbol follow the proxy's code. */
function creationCodeOfFirst({ factory, name, symbol }: NamedCollection): Hex {
  const code = concatHex([
    proxyHead,
    implementationOf(factory),
    proxyTail,
    numberToHex(size(stringToHex(name)), { size: 2 }),
    stringToHex(name),
    stringToHex(symbol),
  ])
  return concatHex(["0x61", numberToHex(size(code), { size: 2 }), "0x3d81600a3d39f3", code])
}
