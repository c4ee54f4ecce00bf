import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Hex } from "viem"
import {
  type AttemptRow,
  actors,
  collections,
  effects,
  type LaneRow,
  lanes,
  type TransactionRow,
  transactionAttempts,
  transactions,
} from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { type Effect, type Planned, useUpNonce } from "../../src/engine/jobs/job.ts"
import { dearest, kindOf } from "../../src/engine/lanes/attempts.ts"
import { compareFinalBlock, followFinalBlock } from "../../src/engine/lanes/final-block.ts"
import type { HeldLane, Lane } from "../../src/engine/lanes/held-lane.ts"
import {
  adoptAgain,
  adoptNonce,
  haltLane,
  type Lease,
  LeaseLost,
  noteFinalBlock,
  releaseLease,
  setLaneStatus,
  sightLane,
  takeLease,
  takeNonce,
} from "../../src/engine/lanes/leases.ts"
import { keepOwn } from "../../src/engine/lanes/moves.ts"
import {
  allocateFiller,
  allocateTransaction,
  displaceTransaction,
  effectsOf,
  finalFrom,
  finalizeTransactions,
  findTransaction,
  isCancelled,
  isGivenUp,
  nonceAfterLast,
  noteSend,
  openTransactions,
  releaseEffect,
  requestCancel,
  reservedWei,
  settledTransactions,
  storeAttempt,
  updateTransaction,
  type WatchedTransaction,
} from "../../src/engine/lanes/transactions.ts"
import {
  busyElsewhere,
  hasWork,
  maxDelayMilliseconds,
  sharesOf,
  waitingWork,
} from "../../src/engine/lanes/turns.ts"
import { handOn } from "../../src/engine/lanes/without-key.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { createTestContext, insertScene, startOfTime } from "../harness/scene.ts"

// What a lane reads and writes in its own rows, without a chain.

const holder = { owner: "holder", lease_milliseconds: 3_000 }
const next = { owner: "next", lease_milliseconds: 3_000 }
const fees = { max_fee_per_gas: 20n, max_priority_fee_per_gas: 1n }
const content = { chain_id: 31_337, kind: "issueUnit", to: "0x01", data: "0x02", gas: 90_000n, fees } as const

