import { beforeAll, describe, expect, test } from "bun:test"
import { getTableName, is, sql } from "drizzle-orm"
import { getTableConfig, PgTable } from "drizzle-orm/pg-core"
import * as chainSchema from "../../src/db/chain-schema.ts"
import * as chipRefusalSchema from "../../src/db/chip-refusal-schema.ts"
import type { Database } from "../../src/db/database.ts"
import * as eventSchema from "../../src/db/event-schema.ts"
import * as keySetSchema from "../../src/db/key-set-schema.ts"
import * as operatorSchema from "../../src/db/operator-schema.ts"
import * as receiptKeySchema from "../../src/db/receipt-key-schema.ts"
import * as schema from "../../src/db/schema.ts"
import * as secretSchema from "../../src/db/service-secret-schema.ts"
import * as usageSchema from "../../src/db/usage-schema.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { keySetRow, keySetVersionRow, manifestRow, receiptKeyRow } from "../harness/key-set-rows.ts"
import {
  chipReplacementRow,
  chipRow,
  claimRow,
  collectionRow,
  insertScene,
  laneRow,
  organizationRow,
  type Scene,
  sessionTokenRow,
  startOfTime,
  tapRow,
  transferRow,
  unitRow,
} from "../harness/scene.ts"

const schemas = [
  schema,
  chainSchema,
  keySetSchema,
  secretSchema,
  usageSchema,
  eventSchema,
  operatorSchema,
  receiptKeySchema,
  chipRefusalSchema,
].flatMap((each) => Object.values<unknown>(each))
const tables = schemas.filter((value) => is(value, PgTable))

type Row = [table: PgTable, values: Record<string, unknown>]

/** Rows that may not exist together: the last one is rejected because of those before it. */
type Conflict = { rule: string; rows: (scene: Scene) => Row[] }

