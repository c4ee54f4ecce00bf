import { afterAll, afterEach, beforeAll } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import type { Database } from "../../src/db/database.ts"
import { migrate } from "../../src/db/migrate.ts"
import { openDatabase } from "../../src/db/open.ts"
import { type Cluster, startPostgres } from "./postgres.ts"
import { startOfTime } from "./scene.ts"

/** A database engine that the service runs on. */
export type Engine = {
  name: "sqlite" | "postgres"
  start(): Promise<RunningEngine>
}

export type RunningEngine = {
  /** Creates an empty database and returns its `DATABASE_URL`. */
  newDatabase(): Promise<string>
  /** Gives back databases that are no longer used. */
  release(urls: string[]): void
  stop(): Promise<void>
}

const sqlite: Engine = {
  name: "sqlite",
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "sqlite-"))
    let made = 0
    return {
      newDatabase: async () => `sqlite:${join(folder, `${++made}.db`)}`,
      release() {},
      stop: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}

const postgres: Engine = {
  name: "postgres",
  async start() {
    const cluster = await sharedCluster()
    const made: string[] = []
    return {
      // Emptying a database takes a tenth of the time of creating one.
      async newDatabase() {
        const used = free.pop()
        if (used) await ask(used, "drop schema public cascade; create schema public")
        const url = used ?? (await makeDatabase(cluster))
        made.push(url)
        return url
      },
      release(urls) {
        free.push(...urls)
        for (const url of urls) made.splice(made.indexOf(url), 1)
      },
      stop: async () => void free.push(...made.splice(0)),
    }
  },
}

// One server for all test files of a process; it ends with the process.
let cluster: Cluster | undefined
let free: string[] = []
let names = 0

async function sharedCluster(): Promise<Cluster> {
  const isThere = cluster && (await ask(cluster.url("postgres"), "select 1").then(Boolean, () => false))
  if (cluster && isThere) return cluster
  cluster = await startPostgres()
  free = []
  return cluster
}

async function makeDatabase(server: Cluster): Promise<string> {
  const name = `test_${++names}`
  await ask(server.url("postgres"), `create database ${name}`)
  return server.url(name)
}

async function ask(url: string, statements: string): Promise<true> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(statements)
  await client.end()
  return true
}

export const engines: Engine[] = [sqlite, postgres]

export type Databases = {
  /** The URL of an empty database. */
  newDatabase(): Promise<string>
  /** Opens a database; it is closed after the test. */
  open(url: string): Database
  /** A new database with all tables. */
  openMigrated(): Promise<Database>
  /** One database with all tables, for tests that touch only their own rows. */
  openShared(): Promise<Database>
}

/** Starts an engine for the tests of the calling `describe`. */
export function useEngine(engine: Engine): Databases {
  let running: RunningEngine | undefined
  let shared: Promise<Database> | undefined
  let opened: Database[] = []
  let used: string[] = []
  beforeAll(async () => {
    running = await engine.start()
  }, 30_000)
  afterEach(async () => {
    await Promise.all(opened.map((db) => db.close()))
    running?.release(used)
    opened = []
    used = []
  })
  afterAll(async () => {
    await (await shared)?.close()
    await running?.stop()
  })

  async function makeDatabase(): Promise<string> {
    if (!running) throw new Error("the engine is started before the first test")
    return await running.newDatabase()
  }

  const databases: Databases = {
    async newDatabase() {
      const url = await makeDatabase()
      used.push(url)
      return url
    },
    open(url) {
      const db = openDatabase(url)
      opened.push(db)
      return db
    },
    async openMigrated() {
      const db = databases.open(await databases.newDatabase())
      await migrate(db, startOfTime)
      return db
    },
    async openShared() {
      shared ??= makeDatabase().then(openWithTables)
      return await shared
    },
  }
  return databases
}

async function openWithTables(url: string): Promise<Database> {
  const db = openDatabase(url)
  await migrate(db, startOfTime)
  return db
}