describe.each(engines)("on $name", (engine) => {
  const databases = useEngine(engine)

  async function openLane() {
    const db = await databases.openShared()
    const context = createTestContext(db)
    const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
    const { lane_id, organization_id, collection_id } = await turn(({ tx }) => insertScene(tx))
    const leased = await turn((t) => takeLease(t, lane_id, holder))
    if (!leased) throw new Error("nobody else wants the lane")
    const { lease } = leased
    const row = async () => {
      const [lane] = await db.read.select().from(lanes).where(eq(lanes.id, lane_id))
      return lane
    }
    return { context, turn, lane_id, organization_id, collection_id, lease, row, read: db.read }
  }
  type Opened = Awaited<ReturnType<typeof openLane>>

  /** A lane whose next nonce is 7. */
  async function openWithNonce() {
    const lane = await openLane()
    await lane.turn((t) => adoptNonce(t, lane.lease, { nonce: 7, restored_at: null }))
    return lane
  }

  async function newEffect({ turn, lane_id, organization_id }: Opened, changes: Partial<Waiting> = {}) {
    const id = newId()
    const actor_id = newId()
    await turn(async ({ tx }) => {
      await tx.insert(actors).values({
        ...{ id: actor_id, machine: "unit-token", machine_version: 1, organization_id },
        ...{ snapshot: {}, status: "pending", state: "pending.issuing", version: 1 },
        ...{ created_at: startOfTime, updated_at: startOfTime },
      })
      await tx.insert(effects).values({
        ...{ id, actor_id, organization_id, invoke_id: "work", src: "issueUnit", input: {} },
        ...{ status: "open", queue: laneQueue(lane_id), attempts: 0, due_at: startOfTime },
        created_at: startOfTime,
        ...changes,
      })
    })
    return id
  }
  type Waiting = typeof effects.$inferInsert

  /** A transaction with one attempt. */
  async function newTransaction(lane: Opened, changes: Partial<TransactionRow> = {}) {
    const { turn, lease, read } = lane
    const effect_ids = [await newEffect(lane)]
    const id = await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
    const attempt = { hash: `0x${id}`, raw: "0x03", kind: "first", fees } as const
    const allocated = await findTransaction(read, id)
    await turn((t) => storeAttempt(t, lease, allocated, attempt))
    await turn((t) => updateTransaction(t, lease, id, changes))
    return await findTransaction(read, id)
  }

  describe("a lease", () => {
    test("is renewed after the first third of its duration, and only checked before", async () => {
      const { context, read, lane_id, lease } = await openLane()
      const sighted = async () => await sightLane(read, lane_id, holder, context.clock())
      expect((await sighted()).mine?.lease).toEqual(lease)
      context.advance(999)
      expect((await sighted()).mine?.lease).toEqual(lease)
      context.advance(1)
      expect(await sighted()).toEqual({ mine: null, rival: null })
    })

    test("taken by a clock that was since set back is renewed at once", async () => {
      const { context, read, lane_id } = await openLane()
      context.advance(-1)
      expect(await sightLane(read, lane_id, holder, context.clock())).toEqual({ mine: null, rival: null })
    })

    test("passes to another holder only after it expires, with the next epoch", async () => {
      const { context, turn, lane_id, lease } = await openLane()
      context.advance(3_000)
      expect(await turn((t) => takeLease(t, lane_id, next))).toBeNull()
      context.advance(1)
      expect((await turn((t) => takeLease(t, lane_id, next)))?.lease.epoch).toBe(lease.epoch + 1)
    })

    type Write = (turn: Turn, lease: Lease, transaction: WatchedTransaction) => Promise<unknown>
    const verdict = { outcome: "known", said: null } as const
    const writes: [name: string, Write][] = [
      ["a nonce", (t, lease) => takeNonce(t, lease)],
      ["its first nonce", (t, lease) => adoptNonce(t, lease, { nonce: 9, restored_at: null })],
      ["that it has none any more", (t, lease) => adoptAgain(t, lease, 0)],
      ["the final block", (t, lease) => noteFinalBlock(t, lease, { number: 1, hash: "0x01" })],
      ["a halt", (t, lease) => haltLane(t, lease, "because")],
      ["a status", (t, lease) => setLaneStatus(t, lease, "paused", "because")],
      ["a new transaction", (t, lease) => allocateTransaction(t, lease, { ...content, effect_ids: [] })],
      [
        "signed bytes",
        (t, lease, transaction) =>
          storeAttempt(t, lease, transaction, { hash: "0x05", raw: "0x05", kind: "bump", fees }),
      ],
      [
        "a pool's response",
        (t, lease, { attempts }) => noteSend(t, lease, attempts[0] as AttemptRow, verdict, 5),
      ],
      ["a transaction status", (t, lease, { id }) => updateTransaction(t, lease, id, { status: "mined" })],
      ["the end of a transaction", (t, lease, { id }) => finalizeTransactions(t, lease, [id])],
      [
        "a transaction's content with another nonce",
        (t, lease, transaction) => displaceTransaction(t, lease, transaction, { status: "final" }),
      ],
    ]
    test.each(writes)("that was lost keeps its former holder from writing %s", async (_name, write) => {
      const lane = await openWithNonce()
      const { context, turn, lane_id, lease, row, read } = lane
      const transaction = await newTransaction(lane)
      context.advance(3_001)
      await turn((t) => takeLease(t, lane_id, next))
      const before = await row()
      const writing = turn((t) => write(t, lease, transaction))
      await expect(writing).rejects.toBeInstanceOf(LeaseLost)
      expect(await row()).toEqual(before)
      expect(await openTransactions(read, lane_id)).toEqual([transaction])
    })
  })

  test("a write of one lane leaves the same holder's other lanes unchanged", async () => {
    const [lane, other] = [await openLane(), await openWithNonce()]
    const before = await other.row()
    const { turn, lease, row } = lane
    await turn((t) => adoptNonce(t, lease, { nonce: 3, restored_at: null }))
    await turn((t) => takeNonce(t, lease))
    await turn((t) => noteFinalBlock(t, lease, { number: 5, hash: "0x05" }))
    await turn((t) => setLaneStatus(t, lease, "paused", "no money"))
    expect(await row()).toMatchObject({ next_nonce: 4, final_block_number: 5, final_block_hash: "0x05" })
    expect(await row()).toMatchObject({ status: "paused", reason: "no money", lease_owner: "holder" })
    await turn((t) => haltLane(t, lease, "a thief"))
    await turn((t) => setLaneStatus(t, lease, "open", null))
    expect(await row()).toMatchObject({ status: "halted", reason: "a thief" })
    await turn((t) => releaseLease(t, lease))
    expect(await row()).toMatchObject({ lease_owner: null, leased_until: null })
    expect(await other.row()).toEqual(before)
  })

  describe("the newest final block", () => {
    const depth = 32
    /** A lane whose providers return these hashes, and whose headers return the first of them. */
    const heldAt = ({ context, lease, lane_id }: Opened, head: number, hashes: (string | null)[]) => {
      const providers = { blockHashes: async () => hashes, voices: () => hashes.length }
      const headers = { at: async () => ({ hash: hashes[0] }) }
      const chain = { chain_id: 31_337, config: { finality_depth: depth }, providers, headers }
      return { context, lease, signer: { lane_id }, chain, head: BigInt(head) } as unknown as HeldLane
    }
    const finalOf = async ({ row }: Opened) => {
      const lane = await row()
      return [lane?.final_block_number, lane?.final_block_hash]
    }

    test("is stored every few blocks at its depth, if all providers agree on it", async () => {
      const lane = await openLane()
      const follow = async (head: number, known: number | null, hashes: (string | null)[]) => {
        await followFinalBlock(heldAt(lane, head, hashes), known)
        return await finalOf(lane)
      }
      expect(await follow(30, null, ["0x01", "0x01"])).toEqual([null, null])
      expect(await follow(31, null, ["0x01", "0x02"])).toEqual([null, null])
      expect(await follow(31, null, ["0x01", null])).toEqual([null, null])
      expect(await follow(31, null, ["0x01", "0x01"])).toEqual([0, "0x01"])
      expect(await follow(32, 0, ["0x02", "0x02"])).toEqual([0, "0x01"])
      expect(await follow(33, 0, ["0x03", "0x03"])).toEqual([2, "0x03"])
    })

    test("that was replaced halts the lane once every provider says so", async () => {
      const lane = await openLane()
      await lane.turn((t) => noteFinalBlock(t, lane.lease, { number: 2, hash: "0x03" }))
      const known = (await lane.row()) as LaneRow
      const compare = async (head: number, hashes: (string | null)[]) => {
        const { halt, failure } = await compareFinalBlock(heldAt(lane, head, hashes), known)
        return [halt !== null, failure !== null]
      }
      const [well, halted, unclear] = [
        [false, false],
        [true, false],
        [false, true],
      ]
      expect(await compare(33, ["0x03", "0x04"])).toEqual(well)
      expect(await compare(33, ["0x04", "0x04"])).toEqual(halted)
      expect(await compare(33, ["0x04", "0x03"])).toEqual(unclear)
      expect(await compare(33, ["0x04", null])).toEqual(unclear)
      // No provider has the block any more.
      expect(await compare(33, [null, null])).toEqual(well)
      // The depth was raised since.
      expect(await compare(32, ["0x04", "0x04"])).toEqual(well)
      const { halt } = await compareFinalBlock(heldAt(lane, 33, ["0x04"]), {
        ...known,
        final_block_number: null,
      })
      expect(halt).toBeNull()
    })
  })

  describe("a lane's nonces", () => {
    test("are read from the chain once, and then assigned in sequence", async () => {
      const { turn, lease, row } = await openLane()
      const take = () => turn((t) => takeNonce(t, lease))
      await expect(take()).rejects.toBeInstanceOf(LeaseLost)
      await turn((t) => adoptNonce(t, lease, { nonce: 7, restored_at: null }))
      expect([await take(), await take()]).toEqual([7, 8])
      await turn((t) => adoptNonce(t, lease, { nonce: 3, restored_at: null }))
      expect((await row())?.next_nonce).toBe(9)
    })

    test("are read again if a back-up was restored in the meantime", async () => {
      const { context, turn, lease, lane_id, row } = await openLane()
      const restore = (restored_at: Date) =>
        turn(async ({ tx }) => {
          await tx.update(lanes).set({ next_nonce: null, restored_at }).where(eq(lanes.id, lane_id))
        })
      const adopt = (nonce: number, restored_at: Date | null) =>
        turn((t) => adoptNonce(t, lease, { nonce, restored_at }))
      const first = context.clock()
      const second = new Date(first.getTime() + 1)
      await restore(first)
      expect(await adopt(0, null)).toBe(false)
      await restore(second)
      expect(await adopt(16, first)).toBe(false)
      expect((await row())?.next_nonce).toBeNull()
      expect(await adopt(16, second)).toBe(true)
      expect((await row())?.next_nonce).toBe(16)
    })

    test("continue after the highest one that this lane ever assigned", async () => {
      const [lane, other] = [await openWithNonce(), await openWithNonce()]
      expect(await nonceAfterLast(lane.read, lane.lane_id)).toBe(0)
      for (let each = 0; each < 3; each++) await newTransaction(lane)
      await newTransaction(other)
      expect(await nonceAfterLast(lane.read, lane.lane_id)).toBe(10)
    })
  })

  describe("a transaction", () => {
    test("is open, settled or final, by nonce and for its own lane", async () => {
      const [lane, other] = [await openWithNonce(), await openWithNonce()]
      const of = async (status: TransactionRow["status"], hash: Hex | null = "0x01") =>
        (await newTransaction(lane, { status, hash })).nonce
      const open = [await of("signed"), await of("sent"), await of("mined")]
      const settled = [await of("confirmed"), await of("reverted")]
      const final = [await of("final"), await of("final")]
      await of("final", null)
      for (const status of ["sent", "confirmed", "final"] as const)
        await newTransaction(other, { status, hash: "0x02" })
      const { read, lane_id } = lane
      const noncesOf = (rows: { nonce: number }[]) => rows.map(({ nonce }) => nonce)
      expect(noncesOf(await openTransactions(read, lane_id))).toEqual(open)
      expect(noncesOf(await settledTransactions(read, lane_id))).toEqual(settled)
      expect(noncesOf(await finalFrom(read, lane_id, 0))).toEqual(final)
      expect(noncesOf(await finalFrom(read, lane_id, final[1] ?? 0))).toEqual(final.slice(1))
    })

    test("knows the block at which a pool first accepted it, and the last response", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read } = lane
      const { id } = await newTransaction(lane)
      const seen: unknown[] = []
      for (const [outcome, head] of [
        ["wait", 5],
        ["known", 7],
        ["known", 9],
        ["refused", 11],
      ] as const) {
        const [attempt] = (await findTransaction(read, id)).attempts
        await turn((t) => noteSend(t, lease, attempt as AttemptRow, { outcome, said: outcome }, head))
        const [noted] = (await findTransaction(read, id)).attempts
        seen.push([noted?.first_sent_block, noted?.send_count, noted?.last_outcome, noted?.last_error])
      }
      expect(seen).toEqual([
        [null, 1, "wait", "wait"],
        [7, 2, "known", "known"],
        [7, 3, "known", "known"],
        [7, 4, "refused", "refused"],
      ])
    })

    test("has its attempts in the order of signing, and of two at one price the later is the highest", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read } = lane
      const { id } = await newTransaction(lane)
      for (const [hash, price] of [
        ["0x0b", 30n],
        ["0x0a", 30n],
        ["0x0c", 25n],
      ] as const) {
        const transaction = await findTransaction(read, id)
        const offered = { ...fees, max_fee_per_gas: price }
        const attempt = { hash: `${hash}${id}`, raw: "0x03", kind: "bump", fees: offered } as const
        await turn((t) => storeAttempt(t, lease, transaction, attempt))
      }
      const { attempts } = await findTransaction(read, id)
      expect(attempts.map(({ hash }) => hash.slice(0, 4))).toEqual([
        `0x${id.slice(0, 2)}`,
        "0x0b",
        "0x0a",
        "0x0c",
      ])
      expect(dearest(attempts)).toBe(attempts[2] as AttemptRow)

      const number = async (prefix: string, instead: number | null) => {
        const { hash } = attempts.find((each) => each.hash.startsWith(prefix)) as AttemptRow
        await turn(({ tx }) =>
          tx.update(transactionAttempts).set({ number: instead }).where(eq(transactionAttempts.hash, hash)),
        )
      }
      await number(`0x${id}`, 5)
      // As older releases stored them, which only ever raised the price.
      await number("0x0a", null)
      await number("0x0c", null)
      const anew = (await findTransaction(read, id)).attempts
      expect(anew.map(({ hash }) => hash.slice(0, 4))).toEqual([
        "0x0c",
        "0x0a",
        "0x0b",
        `0x${id.slice(0, 2)}`,
      ])
    })

    test("is signed once, however many attempts it has, and its cancellation is distinguishable", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read } = lane
      const effect_ids = [await newEffect(lane)]
      const id = await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
      const store = async (hash: Hex, kind: "first" | "bump" | "cancel") => {
        const transaction = await findTransaction(read, id)
        const attempt = { hash: `${hash}${id}`, raw: hash, kind, fees } as const
        await turn((t) => storeAttempt(t, lease, transaction, attempt))
        return (await findTransaction(read, id)).status
      }
      expect((await findTransaction(read, id)).status).toBe("allocated")
      expect(await store("0x01", "first")).toBe("signed")
      await turn((t) => updateTransaction(t, lease, id, { status: "sent" }))
      expect(await store("0x02", "bump")).toBe("sent")
      expect(await store("0x03", "cancel")).toBe("sent")
      const transaction = await findTransaction(read, id)
      const { attempts } = transaction
      expect(attempts.map(({ number, is_cancel }) => [number, is_cancel])).toEqual([
        [1, false],
        [2, false],
        [3, true],
      ])
      expect(attempts.map(kindOf)).toEqual(["first", "bump", "cancel"])
      expect(attempts.map(({ hash }) => isCancelled(transaction, hash))).toEqual([false, false, true])
    })

    test("takes effects that are open and unassigned, and no others", async () => {
      const lane = await openWithNonce()
      const allocate = (id: string) =>
        lane.turn((t) => allocateTransaction(t, lane.lease, { ...content, effect_ids: [id] }))
      const [done, taken, free] = [
        await newEffect(lane, { status: "done" }),
        await newEffect(lane),
        await newEffect(lane),
      ]
      const id = await allocate(taken)
      await expect(allocate(done)).rejects.toThrow("closed or bound")
      await expect(allocate(taken)).rejects.toThrow("closed or bound")
      expect((await effectsOf(lane.read, id)).map((each) => each.id)).toEqual([taken])
      expect(await nonceAfterLast(lane.read, lane.lane_id)).toBe(8)
      expect((await lane.row())?.next_nonce).toBe(8)
      await allocate(free)
    })

    test("passes its content and effects to the next nonce, and lets single ones wait again", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read, lane_id } = lane
      const [old, other] = [await newTransaction(lane), await newTransaction(lane)]
      const members = await effectsOf(read, old.id)
      await turn((t) => displaceTransaction(t, lease, old, { status: "final" }))
      const [kept, anew] = await openTransactions(read, lane_id)
      const { to, call, gas, max_fee_per_gas } = old
      expect(kept?.id).toBe(other.id)
      expect(anew).toMatchObject({
        ...{ nonce: 9, status: "allocated", attempts: [] },
        to,
        call,
        gas,
        max_fee_per_gas,
      })
      expect((await findTransaction(read, old.id)).status).toBe("final")
      expect(await effectsOf(read, old.id)).toEqual([])
      const moved = await effectsOf(read, anew?.id ?? "")
      expect(moved.map(({ id }) => id)).toEqual(members.map(({ id }) => id))
      expect(await effectsOf(read, other.id)).toHaveLength(1)

      const [effect] = moved
      await turn((t) => releaseEffect(t, effect as Effect))
      expect(await effectsOf(read, anew?.id ?? "")).toEqual([])
      const rows = await read
        .select()
        .from(effects)
        .where(eq(effects.id, effect?.id ?? ""))
      expect(rows).toMatchObject([{ transaction_id: null, attempts: 1, status: "open" }])
    })

    test("that lost its nonce makes room for a filler, which an earlier cancellation does not cancel", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read, lane_id } = lane
      const old = await newTransaction(lane, { cancel_requested_at: startOfTime })
      const cancel = { hash: `0x0c${lane_id}`, raw: "0x0c", kind: "cancel", fees } as const
      await turn((t) => storeAttempt(t, lease, old, cancel))
      await turn((t) => displaceTransaction(t, lease, old, { status: "final" }))
      const { nonce, chain_id } = old
      const address = "0x00000000000000000000000000000000000000aa"
      await turn((t) => allocateFiller(t, lease, { nonce, chain_id, address, gas: 21_000n, fees }))
      const [filler, moved] = await openTransactions(read, lane_id)
      expect(filler).toMatchObject({
        ...{ id: old.id, nonce, kind: useUpNonce, status: "allocated" },
        ...{ to: address, call: "0x", gas: 21_000, cancel_requested_at: null },
      })
      expect(filler?.attempts).toHaveLength(2)
      expect(filler && isCancelled(filler, cancel.hash)).toBe(false)
      expect(moved).toMatchObject({ nonce: nonce + 1, kind: old.kind, call: old.call })
    })

    test("counts with its most expensive attempt, or its first price, toward the spending limit", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read, lane_id } = lane
      const effect_ids = [await newEffect(lane)]
      await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
      const transaction = await newTransaction(lane)
      const dear = {
        hash: `0x0d${lane_id}`,
        raw: "0x0d",
        kind: "bump",
        fees: { ...fees, max_fee_per_gas: 30n },
      } as const
      await turn((t) => storeAttempt(t, lease, transaction, dear))
      expect(reservedWei(await openTransactions(read, lane_id))).toBe(90_000n * 20n + 90_000n * 30n)
    })

    test("can be given up by a person until its results were given", async () => {
      const lane = await openWithNonce()
      const given = async (status: TransactionRow["status"]) => {
        const { id } = await newTransaction(lane, { status })
        const answer = await lane.turn((t) => requestCancel(t, id))
        return [answer !== null, isGivenUp(await findTransaction(lane.read, id))]
      }
      expect(await given("sent")).toEqual([true, true])
      expect(await given("mined")).toEqual([false, false])
      const { id } = await newTransaction(lane, { status: "sent" })
      await lane.turn((t) => requestCancel(t, id))
      await lane.turn((t) => updateTransaction(t, lane.lease, id, { status: "confirmed" }))
      expect(isGivenUp(await findTransaction(lane.read, id))).toBe(false)
    })

    test("that no effect waits for cannot be given up", async () => {
      const lane = await openWithNonce()
      const { id } = await newTransaction(lane, { status: "sent" })
      await lane.turn(({ tx }) =>
        tx.update(effects).set({ status: "done" }).where(eq(effects.transaction_id, id)),
      )
      expect(await lane.turn((t) => requestCancel(t, id))).toBeNull()
    })
  })

  describe("work that waits in a lane", () => {
    const jobs = {
      issueUnit: {
        lineOf: ({ input }: { input: { collection_id?: string } }) => String(input.collection_id),
      },
      relayClaim: {},
    }
    const held = ({ context, lane_id, lease }: Opened) =>
      ({ context, jobs, lease, signer: { lane_id }, chain: { chain_id: 31_337 } }) as unknown as HeldLane
    const waitingIds = async (lane: Opened) => (await waitingWork(held(lane))).map(({ id }) => id)

    test("is planned oldest first, whoever requested it", async () => {
      const lane = await openLane()
      const asked: string[] = []
      for (const organization_id of [newId(), newId(), newId()])
        for (const src of ["issueUnit", "relayClaim", "issueUnit"])
          asked.push(await newEffect(lane, { organization_id, src, input: { collection_id: newId() } }))
      await newEffect(lane, { status: "done" })
      await newEffect(lane, { queue: laneQueue(newId()) })
      expect(await waitingIds(lane)).toEqual(asked.toSorted())
    })

    test("is delayed behind a postponed effect of its own line only", async () => {
      const lane = await openLane()
      const [line, other] = [newId(), newId()]
      const later = { attempts: 1, due_at: new Date(startOfTime.getTime() + 5_000) }
      const first = await newEffect(lane, { input: { collection_id: line } })
      const putOff = await newEffect(lane, { input: { collection_id: line }, ...later })
      const behind = await newEffect(lane, { input: { collection_id: line } })
      const beside = await newEffect(lane, { input: { collection_id: other } })
      await newEffect(lane, { src: "relayClaim", ...later })
      const claim = await newEffect(lane, { src: "relayClaim" })
      expect(await waitingIds(lane)).toEqual([first, beside, claim])
      lane.context.advance(4_999)
      expect(await waitingIds(lane)).toEqual([first, beside, claim])
      lane.context.advance(1)
      expect((await waitingIds(lane)).slice(0, 4)).toEqual([first, putOff, behind, beside])
    })

    test("is never postponed longer than the maximum, even if a clock was set back", async () => {
      const lane = await openLane()
      const dueIn = (milliseconds: number) => new Date(startOfTime.getTime() + milliseconds)
      await newEffect(lane, { src: "relayClaim", attempts: 1, due_at: dueIn(maxDelayMilliseconds) })
      const beyond = await newEffect(lane, {
        src: "relayClaim",
        attempts: 1,
        due_at: dueIn(maxDelayMilliseconds + 1),
      })
      expect(maxDelayMilliseconds).toBe(600_000)
      expect(await waitingIds(lane)).toEqual([beyond])
    })

    test("and work that is watched count as work until done and final", async () => {
      const lane = await openWithNonce()
      const { read, lane_id, turn, lease } = lane
      expect(await hasWork(read, lane_id)).toBe(false)
      const { id } = await newTransaction(lane, { status: "confirmed" })
      await turn(({ tx }) => tx.update(effects).set({ status: "done" }).where(eq(effects.transaction_id, id)))
      expect(await hasWork(read, lane_id)).toBe(true)
      await turn((t) => finalizeTransactions(t, lease, [id]))
      expect(await hasWork(read, lane_id)).toBe(false)
      await newEffect(lane)
      expect(await hasWork(read, lane_id)).toBe(true)
    })

    test("counts toward its organization's work in flight, with claims separate from batches", async () => {
      const lane = await openWithNonce()
      const { turn, lease, read, lane_id, organization_id } = lane
      const other = newId()
      for (const members of [[{}, {}], [{ src: "relayClaim" }], [{}, { organization_id: other }]]) {
        const effect_ids = await Promise.all(members.map((each) => newEffect(lane, each)))
        await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
      }
      const shares = await sharesOf(held(lane), await openTransactions(read, lane_id))
      expect([...shares].toSorted()).toEqual(
        [
          [`batch ${organization_id}`, 2],
          [`batch ${other}`, 1],
          [`counter ${organization_id}`, 1],
        ].toSorted() as [string, number][],
      )
      expect(await sharesOf(held(lane), [])).toEqual(new Map())
    })

    test("moves with its collection to the lane that the current keys assign", async () => {
      const [lane, other] = [await openWithNonce(), await openWithNonce()]
      const { read, lane_id, collection_id, context } = lane
      const kept = await newEffect(lane, { input: { collection_id: other.collection_id } })
      const moved = await newEffect(lane, { input: { collection_id } })
      const claim = await newEffect(lane, { src: "relayClaim", input: { unit_id: newId() } })
      await newTransaction(lane)
      const chain = {
        issuanceLaneId: (id: string) => (id === collection_id ? other.lane_id : lane_id),
        ownershipLaneId: () => other.lane_id,
      }
      const own = await keepOwn(
        { ...held(lane), chain } as unknown as HeldLane,
        await waitingWork(held(lane)),
      )
      expect(own.map(({ id }) => id)).toEqual([kept])
      expect(await waitingIds(lane)).toEqual([kept])
      expect(await waitingIds(other)).toEqual([moved, claim])
      const laneOfCollection = async (id: string) =>
        (await read.select().from(collections).where(eq(collections.id, id)))[0]?.lane_id
      expect(await laneOfCollection(collection_id)).toBe(other.lane_id)
      expect(await laneOfCollection(other.collection_id)).toBe(other.lane_id)
      expect(context.woken).toContain(laneQueue(other.lane_id))
      expect(await openTransactions(read, lane_id)).toHaveLength(1)
    })

    describe("in a lane without its key", () => {
      const handedOn: string[][] = []
      const release = async (_turn: Turn, { effects }: Planned) =>
        void handedOn.push(effects.map(({ id }) => id))
      const keyless = (lane: Opened, to: string, signers: unknown[] = [{}]) =>
        ({
          ...held(lane),
          jobs: { ...jobs, issueUnit: { ...jobs.issueUnit, release } },
          signer: { lane_id: lane.lane_id, account: null },
          chain: { signers, issuanceLaneId: () => to, ownershipLaneId: () => to },
        }) as unknown as Lane

      test("moves to other lanes with its collections, and unsigned work returns its nonce", async () => {
        const [lane, other] = [await openWithNonce(), await openWithNonce()]
        const { turn, lease, lane_id, read, row, collection_id } = lane
        const signed = await newTransaction(lane)
        const taken: string[] = []
        for (let each = 0; each < 2; each++) {
          const effect_ids = [await newEffect(lane)]
          taken.push(...effect_ids)
          await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
        }
        const waiting = await newEffect(lane, { input: { collection_id } })
        await handOn(keyless(lane, other.lane_id), lease)
        expect(await openTransactions(read, lane_id)).toEqual([signed])
        expect((await row())?.next_nonce).toBe(8)
        expect(await waitingIds(lane)).toEqual([])
        expect(await waitingIds(other)).toEqual([...taken, waiting])
        expect(handedOn.splice(0)).toEqual(taken.toReversed().map((id) => [id]))
        const [collection] = await read.select().from(collections).where(eq(collections.id, collection_id))
        expect(collection?.lane_id).toBe(other.lane_id)
        expect((await other.row())?.next_nonce).toBe(7)
      })

      test.each([
        ["unknown, as an operator asked for it again", { next_nonce: null }, null],
        ["after those that a restored back-up may have forgotten", { restored_at: new Date() }, 8],
      ])("leaves the next nonce as it is if that is %s", async (_why, change, next) => {
        const [lane, other] = [await openWithNonce(), await openWithNonce()]
        const { turn, lease, lane_id, read, row } = lane
        const effect_ids = [await newEffect(lane)]
        await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
        await turn(({ tx }) => tx.update(lanes).set(change).where(eq(lanes.id, lane_id)))
        await handOn(keyless(lane, other.lane_id), lease)
        expect(await openTransactions(read, lane_id)).toEqual([])
        expect((await row())?.next_nonce).toBe(next)
        handedOn.splice(0)
      })

      test("stays if no lane has a key, and so does work that was done once and must be repeated", async () => {
        const lane = await openWithNonce()
        const { turn, lease, lane_id, read } = lane
        const effect_ids = [await newEffect(lane)]
        const id = await turn((t) => allocateTransaction(t, lease, { ...content, effect_ids }))
        const waiting = await newEffect(lane)
        await handOn(keyless(lane, newId(), []), lease)
        expect(await waitingIds(lane)).toEqual([waiting])
        const other = await openLane()
        await turn(({ tx }) =>
          tx.update(effects).set({ status: "done" }).where(eq(effects.transaction_id, id)),
        )
        await handOn(keyless(lane, other.lane_id), lease)
        expect(await openTransactions(read, lane_id)).toMatchObject([{ id }])
        expect(await waitingIds(other)).toEqual([waiting])
        expect(handedOn).toEqual([])
      })
    })

    test("keeps its order behind work in flight in another lane of the chain", async () => {
      const [lane, other] = [await openWithNonce(), await openWithNonce()]
      await newTransaction(lane)
      const { id } = await newTransaction(other)
      const address = `0x${newId()}`
      await other.turn(({ tx }) =>
        tx.update(transactions).set({ to: address }).where(eq(transactions.id, id)),
      )
      expect(await busyElsewhere(held(lane))).toContain(address)
      expect(await busyElsewhere(held(other))).not.toContain(address)
      await other.turn((t) => updateTransaction(t, other.lease, id, { status: "confirmed" }))
      expect(await busyElsewhere(held(lane))).not.toContain(address)
    })
  })
})