const unique: Conflict[] = [
  {
    rule: "only one receipt key is the next",
    rows: () => [
      [receiptKeySchema.receiptKeys, receiptKeyRow("one")],
      [receiptKeySchema.receiptKeys, receiptKeyRow("other")],
    ],
  },
  {
    rule: "a name belongs to one key set in use",
    rows: (scene) => [
      [keySetSchema.keySets, keySetRow(scene, { name: "Autumn" })],
      [keySetSchema.keySets, keySetRow(scene, { name: "Autumn" })],
    ],
  },
  {
    rule: "a version of a key set exists once",
    rows: (scene) => {
      const keySet = keySetRow(scene)
      return [
        [keySetSchema.keySets, keySet],
        [keySetSchema.keySetVersions, keySetVersionRow(keySet.id)],
        [keySetSchema.keySetVersions, keySetVersionRow(keySet.id)],
      ]
    },
  },
  {
    rule: "a unit has one chip",
    rows: (scene) => [
      [schema.chips, chipRow(scene, { unit_id: scene.unit_id })],
      [schema.chips, chipRow(scene, { unit_id: scene.unit_id })],
    ],
  },
  {
    rule: "a chip's UID exists once",
    rows: (scene) => [
      [schema.chips, chipRow(scene, { uid: "04AABBCCDDEE80" })],
      [schema.chips, chipRow(scene, { uid: "04AABBCCDDEE80" })],
    ],
  },
  {
    rule: "a chip ID exists once",
    rows: (scene) => [
      [schema.chips, chipRow(scene, { chip_id: "00000000FF" })],
      [schema.chips, chipRow(scene, { chip_id: "00000000FF" })],
    ],
  },
  {
    rule: "a unit has one open relayed claim",
    rows: (scene) => [
      [schema.claims, claimRow(scene)],
      [schema.claims, claimRow(scene)],
    ],
  },
  {
    rule: "a unit has one open chip replacement, even if the other is prepared",
    rows: (scene) => replacements(scene, "prepared", "prepared"),
  },
  {
    rule: "a unit has one open chip replacement, even if the other is submitted",
    rows: (scene) => replacements(scene, "submitted", "prepared"),
  },
  {
    rule: "a collection assigns a serial once",
    rows: (scene) => [
      [schema.units, issuedUnitRow(scene, 7)],
      [schema.units, issuedUnitRow(scene, 7)],
    ],
  },
  {
    rule: "a collection's serial is found once",
    rows: (scene) => [
      [chainSchema.foundSerials, foundSerialRow(scene)],
      [chainSchema.foundSerials, foundSerialRow(scene)],
    ],
  },
  {
    rule: "a serial without a unit has one owner",
    rows: (scene) => [
      [chainSchema.foundOwners, foundOwnerRow(scene)],
      [chainSchema.foundOwners, foundOwnerRow(scene)],
    ],
  },
  {
    rule: "a chip's counter with one key version is used once",
    rows: (scene) => tapped(scene, [{ counter: 5 }, { counter: 5 }]),
  },
  {
    rule: "a collection has one bulk pairing in progress",
    rows: (scene) => [
      [schema.bulkPairings, bulkPairingRow(scene)],
      [schema.bulkPairings, bulkPairingRow(scene)],
    ],
  },
  {
    rule: "an external ID belongs to one collection of an organization",
    rows: (scene) => [
      [schema.collections, collectionRow(scene, { external_id: "x" })],
      [schema.collections, collectionRow(scene, { external_id: "x" })],
    ],
  },
  {
    rule: "an external ID belongs to one unit of an organization",
    rows: (scene) => [
      [schema.units, unitRow(scene, { external_id: "x" })],
      [schema.units, unitRow(scene, { external_id: "x" })],
    ],
  },
  {
    rule: "an external ID belongs to one product of an organization",
    rows: (scene) => [
      [schema.products, { ...productRow(scene), external_id: "x" }],
      [schema.products, { ...productRow(scene), external_id: "x" }],
    ],
  },
  {
    rule: "an address on a chain belongs to one collection",
    rows: (scene) => [
      [schema.collections, collectionRow(scene, { address: "0x01" })],
      [schema.collections, collectionRow(scene, { address: "0x01" })],
    ],
  },
  {
    rule: "a signer has one lane on a chain",
    rows: () => [
      [schema.lanes, { ...laneRow(), address: "0x02" }],
      [schema.lanes, { ...laneRow(), address: "0x02" }],
    ],
  },
  {
    rule: "an API key's hash exists once",
    rows: (scene) => [
      [schema.apiKeys, { ...apiKeyRow(scene), hash: "x" }],
      [schema.apiKeys, { ...apiKeyRow(scene), hash: "x" }],
    ],
  },
  {
    rule: "a publishable key exists once",
    rows: (scene) => [
      [schema.publishableKeys, { ...publishableKeyRow(scene), key: "x" }],
      [schema.publishableKeys, { ...publishableKeyRow(scene), key: "x" }],
    ],
  },
  {
    rule: "a session token's hash exists once",
    rows: (scene) => {
      const rows = tapped(scene, [{}])
      const session = sessionTokenRow(scene, lastOf(rows) as { id: string; chip_id: string })
      return [...rows, [schema.sessionTokens, session], [schema.sessionTokens, { ...session, id: newId() }]]
    },
  },
  {
    rule: "an organization has one count for each quota and period",
    rows: (scene) => [
      [usageSchema.usageCounts, usageCountRow(scene)],
      [usageSchema.usageCounts, usageCountRow(scene)],
    ],
  },
  {
    rule: "an identity token is used once in an organization",
    rows: (scene) => [
      [schema.identityTokenUses, identityTokenUseRow(scene)],
      [schema.identityTokenUses, identityTokenUseRow(scene)],
    ],
  },
  {
    rule: "an idempotency key exists once in its scope",
    rows: () => [
      [schema.idempotencyKeys, { ...idempotencyKeyRow(), scope: "once" }],
      [schema.idempotencyKeys, { ...idempotencyKeyRow(), scope: "once" }],
    ],
  },
  {
    rule: "an organization's feed has each position once",
    rows: (scene) => [
      [eventSchema.events, { ...eventRow(scene), position: 7 }],
      [eventSchema.events, { ...eventRow(scene), position: 7 }],
    ],
  },
  {
    rule: "an event is queued for an endpoint once",
    rows: (scene) => {
      const [{ before, row } = { before: [], row: null }] = endpointRows(scene)
      return row ? [...before, row, row] : []
    },
  },
  {
    rule: "a lane's nonce belongs to one transaction",
    rows: (scene) => [
      [schema.transactions, transactionRow(scene)],
      [schema.transactions, transactionRow(scene)],
    ],
  },
  {
    rule: "an actor has one open effect of a name",
    rows: (scene) => {
      const actor = actorRow(scene)
      return [
        [schema.actors, actor],
        [schema.effects, effectRow(actor.id)],
        [schema.effects, effectRow(actor.id)],
      ]
    },
  },
  {
    rule: "an actor's journal has each number once",
    rows: (scene) => {
      const actor = actorRow(scene)
      return [
        [schema.actors, actor],
        [schema.actorEvents, actorEventRow(actor.id)],
        [schema.actorEvents, actorEventRow(actor.id)],
      ]
    },
  },
]

