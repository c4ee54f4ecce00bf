import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { createPublicClient, type Hex, http } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { readDevEnvironment } from "../../src/dev/environment.ts"
import type { DevService } from "../../src/dev/start.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { createSigners } from "../../src/engine/chain/signers.ts"
import type { SunChip } from "../../src/engine/sun/message.ts"
import { createVirtualChip, emitSun } from "../../src/engine/sun/virtual-chip.ts"
import vectors from "../engine/vectors/ntag424.json"
import { type Contract, contractAt } from "../harness/contracts.ts"
import { newFolder, removeDevServices, root, startDev } from "../harness/dev-service.ts"

// Encoded chips from the operator's file to the chain: everything over HTTP, next to a dev service.

let folder: string
let service: DevService

beforeAll(async () => {
  folder = newFolder()
  service = (await startDev(folder)).service
}, 60_000)
afterAll(removeDevServices)

test("a message printed by NXP is accepted as a tap of the chip that was imported with its keys", async () => {
  const first = published("AN12196 table 4")
  const later = published("AN12196 table 6")
  const chip_id = "04958CAA5C"
  importChips([{ chip_id, uid: first.uid, meta_key: first.metaKey, file_key: first.fileKey }])
  const { unit } = await issuedUnit({ chip_id, e: first.e })

  const tap = await post("/v1/taps", { chip_id, e: later.e })
  expect(tap.chip.chip_id).toBe(chip_id)
  expect(tap.unit.id).toBe(unit.id)
  expect(tap.session_token.token).toStartWith("end_sess_")
  const { taps } = await get(`/v1/taps?chip_id=${chip_id}`)
  expect(taps).toMatchObject([{ id: tap.id, counter: 8, skipped: 6 }])
  expect(await refusal("/v1/taps", { chip_id, e: first.e })).toBe("409 chip.already_scanned")
}, 60_000)

describe("an imported chip that replaced another one", () => {
  const [old, present, spare] = [newTag(), newTag(), newTag()]
  const proof = read(present, 1)
  let unitPath: string
  let serial: bigint
  let contract: Contract
  let oldToken: string

  beforeAll(async () => {
    importChips([old, present, spare].map(lineOf))
    const { unit, address } = await issuedUnit(read(old, 1))
    unitPath = `/v1/units/${unit.id}`
    serial = BigInt(unit.collection.token.serial)
    contract = contractAt(chainOf(service), address, collectionAbi)
    oldToken = (await post("/v1/taps", read(old, 2))).session_token.token
    const { id } = await post(`${unitPath}/chip-replacements`, proof)
    await poll(`${unitPath}/chip-replacements/${id}`, ({ status }) => status === "confirmed")
  }, 60_000)

  const replaceOnChain = (from: Tag, to: Tag) =>
    contract.refusal(ownershipSigner(), "replaceChip", serial, numberOf(from), numberOf(to))

  test("is the one named by the chain and the unit", async () => {
    expect(await contract.read("chipOf", serial)).toBe(Number(numberOf(present)))
    expect((await get(unitPath)).chip_id).toBe(present.chip_id)
  })

  test("leaves the old one without a unit", async () => {
    expect(await refusal("/v1/taps", read(old, 3))).toBe("404 unit.not_found")
  })

  test("invalidates the old one's sessions", async () => {
    const body = { recipient: service.wallets[0]?.address }
    expect(await refusal(`${unitPath}/claims`, body, oldToken)).toBe("401 session_token.invalid_or_expired")
  })

  test("cannot be tapped with the value that proved possession of it", async () => {
    expect(await refusal("/v1/taps", proof)).toBe("409 chip.already_scanned")
  })

  test("can be tapped with its next value", async () => {
    expect((await post("/v1/taps", read(present, 2))).unit.id).toBe(unitPath.split("/").at(-1))
  })

  test("could be replaced again according to the contract", async () => {
    expect(await replaceOnChain(present, spare)).toBeNull()
  })

  describe("once its unit is claimed", () => {
    beforeAll(async () => {
      const { session_token } = await post("/v1/taps", read(present, 3))
      const body = { recipient: service.wallets[0]?.address }
      const { id } = await ask("POST", `${unitPath}/claims`, { body, as: session_token.token })
      await poll(`${unitPath}/claims/${id}`, ({ status }) => status === "claimed")
    }, 60_000)

    test("cannot be replaced by the API", async () => {
      expect(await refusal(`${unitPath}/chip-replacements`, read(spare, 1))).toBe(
        "409 chip_replacement.locked",
      )
    })

    test("cannot be replaced by the contract either, even for the service's own signer", async () => {
      expect(await replaceOnChain(present, spare)).toEqual(["ChipLocked", serial])
    })
  })
})

