import { and, eq, gte, lt, or, type SQL, sql } from "drizzle-orm"
import { Outrun, type Queries } from "../../db/database.ts"
import { equalUnindexed, type Page, type PageOf, pagesOf } from "../../db/page.ts"
import { type Given, query } from "../../db/query.ts"
import {
  type ChipRow,
  chips,
  collections,
  type OrganizationRow,
  organizations,
  products,
  type TapRow,
  taps,
  units,
} from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { MAX_COUNTER } from "../../engine/sun/message.ts"
import { emitSun } from "../../engine/sun/virtual-chip.ts"
import type { Caller } from "../../platform/caller.ts"
import { ApiError, fieldError } from "../../platform/errors.ts"
import { canonicalChipId, canonicalId } from "../../platform/fields.ts"
import { newId, parseId } from "../../platform/ids.ts"
import type { Secret } from "../../platform/sealing.ts"
import {
  isOpening,
  isOrderedWith,
  lastCounter,
  proveMessage,
  type SunProof,
  stillAwaited,
  stillOpened,
  sunChipOf,
} from "../chips/proof.ts"
import type { ChipView } from "../chips/service.ts"
import { countsAfterTap } from "../chips/signals.ts"
import { checkQuota, holdToQuota } from "../quotas/service.ts"
import { type IssuedSessionToken, issueSessionToken } from "../session-tokens/service.ts"
import { collectionColumns, getUnit, type UnitView, unitViewOf } from "../units/service.ts"
import type { CreateTapBody, CreateTestTapBody, TestTap } from "./model.ts"

/** The outcome of a tap. For a dry run, `tap` and `session` are null, and `chip` is as a tap would leave it. */
export type TapOutcome = {
  tap: TapRow | null
  chip: ChipView
  unit: UnitView
  redirect_url: string | null
  session: IssuedSessionToken | null
}

const defaultTtlSeconds = 600

/**
 * Verifies one scan of a chip, records it and issues a session token. A dry run returns the same but changes nothing,
 * and requires an API key.
 */
export async function createTap(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  body: CreateTapBody,
): Promise<TapOutcome> {
  if (body.dry_run && caller.kind !== "api_key")
    throw new ApiError("auth.forbidden", "A dry run takes an API key.")
  const { chip, unit, redirect_url, organization } = await findTag(turn.tx, caller, body.chip_id)
  const proof = await proveMessage(turn.tx, secret, chip, body)
  if (!unit) throw new ApiError("unit.not_found")
  if (proof.counter <= lastCounter(chip, proof)) throw new ApiError("chip.already_scanned")
  await (body.dry_run ? checkQuota : holdToQuota)(turn, organization, "taps_per_month", 1)

  const shown = shownAfterTap(chip, unit, proof)
  if (body.dry_run) return { tap: null, chip: shown, unit, redirect_url, session: null }
  const tap = await recordTap(turn, chip, unit, proof)
  const session = await issueSessionToken(turn, caller, {
    tap_id: tap.id,
    chip_id: chip.chip_id,
    unit_id: unit.id,
    ttl_seconds: caller.kind === "api_key" ? (body.ttl ?? defaultTtlSeconds) : defaultTtlSeconds,
  })
  return { tap, chip: shown, unit, redirect_url, session }
}

/** Makes a test chip emit its next value, as scanning hardware would; `count` is the read counter in it. */
export async function createTestTap(
  turn: Turn,
  secret: Secret,
  caller: Caller,
  body: CreateTestTapBody,
): Promise<TestTap> {
  const { organization_id } = caller
  const [chip] = await ownChip(turn.tx, { chip_id: canonicalChipId(body.chip_id), organization_id })
  if (!chip) throw new ApiError("chip.not_found")
  if (!chip.is_test) throw new ApiError("chip.not_a_test_chip")
  const [read] = await moveEmittedCounter(turn.tx, { chip_id: chip.chip_id, organization_id })
  if (!read)
    throw fieldError("chip_id", `this test chip has used up its ${MAX_COUNTER} reads: pair a new one`)
  return {
    chip_id: chip.chip_id,
    e: emitSun(await sunChipOf(turn.tx, secret, chip), read.count).e,
    count: read.count,
  }
}

