import {
  type Address,
  bytesToBigInt,
  bytesToHex,
  concatBytes,
  type Hex,
  hashMessage,
  hashTypedData,
  hexToBytes,
  isAddressEqual,
  keccak256,
  type LocalAccount,
  numberToHex,
  recoverAddress,
  serializeSignature,
  serializeTransaction,
} from "viem"
import { publicKeyToAddress, toAccount } from "viem/accounts"
import { curveOrder } from "../../../platform/key-settings.ts"

/** A secp256k1 key that never leaves the service that keeps it. */
export type KeyService = {
  /** DER of RFC 5480, SubjectPublicKeyInfo. */
  publicKey(): Promise<Uint8Array>
  /** DER of RFC 3279, section 2.2.3: a signature of the 32 bytes as they are, with whatever k the service takes. */
  sign(digest: Uint8Array): Promise<Uint8Array>
}

/** The key service did not sign. Nothing was sent, and it is asked again. */
export class SignerUnavailable extends Error {
  override name = "SignerUnavailable"
}

type Signature = { r: Hex; s: Hex; yParity: 0 | 1 }

/** An account that signs through a key service. Its address is asked for once, here. Throws what the service throws. */
export async function keyServiceAccount(service: KeyService): Promise<LocalAccount> {
  const address = publicKeyToAddress(uncompressedPoint(await service.publicKey()))

  async function sign(hash: Hex): Promise<Signature> {
    try {
      return await ethereumSignature(await service.sign(hexToBytes(hash)), hash, address)
    } catch (error) {
      const [said] = (error as Error).message.split("\n")
      throw new SignerUnavailable(`the key service of ${address} does not sign: ${said}`)
    }
  }

  return toAccount({
    address,
    sign: async ({ hash }) => serializeSignature(await sign(hash)),
    signMessage: async ({ message }) => serializeSignature(await sign(hashMessage(message))),
    signTypedData: async (typed) => serializeSignature(await sign(hashTypedData(typed))),
    async signTransaction(transaction, { serializer = serializeTransaction } = {}) {
      const signature = await sign(keccak256(await serializer(transaction)))
      return await serializer(transaction, signature)
    },
  }) as LocalAccount
}

/** What SubjectPublicKeyInfo begins with for an uncompressed point of secp256k1: all of it but the point. */
const pointPrefix = hexToBytes("0x3056301006072a8648ce3d020106052b8104000a034200")
const pointBytes = 65

function uncompressedPoint(der: Uint8Array): Hex {
  const isOfCurve = pointPrefix.every((byte, index) => der[index] === byte)
  if (!isOfCurve || der.length !== pointPrefix.length + pointBytes)
    throw new Error("the key is not of the curve secp256k1 (ECC_SECG_P256K1, EC_SIGN_SECP256K1_SHA256)")
  return bytesToHex(der.subarray(pointPrefix.length))
}

/** Of the two values that s may have, EIP-2 takes the lower one. */
async function ethereumSignature(der: Uint8Array, hash: Hex, address: Address): Promise<Signature> {
  const [first, second] = integersOf(der)
  const r = numberToHex(first, { size: 32 })
  const s = numberToHex(second > curveOrder / 2n ? curveOrder - second : second, { size: 32 })
  for (const yParity of [0, 1] as const) {
    const signer = await recoverAddress({ hash, signature: { r, s, yParity } }).catch(() => null)
    if (signer && isAddressEqual(signer, address)) return { r, s, yParity }
  }
  throw new Error("its signature is of another key or another text")
}

/** A sequence of two integers and nothing else (X.690, sections 8.3 and 8.9). */
function integersOf(der: Uint8Array): [bigint, bigint] {
  const wrong = new Error("its signature is not in DER")
  const lengthOf = (at: number) => der[at] ?? 0
  const firstLength = lengthOf(3)
  const secondAt = 4 + firstLength
  const secondLength = lengthOf(secondAt + 1)
  const shape = concatBytes([
    new Uint8Array([0x30, der.length - 2, 0x02, firstLength]),
    der.subarray(4, secondAt),
    new Uint8Array([0x02, secondLength]),
    der.subarray(secondAt + 2, secondAt + 2 + secondLength),
  ])
  if (firstLength === 0 || secondLength === 0 || Buffer.compare(shape, der) !== 0) throw wrong
  return [bytesToBigInt(der.subarray(4, secondAt)), bytesToBigInt(der.subarray(secondAt + 2))]
}
