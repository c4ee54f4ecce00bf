import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { effects } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { createLogRanges } from "../../src/engine/chain/log-ranges.ts"
import type { Rpc } from "../../src/engine/chain/rpc.ts"
import { type Effect, effectsIn } from "../../src/engine/jobs/job.ts"
import { relayClaims } from "../../workers/jobs/relay-claims.ts"
import { judgeAuthorization, type Verdict, type Watch } from "../../workers/watches/authorization-outcome.ts"
import {
  type ByHand,
  claimBeside,
  friend,
  issuedUnit,
  openForEachTest,
  outwaitNewestBlock,
  person,
  preparedClaim,
} from "../harness/by-hand.ts"

// A log search ends at the change that it is about, however long ago the collection was deployed.

const open = openForEachTest()
/** Empty blocks between the issuance and the change that is searched for. */
const silence = 60

test("the sender that claimed a unit first is found without reading older blocks", async () => {
  const hand = await open()
  const { unit_id, address } = await issuedUnit(hand)
  const { id } = await (await preparedClaim(hand, unit_id, person.address))()
  await hand.mine(silence)
  await claimBeside(hand, address, friend.address)
  await outwaitNewestBlock()
  const { read } = hand.world.context.db
  const rows = await read.select().from(effects).where(eq(effects.actor_id, id))
  const [effect] = effectsIn(rows) as Effect<"relayClaim">[]
  if (!effect) throw new Error("the claim waits for its lane")
  const { chain, ranges } = watched(hand.chain)
  expect(await relayClaims.earlier?.(chain, read, effect)).toBeNull()
  expect(ranges.size).toBe(1)
})

test("the change that superseded an authorization is found without reading older blocks", async () => {
  const hand = await open()
  const { address } = await issuedUnit(hand)
  await hand.mine(silence)
  const transaction_hash = await claimBeside(hand, address, friend.address)
  const { chain, ranges } = watched(hand.chain)
  expect(await judgedAtNewest({ ...hand, chain }, address)).toMatchObject({
    is: "ended",
    output: { outcome: "superseded", transaction_hash },
  })
  expect(ranges.size).toBe(1)
})

test("an authorization is not superseded by a change of its token after the one that used it", async () => {
  const hand = await open()
  const { address } = await issuedUnit(hand)
  await claimBeside(hand, address, friend.address)
  const { rpc } = hand.chain
  const blockHash = `0x${"cd".repeat(32)}` as const
  // As if a node on another fork, on which the token has moved on, returned its logs and what that block says.
  const later = { blockHash, transactionHash: blockHash }
  const getContractEvents = async (asked: Parameters<Rpc["getContractEvents"]>[0]) => {
    const logs = await rpc.getContractEvents(asked)
    return logs.flatMap((log) => [log, { ...log, ...later, logIndex: (log.logIndex ?? 0) + 1 }])
  }
  const readContract = async (asked: { blockHash?: string }) =>
    asked.blockHash === blockHash ? 2n : await rpc.readContract(asked as never)
  const getTransactionReceipt = async () => ({ blockHash, logs: [] })
  const onTwoForks = { ...rpc, getContractEvents, readContract, getTransactionReceipt } as never
  const chain = { ...hand.chain, rpc: onTwoForks }
  expect(await judgedAtNewest({ ...hand, chain }, address)).toMatchObject({ is: "unknown" })
})

test("an authorization is not superseded by its own use in a block that was replaced", async () => {
  const hand = await open()
  const { address } = await issuedUnit(hand)
  await claimBeside(hand, address, friend.address)
  const { rpc } = hand.chain
  const getTransactionReceipt: Rpc["getTransactionReceipt"] = async (asked) => ({
    ...(await rpc.getTransactionReceipt(asked)),
    ...{ blockHash: `0x${"ab".repeat(32)}`, logs: [] },
  })
  const chain = { ...hand.chain, rpc: { ...rpc, getTransactionReceipt } }
  expect(await judgedAtNewest({ ...hand, chain }, address)).toMatchObject({
    is: "unknown",
    because: "the block of its use was replaced",
  })
})

/** The verdict on a token's first authorization, which nobody used, at the newest block. */
async function judgedAtNewest({ world, chain }: ByHand, address: string): Promise<Verdict | null> {
  const watch = {
    ...{ request_id: null, attempts: 0, last_error: null, due_at: new Date(), holder: null },
    input: {
      ...{ chain_id: 31_337, contract_address: address, serial: 1, authorization_nonce: 0 },
      ...{ authorization_digest: `0x${"1".repeat(64)}`, deadline_at: "2999-01-01T00:00:00.000Z" },
    },
  } as Watch
  await outwaitNewestBlock()
  const deepest = await chain.headers.follow()
  const isAgreed = async () => true
  const seen = { changes: new Map(), timestamp: 0n, is_doubtful: true, is_asked_ahead: false }
  return await judgeAuthorization({ context: world.context, chain, deepest, isAgreed }, watch, seen)
}

/** A chain whose logs are requested two blocks at a time, and the requested ranges. */
function watched(chain: ConnectedChain): { chain: ConnectedChain; ranges: Set<unknown> } {
  const ranges = new Set<unknown>()
  const getContractEvents: typeof chain.rpc.getContractEvents = (query) => {
    ranges.add(query.fromBlock)
    return chain.rpc.getContractEvents(query)
  }
  const log_ranges = createLogRanges({ log_range_blocks: 2 })
  return { chain: { ...chain, log_ranges, rpc: { ...chain.rpc, getContractEvents } }, ranges }
}