const moveEmittedCounter = query((db, given: Given<{ chip_id: string; organization_id: string }>) => {
  const { counter, emitted_counter } = chips
  return db
    .update(chips)
    .set({
      emitted_counter: sql`case when ${emitted_counter} > ${counter} then ${emitted_counter} else ${counter} end + 1`,
    })
    .where(
      and(
        eq(chips.chip_id, given.chip_id),
        eq(chips.organization_id, given.organization_id),
        lt(counter, MAX_COUNTER),
        lt(emitted_counter, MAX_COUNTER),
      ),
    )
    .returning({ count: emitted_counter })
})

/**
 * Lists taps: real ones, or with `is_test` those of test chips. Throws `validation.failed` for a window that ends
 * before it starts.
 */
export async function listTaps(
  queries: Queries,
  caller: Caller,
  filter: {
    chip_id?: string | undefined
    unit_id?: string | undefined
    created_after?: Date | undefined
    created_before?: Date | undefined
    is_test?: boolean | undefined
    page: Page
  },
): Promise<PageOf<TapRow>> {
  const { chip_id, unit_id, created_after, created_before, is_test = false, page } = filter
  if (created_after && created_before && created_before < created_after)
    throw fieldError("created_before", "must not be before created_after")
  const asked = {
    organization_id: caller.organization_id,
    is_test,
    chip_id: chip_id === undefined ? undefined : canonicalChipId(chip_id),
    unit_id: unit_id === undefined ? undefined : canonicalId(unit_id, "unit_id"),
    created_after,
    created_before,
  }
  return await tapsOf(queries, asked, page)
}

/** Returns one of the caller's own taps, with its unit as it is now. Throws `tap.not_found`. */
export async function findTap(
  queries: Queries,
  caller: Caller,
  tapId: string,
): Promise<{ tap: TapRow; unit: UnitView }> {
  const id = parseId(tapId)
  const [tap] = id ? await ownTap(queries, { id, organization_id: caller.organization_id }) : []
  if (!tap) throw new ApiError("tap.not_found")
  return { tap, unit: await getUnit(queries, caller, tap.unit_id) }
}

const ownTap = query((db, given: Given<{ id: string; organization_id: string }>) =>
  db
    .select()
    .from(taps)
    .where(and(eq(taps.id, given.id), eq(taps.organization_id, given.organization_id))),
)

type Listed = {
  organization_id: string
  is_test: boolean
  chip_id: string | undefined
  unit_id: string | undefined
  created_after: Date | undefined
  created_before: Date | undefined
}

/** A chip or unit has few taps and an index of its own, so the organization's indexes are not used for them. */
const tapsOf = pagesOf(taps, (given: Given<Listed>) => {
  const { organization_id, is_test, chip_id, unit_id } = given
  const ofOrganization = (chip_id ? equalUnindexed : eq)(taps.organization_id, organization_id)
  const ofKind = (chip_id || unit_id ? equalUnindexed : eq)(taps.is_test, is_test)
  const ofUnit = unit_id && (chip_id ? equalUnindexed : eq)(taps.unit_id, unit_id)
  return and(
    ofOrganization,
    ofKind,
    ofUnit,
    chip_id && eq(taps.chip_id, chip_id),
    given.created_after && gte(taps.created_at, given.created_after),
    given.created_before && lt(taps.created_at, given.created_before),
  )
})

/** Returns the most specific redirect of any organization's chip; null if there is none, or no such chip. */
export async function findRedirect(queries: Queries, chipId: string): Promise<string | null> {
  const [redirects] = await redirectsOfChip(queries, { chip_id: chipId })
  return redirects ? mostSpecific(redirects) : null
}

const redirectColumns = {
  of_unit: units.redirect_url,
  of_product: products.redirect_url,
  of_collection: collections.redirect_url,
  of_organization: organizations.default_redirect_url,
}

type Redirects = Record<keyof typeof redirectColumns, string | null>

function mostSpecific({ of_unit, of_product, of_collection, of_organization }: Redirects): string | null {
  return of_unit ?? of_product ?? of_collection ?? of_organization
}

