import { and, eq } from "drizzle-orm"
import type { Address, Hex } from "viem"
import { chipReplacements, lanes, transactionAttempts, transactions, units } from "../../src/db/schema.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { requestCancel } from "../../src/engine/lanes/transactions.ts"
import { inTurn } from "../../src/platform/context.ts"
import { type Events, type Play, retryLane } from "./play.ts"
import { accountAt, type Stage, signers } from "./stage.ts"

/** Events around a run. `foreign`: transactions that the test itself sent with a signer's key. */
export type Happenings = Events & { foreign?: Hex[] }

/** From the first issuance on, blocks cost more than was offered for it. */
export function holdPricesUp() {
  return async ({ stage, played, happened }: Play) => {
    const isSent = stage.proxies.some(({ sent }) =>
      sent.some(({ to }) => to?.toLowerCase() === played.collection?.address.toLowerCase()),
    )
    if (!isSent) return
    happened.add("prices rose")
    await stage.anvil.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 20_000_000_000n })
  }
}

/** Once, when the condition is met. */
export function once(
  name: string,
  isTime: (play: Play) => Promise<boolean>,
  act: (play: Play) => Promise<void>,
) {
  return (): Events => ({
    async beforeBlock(current) {
      if (current.happened.has(name) || !(await isTime(current))) return
      current.happened.add(name)
      await act(current)
    },
  })
}

export async function isIssued({ stage }: Play): Promise<boolean> {
  const rows = await stage.world.context.db.read.select().from(units).where(eq(units.token_status, "active"))
  return rows.length > 0
}

export async function isIssuedOnChain({ stage, played }: Play): Promise<boolean> {
  if (!played.paired) return false
  const address = played.collection?.address as Hex
  return (await stage.anvil.client.getLogs({ address, fromBlock: 0n })).length > 0
}

export async function isReplaced({ stage }: Play): Promise<boolean> {
  const rows = await stage.world.context.db.read
    .select()
    .from(chipReplacements)
    .where(eq(chipReplacements.status, "confirmed"))
  return rows.length > 0
}

/** Replaces the newest blocks by empty ones, the first of which contains `instead`. */
export function reorganize(depth: number, instead: string[] = []) {
  return async ({ stage }: Play) => {
    const request = stage.anvil.client.request as (call: object) => Promise<unknown>
    await request({ method: "anvil_reorg", params: [depth, instead.map((raw) => [raw, 0])] })
  }
}

/** Reopens lanes as a person would, once each has given its reason to halt. */
export function reopening(events: () => Happenings) {
  return () => {
    const inner = events()
    let isBusy = false
    return {
      ...inner,
      async beforeBlock(current: Play) {
        await inner.beforeBlock?.(current)
        if (isBusy) return
        const { read } = current.stage.world.context.db
        const halted = await read.select().from(lanes).where(eq(lanes.status, "halted"))
        if (halted.length === 0) return
        isBusy = true
        void Promise.all(halted.map(({ id }) => retryLane(current.stage, id))).finally(() => {
          isBusy = false
        })
        current.happened.add("a lane halted")
      },
    }
  }
}

/**
 * Another sender uses the signer's key; with `instead`, in place of the lane's own transaction, which is kept from the
 * pool until then.
 */
export function stolenNonce(instead: boolean) {
  return () => {
    const foreign: Hex[] = []
    return {
      foreign,
      async beforeBlock({ stage, played, happened }: Play) {
        const [proxy] = stage.proxies
        if (!played.paired || !proxy || happened.has("a nonce was used by somebody else")) return
        const { client } = stage.anvil
        const last = foreign.at(-1)
        if (last && (await client.getTransactionReceipt({ hash: last }).catch(() => null))) {
          happened.add("a nonce was used by somebody else")
          if (instead) proxy.faults.refuse_every = 0
          return
        }
        if (instead) {
          proxy.faults.refuse_every = 1
          if (!(await hasAllocated(stage, signers[1]))) return
        }
        // The pool drops it together with earlier ones when prices rise.
        if (last && (await client.getTransaction({ hash: last }).catch(() => null))) return
        foreign.push(await useKey(stage, signers[1]))
      },
    }
  }
}

