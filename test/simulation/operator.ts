import { eq, like, ne } from "drizzle-orm"
import { DatabaseUnavailable, type Queries } from "../../src/db/database.ts"
import { actors, lanes, transactions } from "../../src/db/schema.ts"
import type { World } from "../../src/engine/world.ts"
import { cancel } from "../../src/operator/commands/cancel.ts"
import { type Command, parseValues } from "../../src/operator/commands/command.ts"
import { explain } from "../../src/operator/commands/explain.ts"
import { retry } from "../../src/operator/commands/retry.ts"
import { stuck } from "../../src/operator/commands/stuck.ts"
import { OperatorRefusal } from "../../src/operator/verbs/refusal.ts"
import type { Config } from "../../src/platform/config.ts"
import { apiNames, type Cast, workerNames } from "./cast.ts"
import type { Fault } from "./faults.ts"
import { everySignerKey, nextSignerKeys } from "./ground.ts"
import type { Store } from "./restoration.ts"
import { type Simulation, sleep } from "./scheduler.ts"
import { type Stream, streamOf } from "./streams.ts"

/** An operator of the service, who runs its commands, each in a process of its own. */
export type Operator = {
  /** Why lanes halted, each time. */
  halts: string[]
  /** Commands that broke, instead of answering or refusing. */
  broken: string[]
  /** Follows a whim of the list of faults. */
  follow(fault: Extract<Fault, { kind: "operator" }>): Promise<void>
  /** Puts another key into a signer's place, and starts one process after the other again. */
  rotate(fault: Extract<Fault, { kind: "rotate" }>): Promise<void>
  /** Reopens halted lanes and gives a lane its key back that asks for it, for ever. */
  watchLanes(): Promise<void>
  /** Asks for the story of one actor in each state in which some are. */
  explainEachState(): Promise<void>
}

const commands = { retry, cancel, explain, stuck }
const watchMilliseconds = 5_000

export function createOperator(simulation: Simulation, cast: Cast, store: Store): Operator {
  const operator: Operator = { halts: [], broken: [], follow, rotate, watchLanes, explainEachState }

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
    if (next && !signer_keys.includes(next)) await giveKeys(signer_keys.with(signer, next), pause_seconds)
  }

  async function giveKeys(signer_keys: Config["signer_keys"], pauseSeconds: number): Promise<void> {
    cast.config = { ...cast.config, signer_keys }
    for (const name of [...apiNames, ...workerNames]) {
      await cast.restart(name)
      await sleep(simulation, pauseSeconds * 1_000)
    }
  }

  async function watchLanes(): Promise<void> {
    for (;;) {
      await sleep(simulation, watchMilliseconds)
      for (const { id, reason } of await haltedLanes(store)) {
        operator.halts.push(`${id}: ${reason}`)
        await run(retry, [id])
      }
      const asking = await store.db.read.select().from(lanes).where(like(lanes.reason, "%: add it until%"))
      if (asking.length > 0 && cast.config.signer_keys.length < everySignerKey.length)
        await giveKeys(everySignerKey, 1)
    }
  }

  async function explainEachState(): Promise<void> {
    const told = await store.db.read.select().from(actors).where(ne(actors.machine, "session-token"))
    const oneOfEach = new Map(told.map(({ id, machine, state }) => [`${machine} ${state}`, id]))
    await visit(async (world) => {
      for (const id of oneOfEach.values()) await runIn(world, explain, [id])
    })
  }
  return operator
}

async function haltedLanes({ db }: Store) {
  return await db.read.select().from(lanes).where(eq(lanes.status, "halted"))
}

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
