import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { AsyncLocalStorage } from "node:async_hooks"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { count, eq } from "drizzle-orm"
import { type SealedSecret, webhookEndpoints } from "../../src/db/event-schema.ts"
import { chips, organizations } from "../../src/db/schema.ts"
import {
  resealSigningSecrets,
  signingSecrets,
  withNewSecret,
} from "../../src/engine/events/signing-secrets.ts"
import { unwrapChipKeys } from "../../src/engine/sun/chip-keys.ts"
import { openUncheckedWorld, openWorld, type World } from "../../src/engine/world.ts"
import { cursorFor, positionOf } from "../../src/http/cursor.ts"
import { answerOnce, findKeptAnswer } from "../../src/http/idempotency.ts"
import type { Values } from "../../src/operator/commands/command.ts"
import { secretCommands } from "../../src/operator/commands/secrets.ts"
import { rewrapAll } from "../../src/operator/verbs/rewrap.ts"
import type { Caller } from "../../src/platform/caller.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import { adoptSecret } from "../../src/platform/service-secrets.ts"
import { importChips } from "../../src/resources/chip-stock/import.ts"
import { keySourcesOf } from "../../src/resources/chips/key-sources.ts"
import { createKeySet } from "../../src/resources/key-sets/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { currentKey, publishedKeys } from "../../src/resources/receipts/keys.ts"
import { createWebhookEndpoint, rotateWebhookSecret } from "../../src/resources/webhook-endpoints/service.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

const first = "the first secret of these tests, long enough"
const second = "the second secret of these tests, long enough"
const third = "the third secret of these tests, long enough"

