import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { asc, eq } from "drizzle-orm"
import { createPublicClient, type Hex, http } from "viem"
import { openDatabase } from "../../src/db/open.ts"
import { actorEvents, actors, effects, transactionAttempts, transactions } from "../../src/db/schema.ts"
import { isFolderLocked, lockFolder } from "../../src/dev/data-lock.ts"
import type { Journey } from "../../src/dev/journey.ts"
import type { DevService } from "../../src/dev/start.ts"
import type { MachineName } from "../../src/engine/actors/lifecycles.ts"
import { replay } from "../../src/engine/actors/runtime.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import type { Environment } from "../../src/platform/config.ts"
import { newFolder, removeDevServices, root, startDev, stopGently } from "../harness/dev-service.ts"

const demos: Bun.Subprocess[] = []

afterAll(async () => {
  for (const demo of demos)
    if (demo.exitCode === null && demo.signalCode === null) await killWithService(demo)
  await removeDevServices()
})

describe("the journey from a fresh folder to a claimed and transferred unit", () => {
  test.concurrent("ends with the state of the chain itself, and can be replayed from its journal", async () => {
    const folder = newFolder()
    const dev = await startDev(folder)
    const result = await demoResult(startDemo(folder))
    expectIssuedOnce(result)
    expect(await ownerOnChain(dev.service, result)).toBe(result.owner_on_chain)
    await expectReplayable(folder)
    await expectStoredBeforeSeen(dev.service, folder)
    expect(await stopGently(dev.child)).toBe(0)
  }, 90_000)

  for (const work of ["issueUnit", "watchAuthorization"])
    test.concurrent(`survives a kill during ${work}: every unit is issued exactly once`, async () => {
      const folder = newFolder()
      const dev = await startDev(folder)
      const demo = startDemo(folder)
      await untilStored(folder, work)
      dev.child.kill("SIGKILL")
      await dev.child.exited
      const again = await startDev(folder)
      const result = await demoResult(demo)
      expectIssuedOnce(result)
      expect(await ownerOnChain(again.service, result)).toBe(result.owner_on_chain)
      await expectReplayable(folder)
      await expectStoredBeforeSeen(again.service, folder)
      await stopGently(again.child)
    }, 120_000)
})

test.concurrent("the dev service starts without requests to itself, whose log lines would appear above its key", async () => {
  const { child, service } = await startDev(newFolder())
  const metrics = await (await fetch(`${service.operator_url}/metrics`)).text()
  expect(metrics).toContain("# HELP service_requests_total")
  expect(metrics).not.toContain("service_requests_total{")
  expect(service.publishable_key).toStartWith("end_pk_live_")
  expect(await stopGently(child)).toBe(0)
}, 60_000)

test.concurrent("the request printed by the dev service works when pasted: it creates a collection", async () => {
  const { child, greeting } = await startDev(newFolder())
  const [request = "no request"] = /curl .+/.exec(greeting) ?? []
  const answer = await Bun.$`sh -c ${request}`.quiet().json()
  expect(answer).toMatchObject({ name: "Autumn Jackets", contract: { status: "deploying" } })
  expect(await stopGently(child)).toBe(0)
}, 60_000)

test.concurrent("the dev service, its demo and the operator CLI reach the local chain although a proxy is configured", async () => {
  const folder = newFolder()
  const proxied = {
    HTTP_PROXY: "http://127.0.0.1:9",
    http_proxy: "http://127.0.0.1:9",
    no_proxy: "example.com",
  }
  const { child } = await startDev(folder, proxied)
  expectIssuedOnce(await demoResult(startDemo(folder, proxied)))
  const status = Bun.spawn([process.execPath, join(root, "src/operator.ts"), "chain", "status", "--json"], {
    env: { ...process.env, ...proxied, DATA_DIR: folder },
    stdout: "pipe",
  })
  expect(await status.stdout.json()).toMatchObject({ chains: [{ reachable: true }] })
  expect(await stopGently(child)).toBe(0)
}, 120_000)

