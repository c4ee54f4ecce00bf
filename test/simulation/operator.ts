import { eq, like, ne } from "drizzle-orm"
import { encodeFunctionData, type Hex } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { DatabaseUnavailable, type Queries } from "../../src/db/database.ts"
import { query } from "../../src/db/query.ts"
import { actors, lanes, transactions } from "../../src/db/schema.ts"
import { factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { World } from "../../src/engine/world.ts"
import { cancel } from "../../src/operator/commands/cancel.ts"
import { chainStatus } from "../../src/operator/commands/chain-status.ts"
import { type Command, parseValues } from "../../src/operator/commands/command.ts"
import { explain } from "../../src/operator/commands/explain.ts"
import { retry } from "../../src/operator/commands/retry.ts"
import { stuck } from "../../src/operator/commands/stuck.ts"
import {
  type Comparison,
  comparableCollections,
  compareWithChain,
} from "../../src/operator/verbs/compare-chain.ts"
import { OperatorRefusal } from "../../src/operator/verbs/refusal.ts"
import type { Config } from "../../src/platform/config.ts"
import { apiNames, type Cast, workerNames } from "./cast.ts"
import { headOf, type SimulatedChain } from "./chain/chain.ts"
import type { Fault } from "./faults.ts"
import { everySignerKey, nextAuthorizerKey, nextSignerKeys } from "./ground.ts"
import type { Store } from "./restoration.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import { type Stream, streamOf } from "./streams.ts"
import { account, hasSucceeded, keepOnChain } from "./wallets.ts"

/** An operator of the service, who runs its commands, each in a process of its own. */
export type Operator = {
  /** The reason for each halt of a lane. */
  halts: string[]
  /** Commands that crashed instead of succeeding or failing properly. */
  broken: string[]
  /** Does what an operator fault in the list says. */
  follow(fault: Extract<Fault, { kind: "operator" }>): Promise<void>
  /** Puts another key into a signer's place, and restarts one process after the other. */
  rotate(fault: Extract<Fault, { kind: "rotate" }>): Promise<void>
  /** Has the factory's admin name another authorizer, and restarts one process after the other with its key. */
  rotateAuthorizer(fault: Extract<Fault, { kind: "authorizer" }>): Promise<void>
  /** Reopens halted lanes, and gives a lane that asks for its key the key back, from then on. */
  watchLanes(): Promise<void>
  /** Runs `explain` for one actor in each state that occurs. */
  explainEachState(): Promise<void>
  /** The units of a collection that have other chips on the chain; none if it has no contract. */
  compareChips(collectionId: string): Promise<Comparison["other_chips"]>
}

const commands = { retry, cancel, explain, stuck }
const watchMilliseconds = 5_000
/** For how long signatures of the previous key stay valid. */
const overlapSeconds = 3_600

export function createOperator(
  simulation: Simulation,
  cast: Cast,
  store: Store,
  chain: SimulatedChain,
): Operator {
  const operator: Operator = {
    ...{ halts: [], broken: [] },
    ...{ follow, rotate, rotateAuthorizer, watchLanes, explainEachState, compareChips },
  }

  let isRotated = false

  async function run(command: Command, words: string[]): Promise<void> {
    await visit((world) => runIn(world, command, words))
  }

  async function visit(work: (world: World) => Promise<void>): Promise<void> {
    try {
      await cast.visit("operator", work)
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error
    }
  }

  async function runIn(world: World, command: Command, words: string[]): Promise<void> {
    try {
      await command.plan(parseValues(command, words))(world)
    } catch (error) {
      if (error instanceof OperatorRefusal || error instanceof DatabaseUnavailable) return
      operator.broken.push(`operator ${command.name} ${words.join(" ")} broke: ${(error as Error).message}`)
    }
  }

  async function follow({ act, salt }: Extract<Fault, { kind: "operator" }>): Promise<void> {
    const chance = streamOf(BigInt(salt), "operator")
    if (act === "stuck") return await run(stuck, [])
    const id = await targetOf(store.db.read, act, chance)
    if (id !== null) await run(commands[act], [id])
  }

  async function rotate({ signer, pause_seconds }: Extract<Fault, { kind: "rotate" }>): Promise<void> {
    const { signer_keys } = cast.config
    const next = nextSignerKeys[signer]
    if (next && !signer_keys.includes(next))
      await giveKeys({ signer_keys: signer_keys.with(signer, next) }, pause_seconds)
  }

  async function rotateAuthorizer({ pause_seconds }: Extract<Fault, { kind: "authorizer" }>): Promise<void> {
    const address = cast.config.chains[0]?.factory_address
    if (!address || isRotated) return
    isRotated = true
    const until = BigInt(headOf(chain).timestamp + overlapSeconds)
    const named = [privateKeyToAccount(nextAuthorizerKey).address, until] as const
    const data = encodeFunctionData({ abi: factoryAbi, functionName: "setAuthorizer", args: named })
    const sent = new Map<number, Hex>()
    void keepOnChain(simulation, chain, account(0), { to: address, data }, sent)
    while (!hasSucceeded(chain, sent)) await sleep(simulation, watchMilliseconds)
    await giveKeys({ authorizer_key: nextAuthorizerKey }, pause_seconds)
    await run(chainStatus, [])
  }

  async function giveKeys(
    keys: Partial<Pick<Config, "signer_keys" | "authorizer_key">>,
    pauseSeconds: number,
  ): Promise<void> {
    cast.config = { ...cast.config, ...keys }
    for (const name of [...apiNames, ...workerNames]) {
      await cast.restart(name)
      await sleep(simulation, pauseSeconds * 1_000)
    }
  }

  async function watchLanes(): Promise<void> {
    for (;;) {
      await sleep(simulation, watchMilliseconds)
      for (const { id, reason } of await haltedLanes(store.db.read, {})) {
        operator.halts.push(`${id}: ${reason}`)
        await run(retry, [id])
      }
      const asking = await lanesWithoutKey(store.db.read, {})
      if (asking.length > 0 && cast.config.signer_keys.length < everySignerKey.length)
        await giveKeys({ signer_keys: everySignerKey }, 1)
    }
  }

  async function explainEachState(): Promise<void> {
    const told = await store.db.read.select().from(actors).where(ne(actors.machine, "session-token"))
    const oneOfEach = new Map(told.map(({ id, machine, state }) => [`${machine} ${state}`, id]))
    await visit(async (world) => {
      for (const id of oneOfEach.values()) await runIn(world, explain, [id])
    })
  }

  async function compareChips(collectionId: string): Promise<Comparison["other_chips"]> {
    return await cast.visit("operator", async ({ context, chains }) => {
      const { read } = context.db
      const collection = (await comparableCollections(read, null)).find(({ id }) => id === collectionId)
      const chain = collection && chains.get(collection.chain_id)
      return chain ? (await compareWithChain(read, chain, collection)).other_chips : []
    })
  }
  return operator
}

/** The lanes that need a person's attention. */
export const haltedLanes = query((db) => db.select().from(lanes).where(eq(lanes.status, "halted")))

const lanesWithoutKey = query((db) => db.select().from(lanes).where(like(lanes.reason, "%: add it until%")))

async function targetOf(
  read: Queries,
  act: "retry" | "cancel" | "explain",
  chance: Stream,
): Promise<string | null> {
  const ids =
    act === "cancel"
      ? await read.select({ id: transactions.id }).from(transactions).where(eq(transactions.status, "sent"))
      : await read.select({ id: actors.id }).from(actors)
  return ids.length === 0 ? null : chance.pick(ids).id
}