/** Similar rows that do not conflict. */
const allowed: Conflict[] = [
  {
    rule: "a unit gets another chip after its chip was retired",
    rows: (scene) => [
      [schema.chips, chipRow(scene, { retired_at: startOfTime })],
      [schema.chips, chipRow(scene, { unit_id: scene.unit_id })],
    ],
  },
  {
    rule: "a unit gets another claim after its claims ended",
    rows: (scene) => [
      ...(["claimed", "expired", "failed"] as const).map(
        (status): Row => [schema.claims, claimRow(scene, { status })],
      ),
      [schema.claims, claimRow(scene)],
    ],
  },
  {
    rule: "a unit gets another transfer after its transfers ended",
    rows: (scene) => [
      ...(["confirmed", "expired", "failed"] as const).map(
        (status): Row => [schema.transfers, transferRow(scene, { status })],
      ),
      [schema.transfers, transferRow(scene)],
    ],
  },
  {
    rule: "a unit gets another chip replacement after one failed",
    rows: (scene) => replacements(scene, "failed", "prepared"),
  },
  {
    rule: "two collections assign the same serial",
    rows: (scene) => {
      const other = collectionRow(scene)
      return [
        [schema.collections, other],
        [schema.units, issuedUnitRow(scene, 8)],
        [schema.units, { ...issuedUnitRow(scene, 8), collection_id: other.id }],
      ]
    },
  },
  {
    rule: "many units of a collection wait for a serial",
    rows: (scene) => [
      [schema.units, unitRow(scene, { collection_id: scene.collection_id })],
      [schema.units, unitRow(scene, { collection_id: scene.collection_id })],
    ],
  },
  {
    rule: "a chip counts again from zero with new keys",
    rows: (scene) => tapped(scene, [{ counter: 5 }, { counter: 5, key_version: 2 }]),
  },
  {
    rule: "a collection gets another bulk pairing after one is issued",
    rows: (scene) => [
      [schema.bulkPairings, { ...bulkPairingRow(scene), issued_at: startOfTime }],
      [schema.bulkPairings, bulkPairingRow(scene)],
    ],
  },
  {
    rule: "a closed effect is requested again",
    rows: (scene) => {
      const actor = actorRow(scene)
      return [
        [schema.actors, actor],
        [schema.effects, { ...effectRow(actor.id), status: "failed" }],
        [schema.effects, effectRow(actor.id)],
      ]
    },
  },
  {
    rule: "two organizations use the same external id",
    rows: (scene) => {
      const other = organizationRow()
      return [
        [schema.organizations, other],
        [schema.units, unitRow(scene, { external_id: "y" })],
        [schema.units, { ...unitRow(scene, { external_id: "y" }), organization_id: other.id }],
      ]
    },
  },
]

