import { afterAll, afterEach, beforeAll, describe, expect, jest, mock, test } from "bun:test"
import {
  type Hex,
  hashMessage,
  hexToBigInt,
  keccak256,
  type LocalAccount,
  parseTransaction,
  recoverAddress,
  recoverMessageAddress,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  type TransactionSerializedEIP1559,
} from "viem"
import { privateKeyToAddress } from "viem/accounts"
import { awsKeyService } from "../../src/engine/chain/key-services/aws-key-service.ts"
import { gcpKeyService } from "../../src/engine/chain/key-services/gcp-key-service.ts"
import {
  type KeyService,
  keyServiceAccount,
  SignerUnavailable,
  untilUnavailable,
} from "../../src/engine/chain/key-services/key-service-account.ts"
import { openSignerAccounts } from "../../src/engine/chain/signers.ts"
import { type FakeKeyService, startAwsKms, startGcpKms } from "../harness/key-services.ts"

const privateKey: Hex = `0x${"1a".repeat(32)}`
const address = privateKeyToAddress(privateKey)
const otherKey: Hex = `0x${"2b".repeat(32)}`
const halfOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n / 2n

const aws = startAwsKms(privateKey)
const gcp = startGcpKms(privateKey)
const gcpName = "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/issuing/cryptoKeyVersions/1"

/** The cloud SDKs read credentials and endpoints from the environment. */
const environment: Record<string, string> = {
  AWS_ENDPOINT_URL_KMS: aws.url,
  AWS_ACCESS_KEY_ID: "somebody",
  AWS_SECRET_ACCESS_KEY: "not a secret",
  AWS_REGION: "eu-west-1",
  GCE_METADATA_HOST: gcp.url.replace("http://", ""),
  METADATA_SERVER_DETECTION: "assume-present",
}
const before = Object.fromEntries(Object.keys(environment).map((name) => [name, process.env[name]]))
beforeAll(() => void Object.assign(process.env, environment))
afterAll(() => {
  for (const [name, value] of Object.entries(before))
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  aws.stop()
  gcp.stop()
})
afterEach(() => {
  for (const service of [aws, gcp])
    Object.assign(service, { asked: [], throttles: 0, silent: 0, delay_milliseconds: 0, signs_instead: null })
})

const services: [cloud: string, fake: FakeKeyService, connect: () => Promise<KeyService>][] = [
  ["AWS KMS", aws, () => awsKeyService("arn:aws:kms:eu-west-1:123456789012:key/issuing")],
  ["Google Cloud KMS", gcp, () => gcpKeyService(gcpName, gcp.url)],
]

const transaction = {
  type: "eip1559",
  chainId: 31_337,
  nonce: 7,
  to: address,
  data: "0x1234",
  gas: 21_000n,
  maxFeePerGas: 2_000_000_000n,
  maxPriorityFeePerGas: 1n,
} as const

for (const [cloud, fake, connect] of services)
  describe(`a key that stays in ${cloud}`, () => {
    const open = async () => await keyServiceAccount(await connect())

    test("has the address of its public key, which is fetched once", async () => {
      const account = await open()
      expect(account.address).toBe(address)
      await account.signTransaction(transaction)
      expect(fake.asked.filter((what) => /publicKey/i.test(what))).toHaveLength(1)
    })

    test("signs transactions that a chain accepts, each time with another signature", async () => {
      const account = await open()
      const signed = await Promise.all(Array.from({ length: 12 }, () => account.signTransaction(transaction)))
      for (const raw of signed) await expectTaken(raw as TransactionSerializedEIP1559)
      expect(new Set(signed.map((raw) => keccak256(raw))).size).toBe(12)
    })

    test("signs digests, messages and typed data", async () => {
      const account = await open()
      const hash = hashMessage("anything")
      expect(await recoverAddress({ hash, signature: await signOf(account, hash) })).toBe(address)
      const message = "anything"
      const signature = await account.signMessage({ message })
      expect(await recoverMessageAddress({ message, signature })).toBe(address)
      const typed = {
        domain: { name: "service-api", chainId: 1 },
        types: { Claim: [{ name: "serial", type: "uint256" }] },
        primaryType: "Claim",
        message: { serial: 1n },
      } as const
      const signedText = await account.signTypedData(typed)
      expect(await recoverTypedDataAddress({ ...typed, signature: signedText })).toBe(address)
    })

    test("signs as soon as it is no longer throttled", async () => {
      const account = await open()
      fake.throttles = 1
      await expectTaken((await account.signTransaction(transaction)) as TransactionSerializedEIP1559)
    })

    test("returns no signature made by another key or over another text", async () => {
      const account = await open()
      fake.signs_instead = new Uint8Array(32).fill(7)
      await expect(account.signTransaction(transaction)).rejects.toBeInstanceOf(SignerUnavailable)
      await expect(account.signTransaction(transaction)).rejects.toThrow(
        `the key service of ${address} did not sign: its signature is from another key or of another digest`,
      )
    })
  })