describe.each(engines)("a service secret on $name", (engine) => {
  const databases = useEngine(engine)
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "secrets-"))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const configOf = (url: string, current: string, previous?: string) =>
    loadConfig({
      DATABASE_URL: url,
      DATA_DIR: folder,
      LOG_LEVEL: "silent",
      SERVICE_SECRET: current,
      ...(previous !== undefined && { SERVICE_SECRET_PREVIOUS: previous }),
    })

  /** A process that starts with these secrets, does one thing and ends. */
  async function inProcess<T>(
    url: string,
    [current, previous]: [current: string, previous?: string],
    work: (world: World) => Promise<T>,
  ): Promise<T> {
    const world = await openWorld(configOf(url, current, previous), tell)
    try {
      return await work(world)
    } finally {
      await world.close()
    }
  }

  const start = (url: string, current: string, previous?: string) =>
    inProcess(url, previous === undefined ? [current] : [current, previous], async () => "started")

  test("that is wrong makes every start fail with one line", async () => {
    const url = await databases.newDatabase()
    expect(await start(url, first)).toBe("started")
    for (let attempt = 1; attempt <= 2; attempt++) {
      const refused = await start(url, second).catch((error: Error) => error.message)
      expect(refused).toStartWith("SERVICE_SECRET is not the one that this database was written with")
      expect(refused).not.toContain("\n")
      expect(refused).not.toContain(second)
    }
    expect(await start(url, first)).toBe("started")
  })

  test("that has quotation marks or a line break around it is not taken by a new database", async () => {
    const url = await databases.newDatabase()
    for (const odd of [`"${first}"`, `${first}\n`])
      await expect(start(url, odd)).rejects.toThrow("SERVICE_SECRET begins or ends with a quotation mark")
    expect(await start(url, first)).toBe("started")
    const refused = await start(url, `"${first}"`).catch((error: Error) => error.message)
    expect(refused).toStartWith("SERVICE_SECRET is not the one")
    expect(refused).toEndWith("which counts as part of it: remove that")
  })

  test("that has quotation marks around it keeps opening what an earlier release sealed with it", async () => {
    const url = await databases.newDatabase()
    const odd = `"${first}"`
    const world = await openUncheckedWorld(configOf(url, odd), tell)
    await inTurn(world.context, null, (turn) =>
      createOrganization(turn, { name: "Acme", default_chain_id: null, allowed_chain_ids: [] }),
    )
    await world.close()
    expect(await start(url, odd)).toBe("started")
  })

  test("is chosen once if several processes start with different ones on a new database", async () => {
    const url = await databases.newDatabase()
    await databases.open(url).close()
    const world = await openUncheckedWorld(configOf(url, first), tell)
    await world.close()
    const secrets = [first, second, third, first, second, third]
    const started = await Promise.allSettled(secrets.map((secret) => start(url, secret)))
    const winners = secrets.filter((_, index) => started[index]?.status === "fulfilled")
    expect(new Set(winners).size).toBe(1)
    expect(winners).toHaveLength(2)
    expect(await start(url, String(winners[0]))).toBe("started")
  })

  test("can be rotated without losing a chip key, a stored response or a cursor", async () => {
    const url = await databases.newDatabase()
    const asked = { scope: "organization:x", key: "key", operation: "createUnit", fingerprint: "print" }
    const scope = { operation: "listUnits", organization_id: "x", filters: "{}" }
    const position = { created_at: new Date("2030-01-01T00:00:00.000Z"), id: newId() }
    const lines = drawLines(1_203)
    const master = crypto.getRandomValues(Buffer.alloc(16))
    const masterIn = async ({ context }: World) => {
      const { db, config } = context
      const [organization] = await db.read.select().from(organizations)
      const [source] = await keySourcesOf(db.read, config.service_secret, String(organization?.id))
      return Buffer.from(source?.master ?? []).equals(master)
    }

    const cursor = await inProcess(url, [first], async ({ context }) => {
      const organization_id = await organizationOf({ context })
      await importChips(context, organization_id, lines)
      const secret = context.config.service_secret
      const set = { organization_id, name: "Tags", scheme: "an10922", master, zero_is_allowed: false }
      await inTurn(context, null, (turn) => createKeySet(turn, secret, set))
      await inTurn(context, null, (turn) =>
        answerOnce(turn, secret, asked, async () => ({ status: 201, body: "the answer", location: null })),
      )
      await endpointOf(context, organization_id)
      await publishedKeys(context)
      return cursorFor(secret, scope, position)
    })

    await inProcess(url, [second, first], async ({ context }) => {
      expect(await unreadableChips(context)).toBe(0)
      expect(await findKeptAnswer(context, asked)).toMatchObject({ body: "the answer" })
      expect(positionOf(context.config.service_secret, scope, cursor)).toEqual(position)
      const anew = cursorFor(context.config.service_secret, scope, position)
      expect(positionOf({ current: second, previous: null }, scope, anew)).toEqual(position)
    })
    expect(await start(url, second).catch((error: Error) => error.message)).toStartWith(
      "an earlier secret is still needed",
    )
    expect(await start(url, first).catch((error: Error) => error.message)).toStartWith(
      "SERVICE_SECRET is not the one",
    )

    const told: unknown[] = []
    const done = await inProcess(url, [second, first], ({ context }) =>
      rewrapAll(context, (...words) => told.push(words)),
    )
    expect(done).toEqual({
      chip_keys: { rewrapped: 1_203, sealed_before: 0, unreadable: [] },
      key_set_masters: { rewrapped: 1, sealed_before: 0, unreadable: [] },
      kept_answers: { rewrapped: 1, sealed_before: 0, unreadable: [] },
      webhook_secrets: { rewrapped: 1, sealed_before: 0, unreadable: [] },
      receipt_keys: { rewrapped: 1, sealed_before: 0, unreadable: [] },
    })
    expect(told).toEqual([
      ["chip_keys", 500],
      ["chip_keys", 1_000],
      ["chip_keys", 1_203],
      ["key_set_masters", 1],
      ["kept_answers", 1],
      ["webhook_secrets", 1],
      ["receipt_keys", 1],
    ])
    await inProcess(url, [second], async (world) => {
      const { context } = world
      expect(await masterIn(world)).toBe(true)
      const { public_jwk } = await currentKey(context.db.read, context.config.service_secret)
      expect(await publishedKeys(context)).toEqual([public_jwk])
      expect(await unreadableChips(context)).toBe(0)
      expect(await findKeptAnswer(context, asked)).toMatchObject({ body: "the answer" })
    })
  })

  test("rotation can be resumed after an interruption", async () => {
    const url = await databases.newDatabase()
    await inProcess(url, [first], async ({ context }) => {
      await importChips(context, await organizationOf({ context }), drawLines(1_100))
    })
    await inProcess(url, [second, first], async ({ context }) => {
      const cut = rewrapAll(context, (_kind, done) => {
        if (done === 1_000) throw new Error("cut short")
      })
      expect(await cut.catch((error: Error) => error.message)).toBe("cut short")
      expect((await rewrapAll(context)).chip_keys).toEqual({
        rewrapped: 100,
        sealed_before: 1_000,
        unreadable: [],
      })
    })
    expect(await start(url, second)).toBe("started")
  })

  test("can be rotated while an organization rotates a webhook secret", async () => {
    const url = await databases.newDatabase()
    const { caller, id } = await inProcess(url, [first], async ({ context }) =>
      endpointOf(context, await organizationOf({ context })),
    )
    await inProcess(url, [second, first], async ({ context }) => {
      const outside = AsyncLocalStorage.snapshot()
      const rotate = () =>
        inTurn(context, null, (turn) => rotateWebhookSecret(turn, context.config.service_secret, caller, id))
      let rotated: Promise<unknown> | undefined
      const db = watchedDatabase(context.db, async ({ text, rows }) => {
        if (!text.includes('from "webhook_endpoints"') || rows.length === 0 || rotated) return
        rotated = outside(rotate)
        // With a single writer the rotation comes next; with several it comes first.
        if (engine.name === "postgres") await rotated
      })
      await rewrapAll({ ...context, db })
      await rotated
    })
    await inProcess(url, [second], async (world) => expect(await signersOf(world, id)).toBe(2))
  })

  test("rotation ends even while responses are being stored all the time", async () => {
    const url = await databases.newDatabase()
    const keep = ({ context }: World) => {
      const asked = { scope: "organization:x", key: newId(), operation: "createUnit", fingerprint: "print" }
      const answer = async () => ({ status: 201, body: "an answer ".repeat(60), location: null })
      const { service_secret: secret } = context.config
      return inTurn(context, null, (turn) => answerOnce(turn, secret, asked, answer))
    }
    const keepMany = (world: World) => Promise.all(Array.from({ length: 50 }, () => keep(world)))
    await inProcess(url, [first], async (world) => {
      for (let kept = 0; kept < 1_200; kept += 50) await keepMany(world)
    })
    await inProcess(url, [second, first], (busy) =>
      inProcess(url, [second, first], async ({ context }) => {
        let isOver = false
        const keepOn = async () => {
          while (!isOver) {
            await keep(busy)
            await Bun.sleep(1)
          }
        }
        const kept = Promise.all(Array.from({ length: 8 }, keepOn))
        const progress: number[] = []
        const onProgress = (kind: string, done: number) => kind === "kept_answers" && progress.push(done)
        const done = await rewrapAll(context, onProgress).finally(() => {
          isOver = true
        })
        await kept
        // Only the last batch is small: rows that are added meanwhile are not chased.
        expect(progress.slice(0, -1).filter((count) => count % 500 > 0)).toEqual([])
        expect(done.kept_answers).toMatchObject({ rewrapped: 1_200, unreadable: [] })
      }),
    )
    expect(await start(url, second)).toBe("started")
  }, 30_000)

  test("that is lost can be replaced by the current one, and importing the same file restores the chip keys", async () => {
    const url = await databases.newDatabase()
    const lines = drawLines(5)
    let endpoint: Awaited<ReturnType<typeof endpointOf>> | undefined
    const organization_id = await inProcess(url, [first], async ({ context }) => {
      const id = await organizationOf({ context })
      await importChips(context, id, lines)
      await context.db.transaction((tx) => tx.update(chips).set({ counter: 40 }))
      const secret = context.config.service_secret
      const master = crypto.getRandomValues(Buffer.alloc(16))
      const set = { organization_id: id, name: "Tags", scheme: "an10922", master, zero_is_allowed: false }
      await inTurn(context, null, (turn) => createKeySet(turn, secret, set))
      await publishedKeys(context)
      endpoint = await endpointOf(context, id)
      return id
    })
    const world = await openUncheckedWorld(configOf(url, second), tell)
    await inTurn(world.context, null, (turn) => adoptSecret(turn, world.context.config.service_secret))
    await world.close()
    await inProcess(url, [second], async (world) => {
      const { context } = world
      expect(await unreadableChips(context)).toBe(5)
      const { document, lines: told } = await rewrapByCommand(world)
      const chipIds = lines.map(({ chip_id }) => chip_id).sort()
      expect(document).toMatchObject({
        chip_keys: { rewrapped: 0, unreadable: chipIds },
        key_set_masters: { rewrapped: 0, unreadable: [expect.stringContaining("version 1")] },
        kept_answers: { rewrapped: 0, unreadable: [] },
        webhook_secrets: { rewrapped: 0, unreadable: [endpoint?.id] },
        receipt_keys: { rewrapped: 0, unreadable: [expect.anything()] },
      })
      expect(told).toEqual([
        expect.stringContaining("0 were encrypted again"),
        `5 keys of chips can be decrypted with neither secret: import these chips again; test chips cannot be imported, so use new ones (${chipIds.join(", ")})`,
        expect.stringMatching(/^1 master keys of key sets .*: run key-sets rotate/),
        expect.stringMatching(/^1 secrets of webhook endpoints .* with POST .*\/secrets \(.{36}\)$/),
        expect.stringMatching(/^1 keys of receipts .*: run receipt-keys rotate/),
      ])

      const other = await organizationOf({ context })
      const stolen = await importChips(context, other, lines).catch((error: Error) => error.message)
      expect(stolen).toContain("for another organization")
      const moved = lines.map((line) => ({ ...line, uid: line.uid.replace(/^../, "FF") }))
      const changed = await importChips(context, organization_id, moved).catch(
        (error: Error) => error.message,
      )
      expect(changed).toContain("with other values")
      expect(await unreadableChips(context)).toBe(5)

      expect(await importChips(context, organization_id, lines)).toEqual({
        imported: 0,
        replaced: 5,
        changed: 0,
        already_imported: 0,
      })
      expect(await unreadableChips(context)).toBe(0)
      const [{ rows } = { rows: 0 }] = await context.db.read
        .select({ rows: count() })
        .from(chips)
        .where(eq(chips.counter, 40))
      expect(rows).toBe(5)
      expect(await importChips(context, organization_id, lines)).toMatchObject({ already_imported: 5 })
    })
  })
})