/** Self-contradictory rows. */
const checks: Conflict[] = [
  {
    rule: "a count belongs to a known quota",
    rows: (scene) => [[usageSchema.usageCounts, { ...usageCountRow(scene), quota: "wishes" }]],
  },
  {
    rule: "a key version fits into a tag's byte",
    rows: (scene) => {
      const keySet = keySetRow(scene)
      return [
        [keySetSchema.keySets, keySet],
        [keySetSchema.keySetVersions, keySetVersionRow(keySet.id, 256)],
      ]
    },
  },
  {
    rule: "an active token has a serial",
    rows: (scene) => [[schema.units, unitRow(scene, { token_status: "active" })]],
  },
  {
    rule: "a pending token has no serial",
    rows: (scene) => [[schema.units, unitRow(scene, { serial: 9 })]],
  },
  {
    rule: "a replay has a start and an end",
    rows: (scene) => [[eventSchema.webhookEndpoints, { ...webhookEndpointRow(scene), replay_from: 1 }]],
  },
  {
    rule: "a retired chip has no unit",
    rows: (scene) => [[schema.chips, chipRow(scene, { unit_id: scene.unit_id, retired_at: startOfTime })]],
  },
  {
    rule: "a reserved chip has no unit",
    rows: (scene) => [[schema.chips, chipRow(scene, { unit_id: scene.unit_id, reserved_for: newId() })]],
  },
  {
    rule: "a chip ID has ten digits",
    rows: (scene) => [[schema.chips, chipRow(scene, { chip_id: "00000000000" })]],
  },
  {
    rule: "a chip's counter fits into three bytes",
    rows: (scene) => [[schema.chips, chipRow(scene, { counter: 16_777_216 })]],
  },
  {
    rule: "a chip's emitted counter is not negative",
    rows: (scene) => [[schema.chips, chipRow(scene, { emitted_counter: -1 })]],
  },
  ...[
    { table: schema.collections, row: (scene: Scene) => collectionRow(scene) },
    { table: schema.claims, row: (scene: Scene) => claimRow(scene) },
    { table: schema.transfers, row: (scene: Scene) => transferRow(scene) },
    { table: schema.lanes, row: () => laneRow() },
    { table: schema.transactions, row: transactionRow },
  ].map(({ table, row }) => ({
    rule: `the status of ${getTableName(table)} is one of those there are`,
    rows: (scene: Scene): Row[] => [[table, { ...row(scene), status: "unheard_of" }]],
  })),
]

