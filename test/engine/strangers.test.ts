import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { claims, transfers } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { createChipReplacement, getChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createTransfer, getTransfer, prepareTransfer } from "../../src/resources/transfers/service.ts"
import { accountAt } from "../faults/stage.ts"
import { anotherUnit, issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"
import { sessionOf } from "../harness/ownership.ts"
import { chipRowOf, unitRowOf } from "../harness/unit-rows.ts"

// Two wallets on a chain: one belongs to the buyer, the other to someone who stood next to the product and tapped it.

setDefaultTimeout(30_000)
const [buyer, stranger] = [accountAt(7), accountAt(8)]
const room = 5
let running: RunningWorkers
let collection: { collection_id: string; address: Address; first: string | null }

beforeAll(async () => {
  running = await openEngine()
  const { unit_id, collection_id, address } = await issuedUnit(running)
  collection = { collection_id, address, first: unit_id }
})
afterAll(() => running.close())

describe("a stranger with a tap and unsent authorizations", () => {
  test("does not delay a buyer's claim, whether relayed or sent by the buyer", async () => {
    for (const execution of ["service_relay", "client_broadcast"] as const) {
      const tapped = await tappedUnit()
      const unsent = await fillWithClaims(tapped)
      const bought = await claim(tapped.session(), tapped, buyer.address, execution)
      if (bought.transaction) await send(buyer, bought.transaction)
      await until(async () => (await claimNow(tapped, bought.id)).status === "claimed")
      expect(await ownerOf(tapped)).toBe(buyer.address)
      await areSuperseded(tapped, unsent)
      expect(await send(stranger, unsent[0]?.transaction)).toBe("reverted")
      expect(await ownerOf(tapped)).toBe(buyer.address)
    }
  })

  test("does not delay the brand's chip replacement, and cannot claim past it", async () => {
    const tapped = await tappedUnit()
    const unsent = await fillWithClaims(tapped)
    const { context, caller, turn } = running
    const asked = { unit_id: tapped.unit_id, body: { is_test: true } }
    const world = { secret: context.config.service_secret, chains: context.chains }
    const { id } = await turn((t) => createChipReplacement(t, world, caller, asked))
    const statusNow = () =>
      getChipReplacement(context.db.read, caller, tapped.unit_id, id).then(({ status }) => status)
    await until(async () => (await statusNow()) === "confirmed")
    await areSuperseded(tapped, unsent)
    expect(await send(stranger, unsent[0]?.transaction)).toBe("reverted")
    expect(await ownerOf(tapped)).toBe(collection.address)
  })

  test("does not delay the owner's transfer, and cannot send one", async () => {
    const tapped = await tappedUnit()
    const bought = await claim(tapped.session(), tapped, buyer.address, "service_relay")
    await until(async () => (await claimNow(tapped, bought.id)).status === "claimed")
    const heir = accountAt(9).address
    const thief = tapped.session()
    const unsent = await Promise.all(
      Array.from({ length: room }, () => transfer(thief, tapped, stranger.address)),
    )
    expect(await send(stranger, unsent[0]?.transaction)).toBe("reverted")
    const given = await transfer(tapped.session(), tapped, heir)
    expect(await send(buyer, given.transaction)).toBe("success")
    const { read } = running.context.db
    const now = (id: string) => getTransfer(read, running.caller, tapped.unit_id, id)
    await until(async () => (await now(given.id)).status === "confirmed")
    expect(await ownerOf(tapped)).toBe(heir)
    await until(async () => {
      const rows = await read.select().from(transfers).where(eq(transfers.unit_id, tapped.unit_id))
      return rows.every(({ status }) => status !== "prepared")
    })
    for (const { id } of unsent)
      expect(await now(id)).toMatchObject({ status: "failed", failure: { code: "transfer.superseded" } })
  })
})

type Tapped = { unit_id: string; serial: bigint; session(): Caller }
type Payload = { to: string; data: string } | null

/** An unclaimed unit on the chain, and as many sessions of its chip as people tap it. */
async function tappedUnit(): Promise<Tapped> {
  const unit_id = collection.first ?? (await anotherUnit(running, collection.collection_id))
  collection.first = null
  const { read } = running.context.db
  const { serial } = await unitRowOf(read, unit_id)
  const { chip_id } = await chipRowOf(read, unit_id)
  const session = () => sessionOf(running.caller, chip_id, unit_id)
  return { unit_id, serial: BigInt(serial ?? 0), session }
}

/** As many claims for the stranger's wallet as one session may leave open. */
async function fillWithClaims(tapped: Tapped) {
  const thief = tapped.session()
  const make = () => claim(thief, tapped, stranger.address, "client_broadcast")
  const made = []
  for (let number = 0; number < room; number++) made.push(await make())
  await expect(make()).rejects.toMatchObject({ code: "claim.in_progress" })
  return made
}

async function claim(
  caller: Caller,
  { unit_id }: Tapped,
  recipient: Address,
  execution: "service_relay" | "client_broadcast",
) {
  const body = { recipient, execution }
  const prepared = await prepareClaim(running.context, caller, unit_id, body)
  return await running.turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
}

async function transfer(caller: Caller, { unit_id }: Tapped, recipient: Address) {
  const body = { recipient }
  const prepared = await prepareTransfer(running.context, caller, unit_id, body)
  return await running.turn((t) => createTransfer(t, caller, { unit_id, body, prepared }))
}

function claimNow({ unit_id }: Tapped, id: string) {
  return getClaim(running.context.db.read, running.caller, unit_id, id)
}

async function areSuperseded(tapped: Tapped, unsent: { id: string }[]): Promise<void> {
  await until(async () => {
    const rows = await running.context.db.read.select().from(claims).where(eq(claims.unit_id, tapped.unit_id))
    return rows.every(({ status }) => status !== "claiming")
  })
  for (const { id } of unsent)
    expect(await claimNow(tapped, id)).toMatchObject({
      status: "failed",
      failure: { code: "claim.superseded" },
    })
}

/** Sends an authorization from a wallet, and returns its outcome on the chain. */
async function send(account: typeof buyer, transaction: Payload | undefined) {
  const { client } = running.stage.anvil
  const [to, data] = [transaction?.to as Address, transaction?.data as Hex]
  const hash = await client.sendTransaction({ account, to, data, gas: 300_000n })
  return (await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })).status
}

async function ownerOf({ serial }: Tapped): Promise<Address> {
  const { address } = collection
  return await running.stage.anvil.client.readContract({
    ...{ address, abi: collectionAbi, functionName: "ownerOf", args: [serial] },
  })
}
