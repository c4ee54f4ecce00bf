import { eq } from "drizzle-orm"
import { lanes } from "../../src/db/schema.ts"
import { isInFlight, openTransactions, type WatchedTransaction } from "../../src/engine/lanes/transactions.ts"
import { maxInFlight } from "../../src/engine/lanes/turns.ts"
import { inTurn } from "../../src/platform/context.ts"
import { createCollection } from "../../src/resources/collections/service.ts"
import { type Events, newCaller, type Play } from "./play.ts"
import { type Stage, signers } from "./stage.ts"

const usualBaseFee = 20_000_000_000n
const dearBaseFee = 10n * usualBaseFee
/**
 * While the issuing lane has its whole window in the pool, blocks become ten times as expensive: every transaction of
 * the window must be repriced before the next block, not one after the other.
 */
export function dearWithFullWindow(): Events {
  let isDear = false
  let isRaised = false
  let isUsual = false
  return {
    async beforeBlock(current) {
      const { stage, played, happened } = current
      if (!played.paired || happened.has("the window was mined")) return
      const { client } = stage.anvil
      const setBaseFee = (baseFeePerGas: bigint) => client.setNextBlockBaseFeePerGas({ baseFeePerGas })
      if (!isUsual) {
        // One block at the usual price, so that this price is offered.
        isUsual = true
        return await setBaseFee(usualBaseFee)
      }
      if (!isDear) {
        await fillWindow(current)
        isDear = true
        return await setBaseFee(dearBaseFee)
      }
      if (!isRaised) {
        await waitFor("all of the window is offered the new price", async () =>
          (await windowOf(stage)).every(({ attempts }) =>
            attempts.some(({ max_fee_per_gas }) => BigInt(max_fee_per_gas) >= dearBaseFee),
          ),
        )
        isRaised = true
      }
      await setBaseFee(dearBaseFee)
      if ((await windowOf(stage)).length === 0) happened.add("the window was mined")
    },
  }
}

/** Creates collections of so many organizations that their shares fill the whole window. */
async function fillWindow({ stage }: Play): Promise<void> {
  const { context } = stage.world
  for (let each = 0; each < 5; each++) {
    const caller = await newCaller((work) => inTurn(context, null, work))
    for (let one = 0; one < 4; one++)
      await inTurn(context, null, (turn) => createCollection(turn, context.chains, caller, { name: "Many" }))
  }
  await waitFor("the window is full", async () => {
    const sent = (await windowOf(stage)).filter(({ status }) => status === "sent")
    return sent.length === maxInFlight
  })
}

async function windowOf({ world }: Stage): Promise<WatchedTransaction[]> {
  const { read } = world.context.db
  const [lane] = await read.select().from(lanes).where(eq(lanes.address, signers[1]))
  return (await openTransactions(read, lane?.id ?? "")).filter(isInFlight)
}

/** Waits without mining a block. */
async function waitFor(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 40_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not without another block: ${what}`)
    await Bun.sleep(50)
  }
}
