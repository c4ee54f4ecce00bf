import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { effects } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { createLogRanges } from "../../src/engine/chain/log-ranges.ts"
import { type Effect, effectsIn } from "../../src/engine/jobs/job.ts"
import { relayClaims } from "../../workers/jobs/relay-claims.ts"
import { judgeAuthorization, type Watch } from "../../workers/watches/authorization-outcome.ts"
import {
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
  const { context } = hand.world
  const watch = {
    ...{ request_id: null, attempts: 0, last_error: null, due_at: new Date(), holder: null },
    input: {
      ...{ chain_id: 31_337, contract_address: address, serial: 1, authorization_nonce: 0 },
      ...{ authorization_digest: `0x${"1".repeat(64)}`, deadline_at: "2999-01-01T00:00:00.000Z" },
    },
  } as Watch
  await outwaitNewestBlock()
  const deepest = await hand.chain.headers.follow()
  const isAgreed = async () => true
  const seen = { changes: new Map(), timestamp: 0n, is_doubtful: true }
  expect(await judgeAuthorization({ context, chain, deepest, isAgreed }, watch, seen)).toMatchObject({
    is: "ended",
    output: { outcome: "superseded", transaction_hash },
  })
  expect(ranges.size).toBe(1)
})

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