/** A valid row of every table with foreign keys, and their columns. */
function referringRows(scene: Scene): { before: Row[]; row: Row; columns: string[] }[] {
  const keySet = keySetRow(scene)
  const manifest = manifestRow(scene, keySet.id)
  const withKeySet: Row[] = [[keySetSchema.keySets, keySet]]
  const chip = chipRow(scene)
  const other = chipRow(scene)
  const derived = { ...chipRow(scene, { unit_id: null }), key_set_id: keySet.id }
  const tap = tapRow(scene, chip.chip_id, { counter: 6 })
  const actor = actorRow(scene)
  const transaction = { ...transactionRow(scene), nonce: 99 }
  const swap = { previous_chip_id: chip.chip_id, chip_id: other.chip_id }
  const withChip: Row[] = [[schema.chips, chip]]
  const withActor: Row[] = [[schema.actors, actor]]
  return [
    { before: [], row: [schema.apiKeys, apiKeyRow(scene)], columns: ["organization_id"] },
    { before: [], row: [schema.publishableKeys, publishableKeyRow(scene)], columns: ["organization_id"] },
    { before: [], row: [schema.products, productRow(scene)], columns: ["organization_id"] },
    { before: [], row: [schema.collections, collectionRow(scene)], columns: ["organization_id", "lane_id"] },
    {
      before: [],
      row: [schema.units, unitRow(scene)],
      columns: ["organization_id", "collection_id", "product_id"],
    },
    { before: [], row: [chainSchema.foundSerials, foundSerialRow(scene)], columns: ["collection_id"] },
    { before: [], row: [chainSchema.foundOwners, foundOwnerRow(scene)], columns: ["collection_id"] },
    {
      before: [],
      row: [chainSchema.metadataRefreshes, metadataRefreshRow(scene)],
      columns: ["organization_id", "collection_id"],
    },
    { before: [], row: [schema.chips, chip], columns: ["organization_id", "unit_id"] },
    {
      before: withChip,
      row: [
        chipRefusalSchema.chipRefusals,
        { chip_id: chip.chip_id, refused_count: 1, last_refused_at: startOfTime },
      ],
      columns: ["chip_id"],
    },
    { before: withKeySet, row: [schema.chips, derived], columns: ["key_set_id"] },
    { before: [], row: [keySetSchema.keySets, keySet], columns: ["organization_id"] },
    {
      before: withKeySet,
      row: [keySetSchema.keySetVersions, keySetVersionRow(keySet.id)],
      columns: ["key_set_id"],
    },
    {
      before: withKeySet,
      row: [keySetSchema.manifests, manifest],
      columns: ["organization_id", "key_set_id"],
    },
    {
      before: [...withKeySet, [keySetSchema.manifests, manifest], [schema.chips, chip]],
      row: [keySetSchema.manifestChips, { manifest_id: manifest.id, number: 1, chip_id: chip.chip_id }],
      columns: ["manifest_id", "chip_id"],
    },
    {
      before: [],
      row: [schema.bulkPairings, bulkPairingRow(scene)],
      columns: ["organization_id", "collection_id"],
    },
    { before: withChip, row: [schema.taps, tap], columns: ["organization_id", "chip_id", "unit_id"] },
    {
      before: [...withChip, [schema.taps, tap]],
      row: [schema.sessionTokens, sessionTokenRow(scene, tap)],
      columns: ["organization_id", "tap_id", "chip_id", "unit_id"],
    },
    { before: [], row: [schema.claims, claimRow(scene)], columns: ["organization_id", "unit_id"] },
    { before: [], row: [schema.transfers, transferRow(scene)], columns: ["organization_id", "unit_id"] },
    {
      before: [...withChip, [schema.chips, other]],
      row: [schema.chipReplacements, chipReplacementRow(scene, swap)],
      columns: ["organization_id", "unit_id", "previous_chip_id", "chip_id"],
    },
    { before: [], row: [usageSchema.usageCounts, usageCountRow(scene)], columns: ["organization_id"] },
    { before: [], row: [schema.identityTokenUses, identityTokenUseRow(scene)], columns: ["organization_id"] },
    { before: [], row: [eventSchema.events, eventRow(scene)], columns: ["organization_id"] },
    {
      before: [],
      row: [eventSchema.webhookEndpoints, webhookEndpointRow(scene)],
      columns: ["organization_id"],
    },
    ...endpointRows(scene),
    { before: [], row: [schema.actors, actor], columns: ["organization_id"] },
    { before: withActor, row: [schema.actorTimers, actorTimerRow(actor.id)], columns: ["actor_id"] },
    { before: withActor, row: [schema.actorEvents, actorEventRow(actor.id)], columns: ["actor_id"] },
    { before: [], row: [schema.transactions, transaction], columns: ["lane_id"] },
    {
      before: [[schema.transactions, transaction]],
      row: [schema.transactionAttempts, transactionAttemptRow(transaction.id)],
      columns: ["transaction_id"],
    },
    {
      before: withActor,
      row: [schema.effects, effectRow(actor.id)],
      columns: ["actor_id", "transaction_id"],
    },
  ]
}

