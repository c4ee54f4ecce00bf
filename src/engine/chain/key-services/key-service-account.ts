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
import { within } from "../../../platform/deadline.ts"
import { curveOrder } from "../../../platform/key-settings.ts"

/** A secp256k1 key that never leaves its key service. */
export type KeyService = {
  /** Returns a SubjectPublicKeyInfo in DER (RFC 5480). */
  publicKey(): Promise<Uint8Array>
  /** Signs the 32 bytes as they are, with a k that the service chooses. Returns DER (RFC 3279, section 2.2.3). */
  sign(digest: Uint8Array): Promise<Uint8Array>
}

/** The key service did not sign. Nothing was sent, and signing is retried. */
export class SignerUnavailable extends Error {
  override name = "SignerUnavailable"
}

type Signature = { r: Hex; s: Hex; yParity: 0 | 1 }

/** Longer than the attempts of a cloud's client take together, of which some requests have no timeout. */
const patienceMilliseconds = 20_000
const tooLate = `it has not answered for ${patienceMilliseconds / 1_000} s`

/**
 * Returns an account that signs through a key service. Reads its address once, here. Throws what the service throws, or
 * an error if it is silent.
 */
export async function keyServiceAccount(service: KeyService): Promise<LocalAccount> {
  const publicKey = await within(service.publicKey(), patienceMilliseconds, tooLate)
  const address = publicKeyToAddress(uncompressedPoint(publicKey))

  async function sign(hash: Hex): Promise<Signature> {
    try {
      const signed = await within(service.sign(hexToBytes(hash)), patienceMilliseconds, tooLate)
      return await ethereumSignature(signed, hash, address)
    } catch (error) {
      const [said] = (error as Error).message.split("\n")
      throw new SignerUnavailable(`the key service of ${address} did not sign: ${said}`)
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

/**
 * Returns an account that signs no more transactions after a key service has failed once, because each further one
 * would wait as long. For a round of a lane; the next one tries again.
 */
export function untilUnavailable(account: LocalAccount): LocalAccount {
  let unavailable: SignerUnavailable | undefined
  const signTransaction: LocalAccount["signTransaction"] = async (...given) => {
    if (unavailable) throw unavailable
    return await account.signTransaction(...given).catch((error: unknown) => {
      if (error instanceof SignerUnavailable) unavailable = error
      throw error
    })
  }
  return { ...account, signTransaction }
}

/** The start of a SubjectPublicKeyInfo with an uncompressed secp256k1 point: everything before the point. */
const pointPrefix = hexToBytes("0x3056301006072a8648ce3d020106052b8104000a034200")
const pointBytes = 65

function uncompressedPoint(der: Uint8Array): Hex {
  const isOfCurve = pointPrefix.every((byte, index) => der[index] === byte)
  if (!isOfCurve || der.length !== pointPrefix.length + pointBytes)
    throw new Error("the key is not a secp256k1 key (ECC_SECG_P256K1, EC_SIGN_SECP256K1_SHA256)")
  return bytesToHex(der.subarray(pointPrefix.length))
}

/** Normalizes s to the lower of its two values, as EIP-2 requires, and finds the recovery bit. */
async function ethereumSignature(der: Uint8Array, hash: Hex, address: Address): Promise<Signature> {
  const [first, second] = integersOf(der)
  const r = numberToHex(first, { size: 32 })
  const s = numberToHex(second > curveOrder / 2n ? curveOrder - second : second, { size: 32 })
  for (const yParity of [0, 1] as const) {
    const signer = await recoverAddress({ hash, signature: { r, s, yParity } }).catch(() => null)
    if (signer && isAddressEqual(signer, address)) return { r, s, yParity }
  }
  throw new Error("its signature is from another key or of another digest")
}

/** Parses a sequence of exactly two integers (X.690, sections 8.3 and 8.9). */
function integersOf(der: Uint8Array): [bigint, bigint] {
  const wrong = new Error("its signature is not DER-encoded")
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