async function hasAllocated({ world, anvil }: Stage, address: Address): Promise<boolean> {
  const [lane] = await world.context.db.read
    .select()
    .from(lanes)
    .where(and(eq(lanes.address, address), eq(lanes.status, "open")))
  return (lane?.next_nonce ?? 0) > (await anvil.client.getTransactionCount({ address }))
}

/** At a price that gets it into the next block, whatever prices do. */
async function useKey({ anvil: { client } }: Stage, address: Address): Promise<Hex> {
  const nonce = await client.getTransactionCount({ address, blockTag: "pending" })
  const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n }
  return await client.sendTransaction({ account: accountAt(2), nonce, to: address, gas: 21_000n, ...fees })
}

/** Once prices have risen, a person gives up nonces of issuances in flight, until a cancellation is mined. */
export function givingUp(): Events {
  return {
    async beforeBlock({ stage, happened }) {
      if (!happened.has("prices rose") || happened.has("a cancel was mined")) return
      const { context } = stage.world
      const { read } = context.db
      const rows = await read.select().from(transactions).where(eq(transactions.kind, "issueUnit"))
      const cancels = await read
        .select()
        .from(transactionAttempts)
        .where(eq(transactionAttempts.is_cancel, true))
      if (cancels.some(({ hash }) => rows.some((row) => row.hash === hash)))
        happened.add("a cancel was mined")
      const open = rows.filter(({ status }) => status === "signed" || status === "sent")
      const [first] = open.sort((one, other) => one.nonce - other.nonce)
      if (first && open.every(({ cancel_requested_at }) => cancel_requested_at === null))
        await inTurn(context, null, (turn) => requestCancel(turn, first.id))
    },
  }
}

/** A person gives up the nonce of a claim that is mined nevertheless, and whose block is replaced later. */
export function givingUpTooLate(): Events {
  let claimed: string | undefined
  return {
    async beforeBlock(current) {
      const { context } = current.stage.world
      const rows = await context.db.read
        .select()
        .from(transactions)
        .where(eq(transactions.kind, "relayClaim"))
      if (claimed === undefined) {
        const open = rows.find(({ status }) => status === "signed" || status === "sent")
        if (!open || !(await inTurn(context, null, (turn) => requestCancel(turn, open.id)))) return
        claimed = open.id
      }
      if (current.happened.has("reorganized")) return
      if (!rows.some(({ id, status }) => id === claimed && ["confirmed", "reverted"].includes(status))) return
      current.happened.add("reorganized")
      await reorganize(5)(current)
    },
  }
}

/**
 * Nonces are given up; later a reorganization brings back the first of those transactions instead of its cancellation.
 */
export function givenUpComesBack(): Events {
  const giving = givingUp()
  return {
    async beforeBlock(current) {
      await giving.beforeBlock?.(current)
      const { stage, happened } = current
      if (!happened.has("a cancel was mined") || happened.has("what was given up came back")) return
      if (!(await isIssued(current))) return
      const { read } = stage.world.context.db
      const attempts = await read.select().from(transactionAttempts)
      const rows = await read.select().from(transactions)
      const given = rows.find((row) => attempts.some(({ hash, is_cancel }) => is_cancel && hash === row.hash))
      const first = attempts.find(
        ({ transaction_id, kind }) => transaction_id === given?.id && kind === "first",
      )
      if (!given?.block_number || !first) return
      const head = await stage.anvil.client.getBlock()
      const depth = Number(head.number) - given.block_number + 1
      await reorganize(depth, [first.raw])(current)
      happened.add("what was given up came back")
    },
  }
}

/** The pool drops the first few of the service's transactions. */
export function evicting(): Events {
  const dropped = new Set<string>()
  return {
    async beforeBlock({ stage, happened }) {
      const fresh = stage.proxies[0]?.sent.filter(({ hash }) => !dropped.has(hash)) ?? []
      for (const { hash } of fresh) {
        if (dropped.size >= 5) return
        dropped.add(hash)
        await stage.anvil.client.dropTransaction({ hash })
        happened.add("the pool forgot a transaction")
      }
    },
  }
}

