import { and, asc, eq, gt, isNotNull, isNull, or, type SQL } from "drizzle-orm"
import type { PgColumn } from "drizzle-orm/pg-core"
import type { Queries } from "../../db/database.ts"
import { webhookEndpoints } from "../../db/event-schema.ts"
import { keySetVersions } from "../../db/key-set-schema.ts"
import { receiptKeys } from "../../db/receipt-key-schema.ts"
import { chips, idempotencyKeys } from "../../db/schema.ts"
import { resealSigningSecrets } from "../../engine/events/signing-secrets.ts"
import { ChipKeysUnreadable, rewrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { resealKeptAnswer } from "../../http/idempotency.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { SealBroken, type Secret } from "../../platform/sealing.ts"
import { adoptSecret } from "../../platform/service-secrets.ts"
import { resealMaster } from "../../resources/chips/key-sources.ts"
import { resealReceiptKey } from "../../resources/receipts/keys.ts"

/** What became of one kind of sealed rows. `unreadable` names those that open under neither secret. */
type Rewrapped = { rewrapped: number; sealed_before: number; unreadable: string[] }

/** Told again and again how many rows of a kind are done. */
type OnProgress = (kind: SealedKind["name"], done: number) => void

/**
 * Seals everything anew that is not sealed under the current secret, row by row, while the service runs. Cut short, it
 * goes on when it is run again; at its end a start no longer asks for the secret before.
 */
export async function rewrapAll(
  context: Context,
  onProgress: OnProgress = () => {},
): Promise<Record<SealedKind["name"], Rewrapped>> {
  const chip_keys = await rewrapKind(context, chipKeys, onProgress)
  const key_set_masters = await rewrapKind(context, keySetMasters, onProgress)
  const kept_answers = await rewrapKind(context, keptAnswers, onProgress)
  const webhook_secrets = await rewrapKind(context, webhookSecrets, onProgress)
  const receipt_keys = await rewrapKind(context, receiptKeySeals, onProgress)
  await inTurn(context, null, (turn) => adoptSecret(turn, context.config.service_secret))
  return { chip_keys, key_set_masters, kept_answers, webhook_secrets, receipt_keys }
}

/** Rows that hold something sealed, in the order of `place`, which is their key. */
type SealedKind<Row extends SealedRow = SealedRow> = {
  name: "chip_keys" | "key_set_masters" | "kept_answers" | "webhook_secrets" | "receipt_keys"
  /** At most `batchSize` rows behind `after`. */
  read(queries: Queries, after: Row | null): Promise<Row[]>
  /** Null where the row is sealed under the current secret already. */
  anew(secret: Secret, row: Row): string | null
  /** False where the row holds something else by now. */
  store(tx: Queries, row: Row, sealed: string): Promise<boolean>
}

type SealedRow = { place: string; sealed: string }

async function rewrapKind<Row extends SealedRow>(
  context: Context,
  kind: SealedKind<Row>,
  onProgress: OnProgress,
): Promise<Rewrapped> {
  const done: Rewrapped = { rewrapped: 0, sealed_before: 0, unreadable: [] }
  let seen = 0
  for (let batch = await kind.read(context.db.read, null); batch.length > 0; ) {
    await rewrapBatch(context, kind, batch, done)
    seen += batch.length
    onProgress(kind.name, seen)
    batch = await kind.read(context.db.read, batch.at(-1) ?? null)
  }
  return done
}

async function rewrapBatch<Row extends SealedRow>(
  context: Context,
  kind: SealedKind<Row>,
  batch: Row[],
  done: Rewrapped,
): Promise<void> {
  const changes: { row: Row; sealed: string }[] = []
  for (const row of batch) {
    try {
      const sealed = kind.anew(context.config.service_secret, row)
      if (sealed === null) done.sealed_before += 1
      else changes.push({ row, sealed })
    } catch (error) {
      if (!(error instanceof SealBroken || error instanceof ChipKeysUnreadable)) throw error
      done.unreadable.push(row.place)
    }
  }
  if (changes.length === 0) return
  // What was written meanwhile was written by a process that has the current secret.
  done.rewrapped += await inTurn(context, null, async ({ tx }) => {
    let stored = 0
    for (const { row, sealed } of changes) if (await kind.store(tx, row, sealed)) stored += 1
    return stored
  })
}

const batchSize = 500

/** Of chips that bring their own: those of key sets are derived. */
const chipKeys: SealedKind = {
  name: "chip_keys",
  read: (queries, after) =>
    queries
      .select({ place: chips.chip_id, sealed: chips.wrapped_keys })
      .from(chips)
      .where(and(isNull(chips.key_set_id), after ? gt(chips.chip_id, after.place) : undefined))
      .orderBy(asc(chips.chip_id))
      .limit(batchSize),
  anew: (secret, { place, sealed }) => rewrapChipKeys(secret, place, sealed),
  async store(tx, { place, sealed }, wrapped_keys) {
    const stored = await tx
      .update(chips)
      .set({ wrapped_keys })
      .where(and(eq(chips.chip_id, place), eq(chips.wrapped_keys, sealed)))
      .returning({ chip_id: chips.chip_id })
    return stored.length > 0
  },
}

type Master = SealedRow & { key_set_id: string; version: number }

const keySetMasters: SealedKind<Master> = {
  name: "key_set_masters",
  async read(queries, after) {
    const { key_set_id, version, sealed_master } = keySetVersions
    const rows = await queries
      .select({ key_set_id, version, sealed_master })
      .from(keySetVersions)
      .where(and(isNotNull(sealed_master), after ? follows(key_set_id, version, after) : undefined))
      .orderBy(asc(key_set_id), asc(version))
      .limit(batchSize)
    return rows.map((row) => ({
      ...row,
      place: `${row.key_set_id} version ${row.version}`,
      sealed: row.sealed_master ?? "",
    }))
  },
  anew: (secret, { key_set_id, version, sealed }) => resealMaster(secret, key_set_id, version, sealed),
  async store(tx, { key_set_id, version, sealed }, sealed_master) {
    const isSame = and(
      eq(keySetVersions.key_set_id, key_set_id),
      eq(keySetVersions.version, version),
      eq(keySetVersions.sealed_master, sealed),
    )
    const stored = await tx.update(keySetVersions).set({ sealed_master }).where(isSame).returning()
    return stored.length > 0
  },
}

function follows(set: PgColumn, version: PgColumn, after: Master): SQL | undefined {
  return or(gt(set, after.key_set_id), and(eq(set, after.key_set_id), gt(version, after.version)))
}

type KeptAnswer = SealedRow & { scope: string; key: string }

const keptAnswers: SealedKind<KeptAnswer> = {
  name: "kept_answers",
  async read(queries, after) {
    const { scope, key, sealed_body } = idempotencyKeys
    const rows = await queries
      .select({ scope, key, sealed_body })
      .from(idempotencyKeys)
      .where(
        and(
          isNotNull(sealed_body),
          after ? or(gt(scope, after.scope), and(eq(scope, after.scope), gt(key, after.key))) : undefined,
        ),
      )
      .orderBy(asc(scope), asc(key))
      .limit(batchSize)
    return rows.map((row) => ({ ...row, place: `${row.scope} ${row.key}`, sealed: row.sealed_body ?? "" }))
  },
  anew: (secret, row) => resealKeptAnswer(secret, { ...row, sealed_body: row.sealed }),
  async store(tx, { scope, key, sealed }, sealed_body) {
    const isSame = and(
      eq(idempotencyKeys.scope, scope),
      eq(idempotencyKeys.key, key),
      eq(idempotencyKeys.sealed_body, sealed),
    )
    const stored = await tx.update(idempotencyKeys).set({ sealed_body }).where(isSame).returning()
    return stored.length > 0
  },
}

const webhookSecrets: SealedKind = {
  name: "webhook_secrets",
  async read(queries, after) {
    const { id, secrets } = webhookEndpoints
    const rows = await queries
      .select({ id, secrets })
      .from(webhookEndpoints)
      .where(after ? gt(id, after.place) : undefined)
      .orderBy(asc(id))
      .limit(batchSize)
    return rows.map((row) => ({ place: row.id, sealed: JSON.stringify(row.secrets) }))
  },
  anew(secret, { place, sealed }) {
    const anew = resealSigningSecrets(secret, place, JSON.parse(sealed))
    return anew && JSON.stringify(anew)
  },
  async store(tx, { place, sealed }, anew) {
    const { id, secrets } = webhookEndpoints
    const isSame = and(eq(id, place), eq(secrets, JSON.parse(sealed)))
    const stored = await tx
      .update(webhookEndpoints)
      .set({ secrets: JSON.parse(anew) })
      .where(isSame)
      .returning()
    return stored.length > 0
  },
}

/** Of the key that signs: those before it have nothing left to seal. */
const receiptKeySeals: SealedKind = {
  name: "receipt_keys",
  async read(queries, after) {
    const { kid, sealed_key } = receiptKeys
    const rows = await queries
      .select({ kid, sealed_key })
      .from(receiptKeys)
      .where(and(isNotNull(sealed_key), after ? gt(kid, after.place) : undefined))
      .orderBy(asc(kid))
      .limit(batchSize)
    return rows.map((row) => ({ place: row.kid, sealed: row.sealed_key ?? "" }))
  },
  anew: (secret, { place, sealed }) => resealReceiptKey(secret, place, sealed),
  async store(tx, { place, sealed }, sealed_key) {
    const isSame = and(eq(receiptKeys.kid, place), eq(receiptKeys.sealed_key, sealed))
    const stored = await tx.update(receiptKeys).set({ sealed_key }).where(isSame).returning()
    return stored.length > 0
  },
}