const emptyScene: Scene = { organization_id: "", lane_id: "", collection_id: "", unit_id: "" }

test("every nullable column may be omitted from an insert", () => {
  const needed = tables.flatMap((table) =>
    getTableConfig(table)
      .columns.filter((column) => !column.notNull && !column.defaultFn)
      .map(({ name }) => `${getTableName(table)}.${name}`),
  )
  expect(needed).toEqual([])
})

for (const engine of engines)
  describe(engine.name, () => {
    const databases = useEngine(engine)
    let db: Database
    let scene: Scene
    beforeAll(async () => {
      db = await databases.openShared()
      scene = await db.transaction(insertScene)
    })

    describe("the migrated database", () => {
      test("has the tables of the schema", async () => {
        expect(await tablesIn(db)).toEqual([...tables.map(getTableName), "schema_migrations"].sort())
      })

      for (const table of tables)
        test(`has the columns of ${getTableName(table)}`, async () => {
          expect(await columnsIn(db, getTableName(table))).toEqual(columnsOf(table))
        })
    })

    describe("enforces that", () => {
      for (const { rule, rows } of unique)
        test(rule, async () => {
          await expectLastRefused(db, rows(scene), /unique/i)
        })
    })

    describe("allows that", () => {
      for (const { rule, rows } of allowed)
        test(rule, async () => {
          await expect(insertAndUndo(db, rows(scene))).resolves.toBe("taken")
        })
    })

    describe("checks that", () => {
      for (const { rule, rows } of checks)
        test(rule, async () => {
          await expectLastRefused(db, rows(scene), /check/i)
        })
    })

    describe("enforces the foreign key", () => {
      for (const [index, { row, columns }] of referringRows(emptyScene).entries())
        for (const column of columns)
          test(`${getTableName(row[0])}.${column}`, async () => {
            const referring = referringRows(scene)[index]
            if (!referring) throw new Error("every scene has the same rows")
            const [table, values] = referring.row
            const dangling: Row = [
              table,
              { ...values, [column]: column.endsWith("chip_id") ? "FFFFFFFFFF" : newId() },
            ]
            await expect(insertAndUndo(db, [...referring.before, referring.row])).resolves.toBe("taken")
            await expectLastRefused(db, [...referring.before, dangling], /foreign key/i)
          })

      test("no foreign key of the database is missing above", async () => {
        const tested = referringRows(scene).flatMap(({ row, columns }) =>
          columns.map((column) => `${getTableName(row[0])}.${column}`),
        )
        expect(tested.sort()).toEqual(await referencesIn(db))
      })
    })
  })

/** Inserts the rows in a transaction that is rolled back. */
async function insertAndUndo(db: Database, rows: Row[]): Promise<string> {
  const undo = new Error("taken")
  const outcome = await db
    .transaction(async (tx) => {
      for (const [table, values] of rows) await tx.insert(table).values(values)
      throw undo
    })
    .catch((error: Error) => error)
  if (outcome !== undo) throw outcome
  return undo.message
}

async function expectLastRefused(db: Database, rows: Row[], reason: RegExp): Promise<void> {
  await expect(insertAndUndo(db, rows.slice(0, -1))).resolves.toBe("taken")
  await expect(insertAndUndo(db, rows)).rejects.toThrow(reason)
}

type Column = { name: string; type: string; nullable: boolean }

function columnsOf(table: PgTable): Column[] {
  const { columns, primaryKeys } = getTableConfig(table)
  const inKey = new Set(primaryKeys.flatMap((key) => key.columns.map(({ name }) => name)))
  return byName(
    columns.map((column) => ({
      name: column.name,
      type: column.getSQLType(),
      nullable: !column.notNull && !inKey.has(column.name),
    })),
  )
}