test("a lost service secret does not invalidate webhook secrets that another one encrypted", () => {
  const [id, at] = [newId(), new Date()]
  const sealedUnder = (current: string, added: string) =>
    withNewSecret({ current, previous: null }, id, { before: [], added, at })
  const mixed = [...sealedUnder(second, "whsec_b"), ...sealedUnder(first, "whsec_a")]
  const anew = resealSigningSecrets({ current: third, previous: second }, id, mixed) ?? []
  expect(signingSecrets({ current: third, previous: null }, id, { secrets: anew, at })).toEqual(["whsec_b"])
})

test("webhook secrets that cannot be decrypted do not count toward the limit", () => {
  const [id, at] = [newId(), new Date()]
  const rotate = (current: string, before: SealedSecret[]) =>
    withNewSecret({ current, previous: null }, id, { before, added: "whsec_a", at })
  const most = [1, 2, 3, 4, 5].reduce((before: SealedSecret[]) => rotate(first, before), [])
  expect(() => rotate(first, most)).toThrow("at most 5")
  expect(rotate(second, most).length).toBe(6)
})

async function organizationOf({ context }: Pick<World, "context">): Promise<string> {
  const input = { name: "Maker", default_chain_id: null, allowed_chain_ids: [] }
  return (await inTurn(context, null, (turn) => createOrganization(turn, input))).id
}