const redirectsOfChip = query((db, given: Given<{ chip_id: string }>) =>
  db
    .select(redirectColumns)
    .from(chips)
    .innerJoin(organizations, eq(organizations.id, chips.organization_id))
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(products, eq(products.id, units.product_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .where(eq(chips.chip_id, given.chip_id)),
)

type Tag = {
  chip: ChipRow
  unit: UnitView | null
  redirect_url: string | null
  organization: OrganizationRow
}

/** Returns a chip with its unit, the target of its taps, and its organization. Throws `chip.not_found`. */
async function findTag(queries: Queries, caller: Caller, chipId: string): Promise<Tag> {
  const { organization_id } = caller
  const [found] = await ownTag(queries, { chip_id: canonicalChipId(chipId), organization_id })
  if (!found) throw new ApiError("chip.not_found")
  const { chip, unit, collection, redirects, organization } = found
  return {
    chip,
    unit: unit && unitViewOf({ unit, collection, chip }),
    redirect_url: mostSpecific(redirects),
    organization,
  }
}

const ownTag = query((db, given: Given<{ chip_id: string; organization_id: string }>) =>
  db
    .select({
      chip: chips,
      unit: units,
      collection: collectionColumns,
      organization: organizations,
      redirects: redirectColumns,
    })
    .from(chips)
    .innerJoin(organizations, eq(organizations.id, chips.organization_id))
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(products, eq(products.id, units.product_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .where(and(eq(chips.chip_id, given.chip_id), eq(chips.organization_id, given.organization_id))),
)

const ownChip = query((db, given: Given<{ chip_id: string; organization_id: string }>) =>
  db
    .select()
    .from(chips)
    .where(and(eq(chips.chip_id, given.chip_id), eq(chips.organization_id, given.organization_id))),
)

/**
 * Records a tap. One statement advances the counter from the value that was read, so only one of several taps with the
 * same value succeeds; a tap that another one overtook runs again.
 */
async function recordTap(turn: Turn, chip: ChipRow, unit: UnitView, proof: SunProof): Promise<TapRow> {
  const { chip_id, organization_id, is_test } = chip
  const { counter, key_version, tamper } = proof
  const seen = { seen_counter: chip.counter, seen_version: chip.key_version }
  const skipped = counter - lastCounter(chip, proof) - 1
  const scanned = { chip_id, organization_id, unit_id: unit.id, counter, key_version, skipped, tamper }
  const [moved] = await moveCounter[turn.engine](turn.tx, { ...seen, ...scanned })
  if (!moved) throw new Outrun("the chip was tapped by somebody else at the same time")
  const tap = {
    id: newId(),
    organization_id,
    chip_id,
    unit_id: unit.id,
    is_test,
    key_version,
    counter,
    skipped,
    created_at: turn.at,
  }
  const [recorded] = await insertTap(turn.tx, tap)
  if (!recorded) throw new ApiError("chip.already_scanned")
  await turn.tell(turn, { tap, collection_id: unit.collection_id })
  if (isOpening(chip, proof)) await turn.tell(turn, { opened: chip })
  return tap
}

type Move = Pick<TapRow, "chip_id" | "organization_id" | "unit_id" | "counter" | "key_version" | "skipped"> &
  Pick<SunProof, "tamper"> & { seen_counter: number; seen_version: number }

const moveCounter = {
  // The feed is in the order of transaction ids, and a group commit may have got its own before the chip last changed.
  // A later id has an age below 0; far below 0 are only ids from before a wraparound.
  postgres: moveCounterWhere(sql`age(${chips}.xmin) not between -1000000 and -1`),
  sqlite: moveCounterWhere(undefined),
}

function moveCounterWhere(isInOrder: SQL | undefined) {
  return query((db, given: Given<Move>) =>
    db
      .update(chips)
      .set({
        counter: given.counter,
        key_version: given.key_version,
        next_key_version: stillAwaited(sql`${given.key_version}`),
        tamper: stillOpened(sql`${given.tamper}`),
        ...countsAfterTap(sql`${given.skipped}`),
      })
      .where(
        and(
          eq(chips.chip_id, given.chip_id),
          eq(chips.organization_id, given.organization_id),
          eq(chips.unit_id, given.unit_id),
          eq(chips.counter, given.seen_counter),
          eq(chips.key_version, given.seen_version),
          or(eq(chips.key_version, given.key_version), isOrderedWith(sql`${given.key_version}`)),
          isInOrder,
        ),
      )
      .returning({ chip_id: chips.chip_id }),
  )
}

const insertTap = query((db, row: Given<TapRow>) =>
  db.insert(taps).values(row).onConflictDoNothing().returning({ id: taps.id }),
)

function shownAfterTap(chip: ChipRow, unit: UnitView, { counter, tamper }: SunProof): ChipView {
  const { uid: _uid, wrapped_keys: _wrapped_keys, ...shown } = chip
  return { ...shown, counter, tamper, scan_count: chip.scan_count + 1, unit }
}
