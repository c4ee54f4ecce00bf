import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { count, eq } from "drizzle-orm"
import { effects } from "../../src/db/schema.ts"
import type { Turn } from "../../src/db/turn.ts"
import { createOpenWorkLimit } from "../../src/engine/actors/open-work.ts"
import { inTurn } from "../../src/platform/context.ts"
import { laneQueue } from "../../src/platform/queues.ts"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { startBeside } from "../harness/service-beside.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

let service: HttpService
let limited: HttpService
let maker: Customer
beforeAll(async () => {
  service = await startService()
  limited = startBeside(service, { open_work_limit: 2 })
  maker = await createCustomer(service)
})
afterAll(async () => {
  await limited.close()
  await service.close()
})

const newCollection = (by: Customer, to = limited) =>
  ask(to, "POST /v1/collections", { as: by.key, body: { name: "Autumn" } })

describe("an organization at its limit of open chain work", () => {
  test("gets 429 for a request that adds more, and nothing of the request is recorded", async () => {
    for (let each = 0; each < 2; each++) expect((await newCollection(maker)).status).toBe(201)
    const refused = await newCollection(maker)
    expect([refused.status, refused.code]).toEqual([429, "rate_limit.exceeded"])
    const shown = ["retry-after", "x-ratelimit-remaining"].map((name) => refused.headers.get(name))
    expect(shown).toEqual(["5", "0"])
    expect(await openEffects()).toBe(2)
  })

  test("can still make requests that add none, and other organizations are not affected", async () => {
    expect((await ask(limited, "GET /v1/collections", { as: maker.key })).status).toBe(200)
    expect(
      (await ask(limited, "PATCH /v1/settings", { as: maker.key, body: { default_redirect_url: null } }))
        .status,
    ).toBe(200)
    const other = await createCustomer(service)
    expect((await newCollection(other)).status).toBe(201)
  })

  test("can add more once some of it is done", async () => {
    const { db } = service.context
    const [one] = await db.read.select().from(effects).where(eq(effects.status, "open"))
    await service.behind.turn(({ tx }) =>
      tx
        .update(effects)
        .set({ status: "done" })
        .where(eq(effects.id, one?.id ?? "")),
    )
    expect((await newCollection(maker)).status).toBe(201)
  })
})

test("open client-broadcast authorizations count toward a limit of their own and leave room for other chain work", async () => {
  const giver = await createCustomer(service)
  const claims: Answer[] = []
  for (let each = 0; each < 3; each++) {
    const { token, unit_id } = await createVisitor(service, giver)
    const body = { recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", execution: "client_broadcast" }
    claims.push(await ask(limited, `POST /v1/units/${unit_id}/claims`, { as: token, body }))
  }
  expect(claims.map(({ status, code }) => [status, code])).toEqual([
    [201, null],
    [201, null],
    [429, "rate_limit.exceeded"],
  ])
  expect((await newCollection(giver)).status).toBe(201)
})

test("several processes that count only now and then keep to the limit together", async () => {
  const processes = [0, 1, 2].map(() => startBeside(service, { open_work_limit: 40 }))
  const busy = await createCustomer(service)
  const statuses: number[] = []
  while (statuses.length < 3 || (statuses.length < 60 && statuses.slice(-3).includes(201)))
    statuses.push((await newCollection(busy, processes[statuses.length % 3])).status)
  expect(statuses.filter((status) => status === 201)).toHaveLength(40)
  for (const each of processes) await each.close()
})

test("open work is not counted anew for each request", async () => {
  let counted = 0
  const db = watchedDatabase(service.context.db, ({ text }) => {
    if (text.startsWith("select count(*)") && text.includes('"effects"')) counted += 1
  })
  const turn = <T>(work: (turn: Turn) => Promise<T>) => inTurn({ ...service.context, db }, null, work)
  const within = createOpenWorkLimit(1_000)
  const { organization_id } = maker.caller
  const add = async ({ wake }: Turn) => wake(laneQueue("any"))
  for (let each = 0; each < 20; each++)
    await turn((t) => within({ ...t, at: new Date(0) }, organization_id, add))
  expect(counted).toBe(1)
  await turn((t) => within({ ...t, at: new Date(1_001) }, organization_id, add))
  expect(counted).toBe(2)
})

async function openEffects(): Promise<number> {
  const [row] = await service.context.db.read
    .select({ open: count() })
    .from(effects)
    .where(eq(effects.status, "open"))
  return Number(row?.open)
}
