import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { chainsFor, type DevChain, startDevChain } from "../../src/dev/chain.ts"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { tiedToParent } from "./child-process.ts"
import { type Cluster as PostgresCluster, startPostgres } from "./postgres.ts"
import { type RedisServer, startRedis } from "./redis.ts"

/** Several API processes and workers on one Postgres, one Redis and one chain, all started here. */
export type Cluster = {
  apis: Member[]
  workers: Member[]
  postgres: PostgresCluster
  redis: RedisServer
  chain: DevChain
  /** The same database, to inspect what the processes left in it. */
  context: Context
  api_key: string
  stop(): Promise<void>
}

/** A process of the cluster. */
export type Member = {
  name: string
  base_url: string
  operator_url: string
  /** Its log so far. */
  log(): string
  start(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Ends it as a crash would. */
  kill(): Promise<void>
  /** Asks it to stop; returns its exit code. */
  stop(): Promise<number>
}

const root = join(import.meta.dir, "../..")

/** The command that runs a process with these settings; `folder` has the files they name. */
export type Launch = (kind: "api" | "worker", settings: Record<string, string>, folder: string) => string[]

const fromSource: Launch = (kind) => [
  process.execPath,
  join(root, kind === "api" ? "src/main.ts" : "workers/main.ts"),
]

export async function startCluster(
  sizes: { apis: number; workers: number },
  launch: Launch = fromSource,
): Promise<Cluster> {
  const closers: (() => unknown)[] = []
  const stop = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    const folder = mkdtempSync(join(tmpdir(), "cluster-"))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const [postgres, redis, chain] = await Promise.all([
      startPostgres(),
      startRedis(),
      startDevChain({ folder, port: 0, isAwaited: async () => true, metadata_base_url: "" }),
    ])
    closers.push(postgres.stop, redis.stop, chain.stop)
    await createDatabase(postgres)
    const settings = {
      DATABASE_URL: postgres.url(databaseName),
      REDIS_URL: redis.url,
      CHAINS: writeChains(folder, chain),
      SIGNER_KEYS: chain.signer_keys.join(","),
      AUTHORIZER_KEY: chain.authorizer_key,
      SERVICE_SECRET: "a secret of tests that is long enough",
      DATA_DIR: folder,
      LOG_LEVEL: "info",
      // One organization sends requests here as fast as it can.
      RATE_LIMIT_API_KEY: "1000000/1",
    }
    const member = async (kind: "api" | "worker", name: string) => {
      const ports = { PORT: String(await freePort()), OPERATOR_PORT: String(await freePort()) }
      const own = { ...settings, ...ports }
      const made = createMember(folder, name, own, launch(kind, own, folder))
      closers.push(made.kill)
      return made
    }
    const names = (kind: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${kind} ${index + 1}`)
    const apis = await Promise.all(names("api", sizes.apis).map((name) => member("api", name)))
    const workers = await Promise.all(names("worker", sizes.workers).map((name) => member("worker", name)))
    // All at once, so that they race for the migrations.
    await Promise.all([...apis, ...workers].map((each) => each.start()))
    const world = await openWorld(loadConfig({ ...settings, LOG_LEVEL: "silent" }), tell)
    closers.push(world.close)
    return {
      apis,
      workers,
      postgres,
      redis,
      chain,
      context: world.context,
      api_key: await seed(world.context, chain),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

export const databaseName = "service"

export async function createDatabase(postgres: PostgresCluster): Promise<void> {
  const client = new pg.Client(postgres.url("postgres"))
  await client.connect()
  await client.query(`drop database if exists ${databaseName} with (force)`)
  await client.query(`create database ${databaseName}`)
  await client.end()
}

function writeChains(folder: string, chain: DevChain): string {
  const path = join(folder, "chains.json")
  writeFileSync(path, JSON.stringify(chainsFor(chain)))
  return path
}

async function seed(context: Context, chain: DevChain): Promise<string> {
  return await inTurn(context, null, async (turn) => {
    const { id: organization_id } = await createOrganization(turn, {
      name: "Maker",
      default_chain_id: chain.chain_id,
      allowed_chain_ids: [chain.chain_id],
    })
    return (await issueApiKey(turn, { organization_id, name: "cluster" })).key
  })
}

const readyLine = /the API is listening|the workers are running/
const startPatienceMilliseconds = 30_000

function createMember(
  folder: string,
  name: string,
  settings: Record<string, string>,
  command: string[],
): Member {
  const logFile = join(folder, `${name}.log`)
  writeFileSync(logFile, "")
  const log = () => readFileSync(logFile, "utf8")
  let child: Bun.Subprocess | undefined

  async function end(signal: NodeJS.Signals): Promise<number> {
    child?.kill(signal)
    const exitCode = (await child?.exited) ?? 0
    child = undefined
    return exitCode
  }

  return {
    name,
    base_url: `http://127.0.0.1:${settings.PORT}`,
    operator_url: `http://127.0.0.1:${settings.OPERATOR_PORT}`,
    log,
    async start() {
      const before = log().length
      child = Bun.spawn(tiedToParent(command), {
        cwd: folder,
        env: { PATH: process.env.PATH, ...settings },
        stdin: "ignore",
        stdout: "ignore",
        stderr: openSync(logFile, "a"),
      })
      const deadline = performance.now() + startPatienceMilliseconds
      while (!readyLine.test(log().slice(before))) {
        if (child.exitCode !== null || performance.now() > deadline)
          throw new Error(`${name} did not start: ${log().slice(before)}`)
        await Bun.sleep(50)
      }
    },
    signal: (signal) => child?.kill(signal),
    async kill() {
      await end("SIGKILL")
    },
    stop: () => end("SIGTERM"),
  }
}
