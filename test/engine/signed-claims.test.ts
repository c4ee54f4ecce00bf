import { expect, setDefaultTimeout, test } from "bun:test"
import { eq } from "drizzle-orm"
import { type Address, encodeFunctionData, type Hex } from "viem"
import { claims, transactionAttempts } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { cancelById } from "../../src/operator/verbs/cancel.ts"
import { retryById } from "../../src/operator/verbs/retry.ts"
import { accountAt } from "../faults/stage.ts"
import {
  type ByHand,
  callAsOutsider,
  grant,
  issuedUnit,
  openForEachTest,
  outsider,
  preparedClaim,
} from "../harness/by-hand.ts"
import { foreignChip } from "../harness/thief.ts"
import { chipRowOf } from "../harness/unit-rows.ts"

// A signed claim of a unit that gets another chip on the chain before it is mined: work that loses its nonce is checked
// again before it is sent with another one.

setDefaultTimeout(60_000)
const open = openForEachTest()

test("a claim whose nonce another sender used to bind another chip fails when the lane is retried", async () => {
  const hand = await open()
  const { unit_id, address, chip, transaction } = await signedClaim(hand)
  const account = transaction.lane_id.split(":")[1] as Address
  const { client } = hand.stage.anvil
  await client.impersonateAccount({ address: account })
  const data = encodeFunctionData({
    abi: collectionAbi,
    functionName: "replaceChip",
    args: [1n, chip, foreignChip],
  })
  const { nonce } = transaction
  await client.sendTransaction({ account, to: address, data, gas: 300_000n, nonce, chain: null })
  for (let block = 0; block < 3; block++) await goOn(hand)
  await hand.turn((turn) => retryById(turn, transaction.lane_id))
  await expectSuperseded(hand, unit_id, address)
})

test("a claim that an operator cancels after its unit got another chip fails", async () => {
  const hand = await open()
  const { unit_id, address, chip, transaction } = await signedClaim(hand)
  await callAsOutsider(hand, address, "replaceChip", [1n, chip, foreignChip])
  await hand.mine()
  await hand.turn((turn) => cancelById(turn, transaction.id))
  await expectSuperseded(hand, unit_id, address)
})

/** A claim that the service has sent and that no pool has any more. */
async function signedClaim(hand: ByHand) {
  const { unit_id, address } = await issuedUnit(hand)
  await grant(hand, outsider.address)
  await hand.settle()
  const { read } = hand.world.context.db
  const { chip_id } = await chipRowOf(read, unit_id)
  const create = await preparedClaim(hand, unit_id, accountAt(7).address)
  await create()
  await hand.tick()
  const [transaction] = await hand.transactionsOf("relayClaim")
  if (!transaction) throw new Error("nothing was sent")
  const attempts = await read
    .select()
    .from(transactionAttempts)
    .where(eq(transactionAttempts.transaction_id, transaction.id))
  for (const { hash } of attempts) await hand.stage.anvil.client.dropTransaction({ hash: hash as Hex })
  return { unit_id, address: address as Address, chip: Number.parseInt(chip_id, 16), transaction }
}

async function expectSuperseded(hand: ByHand, unitId: string, address: Address): Promise<void> {
  for (let block = 0; block < 24; block++) await goOn(hand)
  const [claim] = await hand.world.context.db.read.select().from(claims).where(eq(claims.unit_id, unitId))
  expect(claim).toMatchObject({ status: "failed", failure: { code: "claim.superseded" } })
  const { client } = hand.stage.anvil
  expect(
    await client.readContract({ address, abi: collectionAbi, functionName: "ownerOf", args: [1n] }),
  ).toBe(address)
}

async function goOn(hand: ByHand): Promise<void> {
  await hand.mine()
  await hand.tick()
}