test("a request that a cloud does not answer is made again", async () => {
  await Promise.all(
    services.map(async ([_cloud, fake, connect]) => {
      const account = await keyServiceAccount(await connect())
      fake.silent = 1
      await expectTaken((await account.signTransaction(transaction)) as TransactionSerializedEIP1559)
    }),
  )
})

test("a key service that stays silent is not waited for for ever", async () => {
  const service = await awsKeyService("alias/issuing")
  const account = await keyServiceAccount({ ...service, sign: () => new Promise(() => {}) })
  jest.useFakeTimers()
  const signed = account.signTransaction(transaction).catch((error: Error) => error.message)
  await Promise.resolve()
  jest.advanceTimersByTime(20_000)
  jest.useRealTimers()
  expect(await signed).toBe(`the key service of ${address} did not sign: it has not answered for 20 s`)
})

test("a round of a lane asks a key service no more once it has failed", async () => {
  const service = await awsKeyService("alias/issuing")
  const sign = mock(() => Promise.reject(new Error("throttled")))
  const account = untilUnavailable(await keyServiceAccount({ ...service, sign }))
  for (let each = 0; each < 2; each++)
    await expect(account.signTransaction(transaction)).rejects.toThrow("did not sign: throttled")
  expect(sign).toHaveBeenCalledTimes(1)
})

describe("an invalid DER signature", () => {
  const signature = "3006020101020102"
  const wrong: [what: string, der: string][] = [
    ["nothing", ""],
    ["a truncated sequence", "30060201010201"],
    ["trailing bytes", `${signature}00`],
    ["a wrong length", "3007020101020102"],
    ["empty integers", "300402000200"],
    ["another number type", "3006030101020102"],
  ]
  for (const [what, der] of wrong)
    test(`is rejected: ${what}`, async () => {
      const service = await awsKeyService("alias/issuing")
      const broken = { ...service, sign: async () => new Uint8Array(Buffer.from(der, "hex")) }
      const account = await keyServiceAccount(broken)
      await expect(account.signTransaction(transaction)).rejects.toThrow("its signature is not DER-encoded")
    })
})

describe("SIGNER_KEYS", () => {
  test("may contain keys of all kinds, in their order", async () => {
    const accounts = await openSignerAccounts([otherKey, "aws-kms:alias/issuing"])
    expect(accounts.map((account) => account.address)).toEqual([privateKeyToAddress(otherKey), address])
  })

  test("may not contain one key twice, whatever it is called", async () => {
    await expect(openSignerAccounts([privateKey, "aws-kms:alias/issuing"])).rejects.toThrow(
      `SIGNER_KEYS: key number 2 is a duplicate of an earlier one, ${address}; every lane needs its own key`,
    )
  })

  test("with a key of another curve stop the start with one line", async () => {
    const service: KeyService = {
      publicKey: async () => new Uint8Array(91),
      sign: async () => new Uint8Array(),
    }
    await expect(keyServiceAccount(service)).rejects.toThrow("the key is not a secp256k1 key")
  })

  test("that cannot be reached stop the start with one line that names the key by its position", async () => {
    const url = process.env.AWS_ENDPOINT_URL_KMS
    process.env.AWS_ENDPOINT_URL_KMS = "http://127.0.0.1:9"
    const opened = openSignerAccounts([otherKey, "aws-kms:alias/issuing"]).catch(
      (error: Error) => error.message,
    )
    const said = await opened
    process.env.AWS_ENDPOINT_URL_KMS = url
    expect(said).toStartWith("SIGNER_KEYS: key number 2 cannot be used: ")
    expect(said).not.toContain("\n")
  })
})

/** Checks that a chain would accept a signature of the account: low s (EIP-2). */
async function expectTaken(raw: TransactionSerializedEIP1559): Promise<void> {
  expect(await recoverTransactionAddress({ serializedTransaction: raw })).toBe(address)
  const { s, ...content } = parseTransaction(raw)
  expect(hexToBigInt(s ?? "0x")).toBeLessThanOrEqual(halfOrder)
  expect(content).toMatchObject({ ...transaction, to: address.toLowerCase() as Hex })
}

async function signOf(account: LocalAccount, hash: Hex): Promise<Hex> {
  if (!account.sign) throw new Error("the account signs no digests")
  return await account.sign({ hash })
}
