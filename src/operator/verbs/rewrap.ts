import { and, asc, eq, gt, isNotNull, isNull, or, type SQL } from "drizzle-orm"
import type { PgColumn } from "drizzle-orm/pg-core"
import { Outrun, type Queries } from "../../db/database.ts"
import { webhookEndpoints } from "../../db/event-schema.ts"
import { keySetVersions } from "../../db/key-set-schema.ts"
import { receiptKeys } from "../../db/receipt-key-schema.ts"
import { chips, idempotencyKeys } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { resealSigningSecrets } from "../../engine/events/signing-secrets.ts"
import { ChipKeysUnreadable, rewrapChipKeys } from "../../engine/sun/chip-keys.ts"
import { resealKeptAnswer } from "../../http/idempotency.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { SealBroken, type Secret } from "../../platform/sealing.ts"
import { adoptSecret } from "../../platform/service-secrets.ts"
import { resealMaster } from "../../resources/chips/key-sources.ts"
import { resealReceiptKey } from "../../resources/receipts/keys.ts"

/** The result for one kind of sealed rows. `unreadable` names those that open under neither secret. */
type Rewrapped = { rewrapped: number; sealed_before: number; unreadable: string[] }

/** Called repeatedly with how many rows of a kind are done. */
type OnProgress = (kind: SealedKind["name"], done: number) => void

/**
 * Reseals everything that is not sealed under the current secret, row by row, while the service runs. If interrupted,
 * run it again; at its end a start no longer needs the previous secret.
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

/** Rows with something sealed, in the order of their key, `place`. */
type SealedKind<Row extends SealedRow = SealedRow> = {
  name: "chip_keys" | "key_set_masters" | "kept_answers" | "webhook_secrets" | "receipt_keys"
  /** At most `batchSize` rows after `after`. */
  read(queries: Queries, after: Row | null): Promise<Row[]>
  /** Null if the row is already sealed under the current secret. */
  anew(secret: Secret, row: Row): string | null
  /** Returns an empty list if the row has changed since it was read. */
  store(tx: Queries, row: Row, sealed: string): Promise<unknown[]>
}

type SealedRow = { place: string; sealed: string }

async function rewrapKind<Row extends SealedRow>(
  context: Context,
  kind: SealedKind<Row>,
  onProgress: OnProgress,
): Promise<Rewrapped> {
  const done: Rewrapped = { rewrapped: 0, sealed_before: 0, unreadable: [] }
  const secret = context.config.service_secret
  let seen = 0
  for (let after: Row | null = null; ; ) {
    const work = ({ tx }: Turn) => rewrapBatch(tx, secret, kind, after)
    const batch = await inTurn(context, null, work, "read committed alone")
    for (const { row, outcome } of batch)
      if (outcome === "unreadable") done.unreadable.push(row.place)
      else done[outcome] += 1
    seen += batch.length
    if (batch.length > 0) onProgress(kind.name, seen)
    // Rows that are added behind a batch that is not full are sealed under the current secret already.
    if (batch.length < batchSize) return done
    after = batch.at(-1)?.row ?? null
  }
}

/**
 * Compares each row before setting it, because somebody may be writing it, such as a new webhook secret. A
 * serializable database transaction would never get through while answers are being kept all the time.
 */
async function rewrapBatch<Row extends SealedRow>(
  tx: Queries,
  secret: Secret,
  kind: SealedKind<Row>,
  after: Row | null,
): Promise<{ row: Row; outcome: keyof Rewrapped }[]> {
  const batch: { row: Row; outcome: keyof Rewrapped }[] = []
  for (const row of await kind.read(tx, after))
    batch.push({ row, outcome: await rewrapRow(tx, secret, kind, row) })
  return batch
}

async function rewrapRow<Row extends SealedRow>(
  tx: Queries,
  secret: Secret,
  kind: SealedKind<Row>,
  row: Row,
): Promise<keyof Rewrapped> {
  try {
    const sealed = kind.anew(secret, row)
    if (sealed === null) return "sealed_before"
    const stored = await kind.store(tx, row, sealed)
    if (stored.length === 0) throw new Outrun(`${kind.name} ${row.place} was changed at the same time`)
    return "rewrapped"
  } catch (error) {
    if (error instanceof SealBroken || error instanceof ChipKeysUnreadable) return "unreadable"
    throw error
  }
}

const batchSize = 500

/** Keys of chips that brought their own; those of key sets are derived. */
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
  store: (tx, { place, sealed }, wrapped_keys) =>
    tx
      .update(chips)
      .set({ wrapped_keys })
      .where(and(eq(chips.chip_id, place), eq(chips.wrapped_keys, sealed)))
      .returning({ place: chips.chip_id }),
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
  store: (tx, { key_set_id, version, sealed }, sealed_master) =>
    tx
      .update(keySetVersions)
      .set({ sealed_master })
      .where(
        and(
          eq(keySetVersions.key_set_id, key_set_id),
          eq(keySetVersions.version, version),
          eq(keySetVersions.sealed_master, sealed),
        ),
      )
      .returning({ version: keySetVersions.version }),
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
  store: (tx, { scope, key, sealed }, sealed_body) =>
    tx
      .update(idempotencyKeys)
      .set({ sealed_body })
      .where(
        and(
          eq(idempotencyKeys.scope, scope),
          eq(idempotencyKeys.key, key),
          eq(idempotencyKeys.sealed_body, sealed),
        ),
      )
      .returning({ key: idempotencyKeys.key }),
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
  store: (tx, { place, sealed }, anew) =>
    tx
      .update(webhookEndpoints)
      .set({ secrets: JSON.parse(anew) })
      .where(and(eq(webhookEndpoints.id, place), eq(webhookEndpoints.secrets, JSON.parse(sealed))))
      .returning({ id: webhookEndpoints.id }),
}

/** The key that signs; earlier ones have no private half left. */
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
  store: (tx, { place, sealed }, sealed_key) =>
    tx
      .update(receiptKeys)
      .set({ sealed_key })
      .where(and(eq(receiptKeys.kid, place), eq(receiptKeys.sealed_key, sealed)))
      .returning({ kid: receiptKeys.kid }),
}