async function endpointOf(context: World["context"], organization_id: string) {
  const caller: Caller = { organization_id, kind: "api_key", credential_id: newId(), session: null }
  const url = "https://receiver.test/events"
  const { endpoint } = await inTurn(context, null, (turn) =>
    createWebhookEndpoint(turn, context.config.service_secret, caller, { body: { url }, url }),
  )
  return { caller, id: endpoint.id }
}

async function rewrapByCommand(world: World) {
  const command = secretCommands.find(({ name }) => name === "secrets rewrap")
  const output = await command?.plan({} as Values)(world)
  if (!output || "pieces" in output) throw new Error("this command answers at once")
  return { document: output.document, lines: output.text.split("\n") }
}

/** Returns how many secrets sign for an endpoint. */
async function signersOf({ context }: World, endpointId: string): Promise<number> {
  const [{ secrets } = { secrets: [] }] = await context.db.read
    .select()
    .from(webhookEndpoints)
    .where(eq(webhookEndpoints.id, endpointId))
  const at = context.clock()
  return signingSecrets(context.config.service_secret, endpointId, { secrets, at }).length
}

async function unreadableChips(context: World["context"]): Promise<number> {
  const rows = await context.db.read.select().from(chips)
  return rows.filter((row) => {
    try {
      unwrapChipKeys(context.config.service_secret, row.chip_id, row.wrapped_keys)
      return false
    } catch {
      return true
    }
  }).length
}

function drawLines(amount: number) {
  return Array.from({ length: amount }, (_, index) => ({
    place: `line ${index + 2}`,
    chip_id: crypto.getRandomValues(Buffer.alloc(5)).toString("hex").toUpperCase(),
    uid: crypto.getRandomValues(Buffer.alloc(7)).toString("hex").toUpperCase(),
    meta_key: crypto.getRandomValues(Buffer.alloc(16)),
    file_key: crypto.getRandomValues(Buffer.alloc(16)),
    counter: 0,
    has_mac: false,
    mac_input: "",
    tamper: false,
  }))
}
