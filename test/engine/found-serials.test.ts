import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { and, asc, eq } from "drizzle-orm"
import type { Address } from "viem"
import { foundOwners, foundSerials } from "../../src/db/chain-schema.ts"
import {
  bulkPairings,
  effects,
  lanes,
  type TransactionRow,
  transactionAttempts,
  transactions,
  units,
} from "../../src/db/schema.ts"
import { settleEffect } from "../../src/engine/actors/runtime.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { encodeIssue } from "../../src/engine/chain/issue-call.ts"
import type { Effect as LaneWork, Mined, Write } from "../../src/engine/jobs/job.ts"
import { newId } from "../../src/platform/ids.ts"
import { pairChipsInBulk } from "../../src/resources/chips/service.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { issueUnits } from "../../workers/jobs/issue-units.ts"
import { takeFoundOwners } from "../../workers/jobs/take-up-serials.ts"
import { askOwnersAnew, contractsOn, followMoves } from "../../workers/watches/follow-owners.ts"
import { engines } from "../harness/engines.ts"
import { headerAt } from "../harness/header-at.ts"
import { laneRow } from "../harness/scene.ts"
import {
  activeCollection,
  createCaller,
  newUnit,
  openService,
  type TestService,
} from "../harness/services.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

describe.each(engines)("serials found on the chain, on $name", (engine) => {
  let service: TestService
  beforeAll(async () => {
    service = await openService(engine)
  })
  afterAll(() => service.close())

  const read = () => service.context.db.read
  const waitingFor = async (collectionId: string) => {
    const open = await read()
      .select()
      .from(effects)
      .where(eq(effects.status, "open"))
      .orderBy(asc(effects.id))
    return open.filter(({ input }) => input.collection_id === collectionId)
  }
  const find = (collection_id: string, serial: number, { input }: Effect) =>
    service.turn(({ tx, at }) =>
      tx.insert(foundSerials).values({
        collection_id,
        serial,
        chip_id: String(input.chip_id),
        transaction_hash: `0x0${serial}`,
        found_at: at,
      }),
    )
  /** Records a claim by somebody else of a serial that no unit has yet. */
  const seeClaim = async (
    { address, chain_id }: { address: string; chain_id: number },
    { owner, ...seen }: { serial: bigint; owner: Address; block_number: bigint },
  ) => {
    const contract = address as Address
    const contracts = await contractsOn(read(), chain_id)
    await service.turn((turn) =>
      followMoves(turn, contracts, [{ address: contract, from: contract, to: owner, ...seen }]),
    )
  }
  /** A unit of a collection of its own, waiting for its issuance. */
  const pairedOne = async () => {
    const caller = await createCaller(service)
    const collection = await activeCollection(service, caller)
    const unit = await newUnit(service, caller, collection)
    const body = { chips: [{ unit_id: unit.id, is_test: true }] }
    await service.turn((turn) => pairChipsInBulk(turn, service.secret, caller, body))
    const [effect] = (await waitingFor(collection.id)) as [Effect]
    return { collection, unit, effect }
  }
  const insertTransaction = async (
    change: Pick<TransactionRow, "kind" | "status"> & { block_hash?: null },
  ) => {
    const [lane, id, hash, block_hash] = [laneRow(), newId(), `0x${newId()}`, "0x03"]
    const fees = { max_fee_per_gas: "1", max_priority_fee_per_gas: "1" }
    await service.turn(async ({ tx, at }) => {
      await tx.insert(lanes).values(lane)
      await tx.insert(transactions).values({
        ...{ id, lane_id: lane.id, chain_id: lane.chain_id, nonce: 7, to: "0x01", call: "0x", gas: 21_000 },
        ...{ ...fees, block_hash, ...change, created_at: at, updated_at: at },
      })
      await tx.insert(transactionAttempts).values({
        ...{ hash, transaction_id: id, kind: "first", raw: "0x02", ...fees, send_count: 1, created_at: at },
      })
    })
    return { id, hash }
  }
  const writeNext = async (waiting: Effect[]) => {
    const planned = await issueUnits.plan(noChain, read(), waiting as [Effect, ...Effect[]])
    const { taken, write } = planned as Write<"issueUnit">
    await service.turn(write)
    return taken.map(({ id }) => id)
  }

  test("are assigned to the units of their chips, and a bulk pairing is issued with the last of its units", async () => {
    const caller = await createCaller(service)
    const collection = await activeCollection(service, caller)
    const made = [await newUnit(service, caller, collection), await newUnit(service, caller, collection)]
    const body = { chips: made.map(({ id }) => ({ unit_id: id, is_test: true })) }
    await service.turn((turn) => pairChipsInBulk(turn, service.secret, caller, body))
    const [first, second] = (await waitingFor(collection.id)) as [Effect, Effect]
    const isIssued = async () => {
      const [bulk] = await read()
        .select()
        .from(bulkPairings)
        .where(eq(bulkPairings.collection_id, collection.id))
      return bulk?.issued_at !== null
    }

    await find(collection.id, 8, second)
    expect(await writeNext([first, second])).toEqual([second.id])
    expect(await isIssued()).toBe(false)
    await find(collection.id, 3, first)
    expect(await writeNext([first])).toEqual([first.id])
    expect(await isIssued()).toBe(true)
    const rows = await read().select().from(units).where(eq(units.collection_id, collection.id))
    const serials = made.map(({ id }) => rows.find((row) => row.id === id)?.serial)
    expect(serials).toEqual([3, 8])
  })

  test("are assigned once: a chip that has two serials on the chain gets the lowest available one", async () => {
    const caller = await createCaller(service)
    const collection = await activeCollection(service, caller)
    const [holder, next] = [
      await newUnit(service, caller, collection),
      await newUnit(service, caller, collection),
    ]
    const body = { chips: [holder, next].map(({ id }) => ({ unit_id: id, is_test: true })) }
    await service.turn((turn) => pairChipsInBulk(turn, service.secret, caller, body))
    const [first, second] = (await waitingFor(collection.id)) as [Effect, Effect]
    await find(collection.id, 4, first)
    await writeNext([first])
    for (const serial of [6, 5]) await find(collection.id, serial, second)
    await service.turn(({ tx }) =>
      tx
        .update(foundSerials)
        .set({ chip_id: String(second.input.chip_id) })
        .where(and(eq(foundSerials.collection_id, collection.id), eq(foundSerials.serial, 4))),
    )
    await writeNext([second])
    const unit = await unitRowOf(read(), next.id)
    expect(unit.serial).toBe(5)
  })

  test.each([
    { kind: "issueUnit", status: "reverted", watched: "confirmed" },
    { kind: "issueUnit", status: "confirmed", watched: "confirmed" },
    { kind: "issueUnit", status: "sent", watched: "sent", block_hash: null },
    { kind: "issueUnit", status: "final", watched: null, block_hash: null },
    { kind: "useUpNonce", status: "reverted", watched: null },
  ] as const)(
    "are watched with their transaction, which is looked for again, if it is one of the service's own: $kind, $status",
    async ({ watched, ...change }) => {
      const { collection, effect } = await pairedOne()
      const { id, hash } = await insertTransaction(change)
      await find(collection.id, 1, effect)
      await service.turn(({ tx }) =>
        tx
          .update(foundSerials)
          .set({ transaction_hash: hash })
          .where(eq(foundSerials.collection_id, collection.id)),
      )
      await writeNext([effect])
      const [done] = await read().select().from(effects).where(eq(effects.id, effect.id))
      const [transaction] = await read().select().from(transactions).where(eq(transactions.id, id))
      expect(done).toMatchObject({ status: "done", transaction_id: watched === null ? null : id })
      expect(transaction?.status).toBe(watched ?? change.status)
      expect(transaction?.block_hash).toBe(watched === null && change.block_hash !== null ? "0x03" : null)
    },
  )

  test("set the owner of a unit whose issuance was in flight to the owner on the chain", async () => {
    const { collection, unit, effect } = await pairedOne()
    const owner = `0x${"AB".repeat(20)}`
    await service.turn(({ tx, at }) =>
      tx.insert(foundOwners).values([
        { collection_id: collection.id, serial: 1, owner, block_number: 7, found_at: at },
        {
          collection_id: collection.id,
          serial: 2,
          owner: `0x${"CD".repeat(20)}`,
          block_number: 8,
          found_at: at,
        },
      ]),
    )

    const issued = { first: 1, chip_ids: [effect.input.chip_id] }
    const call = encodeIssue(2, issued, { asCode: false })
    const mined = { transaction: { to: collection.address, call }, effects: [effect] } as Mined<"issueUnit">
    const result = { output: { serial: 1, transaction_hash: "0x01" }, block_number: null }
    await service.turn(async (turn) => {
      await settleEffect(turn, effect.id, result)
      await issueUnits.afterwards?.(turn, mined, [result])
    })
    const row = await unitRowOf(read(), unit.id)
    expect(row).toMatchObject({ serial: 1, token_status: "active", claimed: true, owner, owner_block: 7 })
  })

  test("keep owners that were seen before their collection was deployed", async () => {
    const caller = await createCaller(service)
    const collection = await service.turn((turn) =>
      createCollection(turn, service.context.chains, caller, { name: "Autumn" }),
    )
    const owner: Address = `0x${"AB".repeat(20)}`
    await seeClaim(collection, { serial: 3n, owner, block_number: 7n })
    const found = await read().select().from(foundOwners).where(eq(foundOwners.collection_id, collection.id))
    expect(found).toMatchObject([{ serial: 3, owner, block_number: 7 }])
  })

  test("keep owners if a worker on another fork queried them again and does not continue", async () => {
    const { collection, unit, effect } = await pairedOne()
    const contract = collection.address as Address
    const owner: Address = `0x${"AB".repeat(20)}`
    await seeClaim(collection, { serial: 1n, owner, block_number: 7n })
    const ask = (holder: Address, number: bigint) => {
      const chain = { chain_id: collection.chain_id, rpc: { readContract: async () => holder } }
      return askOwnersAnew(service.context, chain as unknown as ConnectedChain, null, {
        safe: 5n,
        asked: headerAt(number),
      })
    }
    await ask(contract, 6n)
    // A worker on the fork with the claim sees at which block the owner was last queried.
    await ask(owner, 8n)
    await service.turn(async (turn) => {
      await settleEffect(turn, effect.id, { output: { serial: 1, transaction_hash: "0x01" } })
      await takeFoundOwners(turn, collection.id, [{ unit_id: unit.id, serial: 1 }])
    })
    const row = await unitRowOf(read(), unit.id)
    expect(row).toMatchObject({ claimed: true, owner, owner_block: 8 })
  })
})

type Effect = LaneWork<"issueUnit">

/** Found serials need no chain. */
const noChain = {} as ConnectedChain