async function columnsIn(db: Database, table: string): Promise<Column[]> {
  const rows = await ask(
    db,
    db.engine === "sqlite"
      ? sql`select name, type, "notnull" = 0 from pragma_table_info(${table})`
      : sql`select attname, format_type(atttypid, atttypmod), not attnotnull from pg_attribute
            where attrelid = ${table}::regclass and attnum > 0 and not attisdropped`,
  )
  return byName(
    rows.map(([name, type, nullable]) => ({
      name: String(name),
      type: String(type)
        .toLowerCase()
        .replace(/^(timestamptz\(3\)|timestamp\(3\) with time zone)$/, "timestamp (3) with time zone"),
      nullable: Boolean(nullable),
    })),
  )
}

function byName(columns: Column[]): Column[] {
  return columns.sort((one, other) => one.name.localeCompare(other.name))
}

async function tablesIn(db: Database): Promise<string[]> {
  const rows = await ask(
    db,
    db.engine === "sqlite"
      ? sql`select name from sqlite_master where type = 'table'`
      : sql`select tablename::text from pg_tables where schemaname = 'public'`,
  )
  return rows.map(([name]) => String(name)).sort()
}

/** Every `table.column` that is a foreign key. */
async function referencesIn(db: Database): Promise<string[]> {
  const rows = await ask(
    db,
    db.engine === "sqlite"
      ? sql`select m.name || '.' || k."from" from sqlite_master m, pragma_foreign_key_list(m.name) k
            where m.type = 'table'`
      : sql`select c.conrelid::regclass || '.' || a.attname from pg_constraint c
            join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1] where c.contype = 'f'`,
  )
  return rows.map(([name]) => String(name)).sort()
}

async function ask(db: Database, question: ReturnType<typeof sql>): Promise<unknown[][]> {
  const rows: unknown = await db.read.execute(question)
  return rows as unknown[][]
}

function lastOf(rows: Row[]): Record<string, unknown> {
  return rows.at(-1)?.[1] ?? {}
}

function foundOwnerRow({ collection_id }: Scene) {
  return {
    collection_id,
    serial: 1,
    owner: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    block_number: 7,
    found_at: startOfTime,
  } satisfies typeof chainSchema.foundOwners.$inferInsert
}

function metadataRefreshRow({ organization_id, collection_id }: Scene) {
  return {
    id: newId(),
    organization_id,
    collection_id,
    status: "prepared",
    created_at: startOfTime,
    updated_at: startOfTime,
  } satisfies typeof chainSchema.metadataRefreshes.$inferInsert
}

function foundSerialRow({ collection_id }: Scene) {
  return {
    collection_id,
    serial: 3,
    chip_id: "04AABBCCDD",
    transaction_hash: `0x${"0".repeat(64)}`,
    found_at: startOfTime,
  }
}

function issuedUnitRow(scene: Scene, serial: number) {
  return unitRow(scene, { collection_id: scene.collection_id, token_status: "active", serial })
}

function tapped(scene: Scene, taps: { counter?: number; key_version?: number }[]): Row[] {
  const chip = chipRow(scene)
  return [
    [schema.chips, chip],
    ...taps.map((changes): Row => [schema.taps, tapRow(scene, chip.chip_id, changes)]),
  ]
}

function replacements(scene: Scene, ...statuses: ("prepared" | "submitted" | "failed")[]): Row[] {
  const previous = chipRow(scene)
  const next = chipRow(scene)
  const swap = { previous_chip_id: previous.chip_id, chip_id: next.chip_id }
  return [
    [schema.chips, previous],
    [schema.chips, next],
    ...statuses.map((status): Row => [schema.chipReplacements, chipReplacementRow(scene, swap, { status })]),
  ]
}

function apiKeyRow({ organization_id }: Scene) {
  return { id: newId(), organization_id, hash: newId(), hint: "end_sk_…abcd", created_at: startOfTime }
}