function published(name: string) {
  const row = vectors.sun.find((each) => each.name === name)
  if (!row?.uid) throw new Error(`there is no vector ${name}`)
  return { ...row, uid: row.uid }
}

/** A chip as it leaves the encoder: the test has its keys. */
type Tag = SunChip & { chip_id: string }

function newTag(): Tag {
  return { ...createVirtualChip(), chip_id: hex(randomBytes(5)).toUpperCase() }
}

/** What the chip sends at its nth read. */
function read(tag: Tag, counter: number) {
  return { chip_id: tag.chip_id, ...emitSun(tag, counter) }
}

function lineOf({ chip_id, uid, metaKey, fileKey }: Tag): Record<string, string> {
  return { chip_id, uid: hex(uid), meta_key: hex(metaKey), file_key: hex(fileKey) }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex")
}

/** A chip ID as the contract stores it. */
function numberOf({ chip_id }: Tag): bigint {
  return BigInt(`0x${chip_id}`)
}

function importChips(lines: Record<string, string>[]): void {
  const file = join(folder, "chips.json")
  writeFileSync(file, JSON.stringify(lines))
  const { exitCode, stderr } = Bun.spawnSync(
    [
      process.execPath,
      join(root, "src/operator.ts"),
      ...["chips", "import", "--organization", service.organization_id, "--file", file],
    ],
    { env: { ...process.env, DATA_DIR: folder } },
  )
  expect({ exitCode, stderr: stderr.toString() }).toMatchObject({ exitCode: 0 })
}

/** An issued unit of a new collection with an imported chip, and its contract's address. */
async function issuedUnit(chip: { chip_id: string; e: string }): Promise<{ unit: Resource; address: Hex }> {
  const { id: collection_id } = await post("/v1/collections", { name: "Imported" })
  const { contract } = await poll(
    `/v1/collections/${collection_id}`,
    ({ contract }) => contract.status === "active",
  )
  const { id: unit_id } = await post("/v1/units", { collection_id })
  await post("/v1/chips", { unit_id, ...chip })
  const unit = await poll(`/v1/units/${unit_id}`, (now) => now.collection.token.status === "active")
  return { unit, address: contract.address }
}

function chainOf({ chain }: DevService) {
  const client = createPublicClient({ chain: foundry, transport: http(chain.rpc_url), cacheTime: 0 })
  return { client, stop: async () => {} }
}

/** The service's account that replaces chips. */
function ownershipSigner(): Hex {
  const keys = readDevEnvironment(folder).SIGNER_KEYS?.split(",") as Hex[]
  const signers = createSigners(
    service.chain.id,
    keys.map((key) => privateKeyToAccount(key)),
  )
  const signer = signers.find(({ purpose }) => purpose === "ownership")
  if (!signer) throw new Error("the dev service has no signer for chip replacements")
  return signer.address
}

// biome-ignore lint/suspicious/noExplicitAny: the test inspects the response
type Resource = any

type Question = { body?: unknown; as?: string | undefined }

async function send(method: string, path: string, { body, as = service.api_key }: Question) {
  const response = await fetch(`${service.base_url}${path}`, {
    method,
    headers: { authorization: `Bearer ${as}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, isDone: response.ok, answer: (await response.json()) as Resource }
}

async function ask(method: string, path: string, question: Question = {}): Promise<Resource> {
  const { isDone, answer } = await send(method, path, question)
  if (!isDone) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
  return answer
}

function get(path: string): Promise<Resource> {
  return ask("GET", path)
}

function post(path: string, body: unknown): Promise<Resource> {
  return ask("POST", path, { body })
}

/** Returns the status and code of an error. */
async function refusal(path: string, body: unknown, as?: string): Promise<string> {
  const { status, answer } = await send("POST", path, { body, as })
  return `${status} ${answer.error?.code}`
}

async function poll(path: string, isThere: (resource: Resource) => boolean): Promise<Resource> {
  for (;;) {
    const resource = await get(path)
    if (isThere(resource)) return resource
    await Bun.sleep(200)
  }
}
