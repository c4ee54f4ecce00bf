import { copyFileSync, rmSync } from "node:fs"
import type { Hex } from "viem"
import { copySqlite } from "../../src/db/copy-sqlite.ts"
import { type Database, DatabaseUnavailable } from "../../src/db/database.ts"
import { events, webhookEndpoints } from "../../src/db/event-schema.ts"
import { openDatabase } from "../../src/db/open.ts"
import { transactionAttempts } from "../../src/db/schema.ts"
import { noteRestored } from "../../src/operator/verbs/restored.ts"
import { inTurn } from "../../src/platform/context.ts"
import type { Cast } from "./cast.ts"
import type { Fault } from "./faults.ts"
import { type Simulation, sleep } from "./scheduler.ts"

/** The history's own connection to the database, whose file may be replaced. */
export type Store = { db: Database }

/** A restored back-up. Milliseconds since the beginning. */
export type Restoration = {
  /** Responses from here on, until the restore ended, may be lost. */
  backed_up_at: number
  ended_at: number
  /** Transactions and events that the database has lost. */
  hashes: Hex[]
  events: string[]
}

/** An operator who makes a back-up and restores it later, at most once. */
export type Restorer = {
  restoration: Restoration | null
  /** Returns whether it was done, once everything runs again. */
  restore(fault: Extract<Fault, { kind: "restore" }>): Promise<boolean>
}

export function createRestorer(simulation: Simulation, cast: Cast, store: Store): Restorer {
  const restorer: Restorer = { restoration: null, restore }
  const path = cast.config.database_url.replace("sqlite:", "")
  const backUp = `${path}.back-up`
  rmSync(backUp, { force: true })
  let isAsked = false

  async function restore({ for_seconds, rest_seconds }: Extract<Fault, { kind: "restore" }>) {
    if (isAsked) return false
    isAsked = true
    // A brand without an event subscription yet is of no use for judging events.
    while ((await store.db.read.select().from(webhookEndpoints)).length === 0)
      await sleep(simulation, waitMilliseconds)
    copySqlite(path, backUp)
    const backed_up_at = simulation.now
    await sleep(simulation, for_seconds * 1_000)
    await cast.stopAll()
    await sleep(simulation, lineMilliseconds)
    const before = await knownTo(store)
    await putBack()
    const after = await knownTo(store)
    restorer.restoration = {
      backed_up_at,
      ended_at: simulation.now,
      hashes: before.hashes.filter((hash) => !after.hashes.includes(hash)),
      events: before.events.filter((id) => !after.events.includes(id)),
    }
    await sleep(simulation, rest_seconds * 1_000)
    while (!(await sayRestored())) await sleep(simulation, waitMilliseconds)
    cast.startAll()
    return true
  }

  /** Returns whether the database accepted it. */
  async function sayRestored(): Promise<boolean> {
    try {
      await cast.visitAlone("operator", ({ context }) => inTurn(context, null, noteRestored))
      return true
    } catch (error) {
      if (error instanceof DatabaseUnavailable) return false
      throw error
    }
  }

  async function putBack(): Promise<void> {
    await store.db.close()
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true })
    copyFileSync(backUp, path)
    store.db = openDatabase(cast.config.database_url)
  }
  return restorer
}

/** Whether the database may have lost what a response said. */
export function isForgotten(
  { backed_up_at, ended_at }: Restoration,
  { answered_at }: { answered_at: number },
) {
  return answered_at > backed_up_at && answered_at <= ended_at
}

const waitMilliseconds = 100
/** Within this time everything in flight arrives. */
const lineMilliseconds = 1_000

async function knownTo({ db }: Store): Promise<{ hashes: Hex[]; events: string[] }> {
  const attempts = await db.read.select({ hash: transactionAttempts.hash }).from(transactionAttempts)
  const told = await db.read.select({ id: events.id }).from(events)
  return { hashes: attempts.map(({ hash }) => hash as Hex), events: told.map(({ id }) => id) }
}