describe("the demo", () => {
  test.concurrent("prints its usage", async () => {
    const child = Bun.spawn([process.execPath, join(root, "src/demo.ts"), "--help"], { stdout: "pipe" })
    expect(await child.stdout.text()).toStartWith("bun run demo [--json]\n")
    expect(await child.exited).toBe(0)
  })

  test.concurrent("says that no service is running in its folder before it starts its own", async () => {
    const folder = newFolder()
    expect(await stepsOfDemo(folder, 1)).toEqual([
      `  ✓ service started for this demo, as none runs in ${folder}`,
    ])
  }, 60_000)

  test.concurrent("waits for another demo that has started a service, which would end together with that demo", async () => {
    const folder = newFolder()
    const first = startDemo(folder)
    while (!existsSync(join(folder, "dev.json"))) await Bun.sleep(50)
    const steps = stepsOfDemo(folder, 2)
    expectIssuedOnce(await demoResult(first))
    expect(await steps).toEqual([
      `  ✓ waited for another demo that uses ${folder}`,
      `  ✓ service started for this demo, as none runs in ${folder}`,
    ])
  }, 90_000)

  test.concurrent("waits for a service that is starting in its folder, and starts none of its own", async () => {
    const folder = newFolder()
    const unlock = lockFolder(folder)
    const starting = serveHealth(folder, (asked) => (asked === 1 ? 503 : 200))
    expect(await stepsOfDemo(folder, 1)).toEqual([`  ✓ waited for the service that uses ${folder}`])
    await starting.stop(true)
    unlock()
  }, 60_000)

  test.concurrent("starts its own service if the one of another folder runs where its own last did", async () => {
    const folder = newFolder()
    const { child, service } = await startDev(newFolder())
    const last = { ...service, api_key: "end_sk_ofTheServiceThatRanHereLast" }
    writeFileSync(join(folder, "dev.json"), JSON.stringify(last))
    expectIssuedOnce(await demoResult(startDemo(folder)))
    expect(await stopGently(child)).toBe(0)
  }, 90_000)

  test.concurrent("starts its own service if its folder is a copy of one whose service runs", async () => {
    const folder = newFolder()
    const { child, service } = await startDev(newFolder())
    writeFileSync(join(folder, "dev.json"), JSON.stringify(service))
    expect(await stepsOfDemo(folder, 1)).toEqual([
      `  ✓ service started for this demo, as none runs in ${folder}`,
    ])
    expect(await stopGently(child)).toBe(0)
  }, 60_000)

  test.concurrent("starts its own service also where API_BASE_URL is the address of one that does not run", async () => {
    const folder = newFolder()
    const environment = { API_BASE_URL: "http://localhost:9" }
    expect(await stepsOfDemo(folder, 1, environment)).toEqual([
      `  ✓ service started for this demo, as none runs in ${folder}`,
    ])
  }, 60_000)

  test.concurrent("ends together with its own service when only it gets a signal", async () => {
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const) {
      const folder = newFolder()
      const demo = startDemo(folder)
      // The demo, too, locks the folder for a moment to see whether a service has it; only a service has a database.
      while (!existsSync(join(folder, "service.db"))) await Bun.sleep(10)
      demo.kill(signal)
      const exitCode = await demo.exited
      const isServed = isFolderLocked(folder)
      if (isServed) await killWithService(demo)
      expect({ exitCode, isServed }).toEqual({ exitCode: 1, isServed: false })
    }
  }, 90_000)

  test.concurrent("starts its own service if the one in its folder exits instead", async () => {
    const folder = newFolder()
    const unlock = lockFolder(folder)
    const ending = serveHealth(folder, (asked) => {
      if (asked === 2) unlock()
      return 503
    })
    expect(await stepsOfDemo(folder, 2)).toEqual([
      `  ✓ waited for the service that uses ${folder}`,
      `  ✓ service started for this demo, as none runs in ${folder}`,
    ])
    await ending.stop(true)
  }, 60_000)
})

/** A fake service of a folder: returns the status for the nth check, and does not answer other requests. */
function serveHealth(folder: string, statusAt: (asked: number) => number) {
  let asked = 0
  const server = Bun.serve({
    port: 0,
    routes: { "/v1/settings": () => new Response(null, { status: statusAt(++asked) }) },
    fetch: () => new Promise<Response>(() => {}),
  })
  writeFileSync(join(folder, "dev.json"), JSON.stringify({ base_url: server.url.origin }))
  return server
}