function publishableKeyRow({ organization_id }: Scene) {
  return { id: newId(), organization_id, key: newId(), name: "web", mode: "live", created_at: startOfTime }
}

function productRow({ organization_id }: Scene) {
  return { id: newId(), organization_id, name: "Scarf", created_at: startOfTime }
}

function bulkPairingRow({ organization_id, collection_id }: Scene) {
  return { id: newId(), organization_id, collection_id, size: 2, created_at: startOfTime }
}

function eventRow({ organization_id }: Scene) {
  return {
    id: newId(),
    organization_id,
    type: "unit.created",
    is_test: false,
    data: {},
    created_at: startOfTime,
  } satisfies typeof eventSchema.events.$inferInsert
}

function webhookEndpointRow({ organization_id }: Scene) {
  return {
    id: newId(),
    organization_id,
    url: "https://brand.test/",
    status: "enabled",
    secrets: [],
    created_at: startOfTime,
  } satisfies typeof eventSchema.webhookEndpoints.$inferInsert
}

/** Rows that refer to a webhook endpoint. */
function endpointRows(scene: Scene) {
  const endpoint = webhookEndpointRow(scene)
  const before: Row[] = [[eventSchema.webhookEndpoints, endpoint]]
  const about = { endpoint_id: endpoint.id, event_id: newId(), created_at: startOfTime }
  const queued = { ...about, line: newId(), position: 1, attempts: 0, due_at: startOfTime }
  const delivery = { ...about, id: newId(), attempt: 1, status: "delivered", milliseconds: 1 }
  return [
    { before, row: [eventSchema.webhookQueue, queued] as Row, columns: ["endpoint_id"] },
    { before, row: [eventSchema.webhookDeliveries, delivery] as Row, columns: ["endpoint_id"] },
  ]
}

function usageCountRow({ organization_id }: Scene): typeof usageSchema.usageCounts.$inferInsert {
  return { organization_id, quota: "units", since: startOfTime, used: 1 }
}

function identityTokenUseRow({ organization_id }: Scene) {
  return { organization_id, jti: "jti", expires_at: startOfTime }
}

function idempotencyKeyRow() {
  return {
    scope: newId(),
    key: "key",
    operation: "POST /v1/units",
    fingerprint: "f",
    created_at: startOfTime,
  }
}

function transactionRow({ lane_id }: Scene) {
  return {
    id: newId(),
    lane_id,
    chain_id: 31_337,
    kind: "issueUnit",
    nonce: 1,
    to: "0x01",
    call: "0x",
    gas: 21_000,
    max_fee_per_gas: "1",
    max_priority_fee_per_gas: "1",
    status: "allocated",
    created_at: startOfTime,
    updated_at: startOfTime,
  }
}

function transactionAttemptRow(transaction_id: string) {
  return {
    hash: newId(),
    transaction_id,
    kind: "first",
    raw: "0x",
    max_fee_per_gas: "1",
    max_priority_fee_per_gas: "1",
    send_count: 0,
    created_at: startOfTime,
  }
}

function actorRow({ organization_id }: Scene) {
  return {
    id: newId(),
    machine: "transfer",
    machine_version: 1,
    organization_id,
    snapshot: {},
    status: "prepared",
    state: "prepared",
    version: 1,
    created_at: startOfTime,
    updated_at: startOfTime,
  }
}

function actorTimerRow(actor_id: string) {
  return { actor_id, send_id: "xstate.after", event: { type: "xstate.after" }, due_at: startOfTime }
}

function actorEventRow(actor_id: string) {
  return { actor_id, number: 1, event: { type: "xstate.init" }, to_state: "prepared", at: startOfTime }
}

function effectRow(actor_id: string) {
  return {
    id: newId(),
    actor_id,
    invoke_id: "watchAuthorization",
    src: "watchAuthorization",
    input: {},
    status: "open",
    queue: "chain:31337",
    attempts: 0,
    due_at: startOfTime,
    created_at: startOfTime,
  }
}
