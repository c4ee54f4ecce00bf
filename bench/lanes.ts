import { eq } from "drizzle-orm"
import { claims, units } from "../src/db/schema.ts"
import type { Turn } from "../src/db/turn.ts"
import { openWorld } from "../src/engine/world.ts"
import type { Caller } from "../src/platform/caller.ts"
import { loadConfig } from "../src/platform/config.ts"
import { type Context, inTurn } from "../src/platform/context.ts"
import { pairChip } from "../src/resources/chips/service.ts"
import { createClaim, prepareClaim } from "../src/resources/claims/service.ts"
import { createCollection, getCollection } from "../src/resources/collections/service.ts"
import { tell } from "../src/resources/news/tell.ts"
import { createUnit } from "../src/resources/units/service.ts"
import { newCaller } from "../test/faults/play.ts"
import type { Faults } from "../test/faults/proxy.ts"
import { accountAt, openStage } from "../test/faults/stage.ts"
import { startWorkers } from "../workers/start.ts"
import { quantile } from "./load/client.ts"
import { report } from "./report.ts"

// How much longer an issuance and a claim take than on a quiet chain with well providers: beside a provider that is
// not well, and beside another organization that asks for four hundred collections at once.
const blockMilliseconds = 500
const rounds = 5

type Measured = { issuance_milliseconds: number; claim_milliseconds: number }

type Case = { name: string; faults: Partial<Faults>; deployments: number }

const error = { code: -32_011, message: "no backends available for method" }
const cases: Case[] = [
  { name: "quiet, two well providers", faults: {}, deployments: 0 },
  {
    name: "first provider: JSON errors under 503",
    faults: { says_always: { status: 503, ...error } },
    deployments: 0,
  },
  {
    name: "first provider: unknown words under 200",
    faults: { says_always: { status: 200, ...error } },
    deployments: 0,
  },
  { name: "first provider: swallows what is sent", faults: { swallows: true }, deployments: 0 },
  { name: "another organization's 400 deployments", faults: {}, deployments: 400 },
]

async function measure({ faults, deployments }: Case): Promise<Measured> {
  const stage = await openStage(
    { confirmation_depth: 2, finality_depth: 6, block_time_seconds: blockMilliseconds / 1_000 },
    2,
  )
  const world = await openWorld(loadConfig({ ...stage.environment, LOG_LEVEL: "silent" }), tell)
  const { context } = world
  const workers = startWorkers(world)
  const blocks = setInterval(() => void stage.anvil.client.mine({ blocks: 1 }), blockMilliseconds)
  try {
    const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn(context, null, work)
    const caller = await newCaller(turn)
    const collection = await turn((t) => createCollection(t, context.chains, caller, { name: "Autumn" }))
    await until(async () => (await getCollection(context.db.read, caller, collection.id)).status === "active")
    Object.assign(stage.proxies[0]?.faults ?? {}, faults)
    const other = await newCaller(turn)
    for (let each = 0; each < deployments; each++)
      await turn((t) => createCollection(t, context.chains, other, { name: "Many" }))

    const issuances: number[] = []
    const handOvers: number[] = []
    for (let round = 0; round < rounds; round++) {
      const { id: unit_id } = await turn((t) => createUnit(t, caller, { collection_id: collection.id }))
      issuances.push(await timed(() => issue(context, caller, unit_id)))
      handOvers.push(await timed(() => claim(context, caller, unit_id)))
    }
    return { issuance_milliseconds: middle(issuances), claim_milliseconds: middle(handOvers) }
  } finally {
    clearInterval(blocks)
    await workers.stop()
    await world.close()
    await stage.close()
  }
}

async function issue(context: Context, caller: Caller, unit_id: string): Promise<void> {
  const secret = context.config.service_secret
  await inTurn(context, null, (turn) => pairChip(turn, secret, caller, { unit_id, is_test: true }))
  await until(async () => {
    const [unit] = await context.db.read.select().from(units).where(eq(units.id, unit_id))
    return unit?.token_status === "active"
  })
}

async function claim(context: Context, caller: Caller, unit_id: string): Promise<void> {
  const body = { recipient: accountAt(7).address, execution: "service_relay" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  const { id } = await inTurn(context, null, (turn) => createClaim(turn, caller, { unit_id, body, prepared }))
  await until(async () => {
    const [made] = await context.db.read.select().from(claims).where(eq(claims.id, id))
    return made?.status === "claimed"
  })
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

function middle(numbers: number[]): number {
  return Math.round(quantile(numbers, 0.5))
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("it did not happen within a minute")
    await Bun.sleep(10)
  }
}

const results: (Measured & { name: string; issuance_ratio: number; claim_ratio: number })[] = []
for (const each of cases) {
  const measured = await measure(each)
  const quiet = results[0] ?? measured
  const ratio = (mine: number, usual: number) => Math.round((mine / usual) * 100) / 100
  results.push({
    name: each.name,
    ...measured,
    issuance_ratio: ratio(measured.issuance_milliseconds, quiet.issuance_milliseconds),
    claim_ratio: ratio(measured.claim_milliseconds, quiet.claim_milliseconds),
  })
}
const lines = results.map(
  ({ name, issuance_milliseconds, issuance_ratio, claim_milliseconds, claim_ratio }) =>
    `${name.padEnd(42)} issuance ${issuance_milliseconds} ms (${issuance_ratio}), claim ${claim_milliseconds} ms (${claim_ratio})\n`,
)
report(results, lines.join(""))