/** The first steps that a demo prints, without durations; kills it after them. */
async function stepsOfDemo(folder: string, count: number, environment: Environment = {}): Promise<string[]> {
  const demo = Bun.spawn([process.execPath, join(root, "src/demo.ts")], {
    env: { ...process.env, ...environment, DATA_DIR: folder },
    stdout: "pipe",
    stderr: "ignore",
    detached: true,
  })
  let printed = ""
  for await (const chunk of demo.stdout) {
    printed += new TextDecoder().decode(chunk)
    if (printed.split("\n").length > count) break
  }
  await killWithService(demo)
  const lines = printed.split("\n").slice(0, count)
  return lines.map((line) => line.replace(/ \([\d.]+ s\)$/, ""))
}

/** Polls the running service's database until it has an effect of that name, which may be done before it is seen open. */
async function untilStored(folder: string, work: string): Promise<void> {
  const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
  while ((await db.read.select().from(effects).where(eq(effects.src, work))).length === 0) await Bun.sleep(10)
  await db.close()
}

function startDemo(folder: string, environment: Environment = {}) {
  const demo = Bun.spawn([process.execPath, join(root, "src/demo.ts"), "--json"], {
    env: { ...process.env, ...environment, DATA_DIR: folder },
    stdout: "pipe",
    stderr: "inherit",
    detached: true,
  })
  demos.push(demo)
  return demo
}

/** A demo has a process group of its own, in which the service that it started is, too. */
async function killWithService(demo: Bun.Subprocess): Promise<void> {
  process.kill(-demo.pid, "SIGKILL")
  await demo.exited
}

async function demoResult(demo: ReturnType<typeof startDemo>): Promise<Journey> {
  const printed = await new Response(demo.stdout).text()
  expect(await demo.exited).toBe(0)
  return JSON.parse(printed)
}

function expectIssuedOnce(result: Journey): void {
  const serials = result.units.map(({ serial }) => serial)
  expect(serials).toEqual(serials.map((_serial, index) => index + 1))
  expect(result.issued_on_chain).toEqual(serials as number[])
}

async function ownerOnChain(service: DevService, result: Journey): Promise<string> {
  const client = createPublicClient({ transport: http(service.chain.rpc_url) })
  return await client.readContract({
    address: result.collection.address as Hex,
    abi: collectionAbi,
    functionName: "ownerOf",
    args: [1n],
  })
}

async function expectReplayable(folder: string): Promise<void> {
  const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
  const rows = await db.read.select().from(actors)
  const journalled = rows.filter(({ machine }) => machine !== "session-token")
  expect(journalled.length).toBeGreaterThan(8)
  for (const actor of journalled) {
    const journal = await db.read
      .select({ event: actorEvents.event })
      .from(actorEvents)
      .where(eq(actorEvents.actor_id, actor.id))
      .orderBy(asc(actorEvents.number))
    const events = journal.map(({ event }) => event)
    expect(replay(actor.machine as MachineName, events)).toEqual(actor.snapshot)
  }
  await db.close()
}

/** Every transaction of the service's signers on the chain was stored before it was sent, and each nonce has one. */
async function expectStoredBeforeSeen(service: DevService, folder: string): Promise<void> {
  const db = openDatabase(`sqlite:${join(folder, "service.db")}`)
  const client = createPublicClient({ transport: http(service.chain.rpc_url) })
  const stored = new Set((await db.read.select().from(transactionAttempts)).map(({ hash }) => hash))
  const nonces = (await db.read.select().from(transactions)).map(
    ({ lane_id, nonce }) => `${lane_id} ${nonce}`,
  )
  expect(new Set(nonces).size).toBe(nonces.length)
  const senders = new Set(nonces.map((each) => each.split(/[: ]/)[1]?.toLowerCase()))
  const head = await client.getBlockNumber()
  for (let number = 0n; number <= head; number++) {
    const block = await client.getBlock({ blockNumber: number, includeTransactions: true })
    for (const sent of block.transactions) if (senders.has(sent.from)) expect(stored).toContain(sent.hash)
  }
  await db.close()
}
