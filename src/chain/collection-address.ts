import {
  type Address,
  concatHex,
  getContractAddress,
  type Hex,
  keccak256,
  numberToHex,
  size,
  stringToHex,
} from "viem"

/**
 * The address at which the factory deploys a collection, known before the deployment.
 * The collection's code is an ERC-1167 proxy followed by the length of the name, the name and the symbol
 * (`_creationCode` of contracts/ServiceFactory.sol); the address is that of CREATE2 (EIP-1014).
 */
export function collectionAddress(collection: {
  factory: Address
  implementation: Address
  salt: Hex
  name: string
  symbol: string
}): Address {
  const name = stringToHex(collection.name)
  const code = concatHex([
    "0x363d3d373d3d3d363d73",
    collection.implementation,
    "0x5af43d82803e903d91602b57fd5bf3",
    numberToHex(size(name), { size: 2 }),
    name,
    stringToHex(collection.symbol),
  ])
  return getContractAddress({
    opcode: "CREATE2",
    from: collection.factory,
    salt: collection.salt,
    bytecode: concatHex(["0x61", numberToHex(size(code), { size: 2 }), "0x3d81600a3d39f3", code]),
  })
}

/** The CREATE2 salt of a collection: keccak256 of the 16 bytes of its UUID. */
export function collectionSalt(collectionId: string): Hex {
  return keccak256(`0x${collectionId.replaceAll("-", "")}`)
}
