import { eq } from "drizzle-orm"
import type { Address } from "viem"
import { transactionAttempts, transactions } from "../../src/db/schema.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { nameOperator, reorganize } from "./happenings.ts"
import type { Events, Play } from "./play.ts"
import { accountAt, keyAt, type Stage, signers } from "./stage.ts"

/** When units wait to be issued, replaces the processes one after the other by processes with other keys. */
export function changingKeys(keys: number[]): () => Events {
  return () => ({
    async beforeBlock(current) {
      const { stage, played, happened, workers } = current
      if (!played.paired || happened.has("the keys were changed")) return
      for (const index of keys) await nameOperator(current, accountAt(index).address, true)
      stage.environment.SIGNER_KEYS = keys.map(keyAt).join(",")
      for (const { child } of [...workers]) {
        workers.push(stage.startWorker())
        child.kill("SIGTERM")
      }
      happened.add("the keys were changed")
    },
  })
}

/**
 * Before any authorization is issued, names another authorizer: the previous one's signatures stay valid for another
 * hour.
 */
export async function rotateAuthorizer({ stage }: Play): Promise<void> {
  const { client } = stage.anvil
  const [chain] = stage.world.context.config.chains
  const { timestamp } = await client.getBlock()
  await client.writeContract({
    account: accountAt(0),
    chain: null,
    address: chain?.factory_address as Address,
    abi: factoryAbi,
    functionName: "setAuthorizer",
    args: [accountAt(4).address, timestamp + 3_600n],
    maxFeePerGas: 500_000_000_000n,
  })
}

/** The key service is slow, and from time to time throttles more signatures in a row than its client retries. */
export function throttling(): Events {
  return {
    async beforeBlock({ stage, blocks, happened }) {
      const [service] = stage.keyServices
      if (!service) return
      service.delay_milliseconds = 100
      if (blocks % 50 === 5) service.throttles = 4
      if (service.asked.length > 4 && service.throttles === 0) happened.add("the key service signed again")
    },
  }
}

/**
 * The owning lane's transactions revert because its signer lost its role before; then a reorganization undoes that,
 * and the same transactions succeed.
 */
export function revertedThenNot(): Events {
  let removed_at: number | null = null
  return {
    async beforeBlock(current) {
      const { stage, played, blocks, happened } = current
      const [proxy] = stage.proxies
      if (!proxy || !played.claims || happened.has("what had reverted succeeded")) return
      if (removed_at === null) {
        proxy.faults.says_to_sends = "txpool is full"
        if ((await sentBy(stage, signers[0], "replaceChip")).length === 0) return
        await nameOperator(current, signers[0], false)
        removed_at = blocks
        return
      }
      proxy.faults.says_to_sends = null
      const reverted = (await sentBy(stage, signers[0])).filter(({ status }) => status === "reverted")
      if (!reverted.some(({ kind }) => kind === "replaceChip")) return
      await bringBack(current, removed_at, reverted)
      happened.add("what had reverted succeeded")
    },
  }
}

type Sent = typeof transactions.$inferSelect

async function sentBy({ world }: Stage, address: string, kind?: string): Promise<Sent[]> {
  const { read } = world.context.db
  const rows = await read
    .select()
    .from(transactions)
    .where(eq(transactions.lane_id, `31337:${address}`))
  return rows
    .filter((row) => row.status !== "allocated" && (kind === undefined || row.kind === kind))
    .toSorted((one, other) => one.nonce - other.nonce)
}

/** Replaces blocks from a height on; the first one contains the mined bytes, and nothing else. */
async function bringBack(current: Play, fromBlock: number, rows: Sent[]): Promise<void> {
  const { read } = current.stage.world.context.db
  const attempts = await read.select().from(transactionAttempts)
  const bytes = rows.map(({ hash }) => attempts.find((attempt) => attempt.hash === hash)?.raw ?? "")
  await reorganize(current.blocks - fromBlock, bytes)(current)
}