/** For many blocks no node responds to a send, which higher fees do not help. */
export function refusing(): Events {
  let refused = 0
  return {
    async beforeBlock({ stage, played, happened }) {
      const [proxy] = stage.proxies
      if (!played.paired || !proxy || happened.has("sends were taken again")) return
      refused += 1
      proxy.faults.refuse_every = refused <= 15 ? 1 : 0
      if (refused <= 15) return
      await neverRaised(stage)
      happened.add("sends were taken again")
    },
  }
}

/** For some blocks every node returns the same to every send; `check` inspects the attempts of that time. */
export function saying(words: string, check: (stage: Stage) => Promise<void> = async () => {}): () => Events {
  return () => {
    let said = 0
    return {
      async beforeBlock({ stage, played, happened }) {
        const [proxy] = stage.proxies
        if (!played.paired || !proxy || happened.has("sends were taken again")) return
        said += 1
        proxy.faults.says_to_sends = said <= 15 ? words : null
        if (said <= 15) return
        if (proxy.struck === 0) throw new Error("nothing was sent while the node refused")
        await check(stage)
        happened.add("sends were taken again")
      },
    }
  }
}

/**
 * No attempt offers more than its transaction's first one, unless a pool had that one and no block took it, or no
 * block would have, because prices rose.
 */
export async function neverRaised({ anvil: { client }, world }: Stage): Promise<void> {
  const attempts = await world.context.db.read.select().from(transactionAttempts)
  const { baseFeePerGas } = await client.getBlock()
  for (const { max_fee_per_gas, transaction_id } of attempts) {
    const first = attempts.find((each) => each.transaction_id === transaction_id && each.kind === "first")
    if (!first || first.first_sent_block !== null) continue
    if (BigInt(first.max_fee_per_gas) < (baseFeePerGas ?? 0n)) continue
    if (BigInt(max_fee_per_gas) > BigInt(first.max_fee_per_gas))
      throw new Error("fees were raised for words that say nothing of them")
  }
}

/** A signer has no role for a while, in which its transactions revert. */
export function withoutRole(): Events {
  let blocks = 0
  return {
    async beforeBlock(current) {
      if (!current.played.paired || current.happened.has("the operator was named again")) return
      blocks += 1
      if (blocks === 1) await nameOperator(current, signers[1], false)
      if (blocks !== 25) return
      await nameOperator(current, signers[1], true)
      current.happened.add("the operator was named again")
    },
  }
}

/** The factory's admin gives a key its roles from the next block on, or revokes them. */
export async function nameOperator({ stage }: Play, address: Address, isOperator: boolean): Promise<void> {
  const chain = stage.world.context.config.chains[0]
  if (!chain) return
  await stage.anvil.client.writeContract({
    account: accountAt(0),
    chain: null,
    address: chain.factory_address,
    abi: factoryAbi,
    functionName: "setRoles",
    args: [address, isOperator ? 15n : 0n],
    // Ahead of whatever is in the pool already.
    maxFeePerGas: 500_000_000_000n,
    maxPriorityFeePerGas: 100_000_000_000n,
    gas: 200_000n,
  })
}

/** Until some blocks have passed, the first provider follows another chain. */
export function healing(): Events {
  return {
    async beforeBlock({ stage, blocks, happened }) {
      const [first] = stage.proxies
      if (!first) return
      first.faults.is_forked = blocks > 5 && blocks < 30
      if (blocks >= 30) happened.add("the providers agreed again")
    },
  }
}

/** One after the other, at each block. */
export function bothOf(one: Happenings, other: Happenings): Happenings {
  return {
    foreign: one.foreign ?? other.foreign ?? [],
    async beforeBlock(current) {
      await one.beforeBlock?.(current)
      await other.beforeBlock?.(current)
    },
  }
}
