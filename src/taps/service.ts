import { and, eq, gte, lt, sql } from "drizzle-orm"
import type { Caller } from "../caller.ts"
import { provenCounter, sunChipOf } from "../chips/proof.ts"
import type { ChipRow, ChipView } from "../chips/service.ts"
import type { Queries } from "../db/database.ts"
import { keysetAfter, newestFirst, type Page, type PageOf, pageOf } from "../db/page.ts"
import { placeholdersOf, prepared } from "../db/prepared.ts"
import { chips, collections, organizations, products, taps, units } from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"
import { ApiError, fieldError } from "../errors.ts"
import { canonicalChipId, canonicalId } from "../fields.ts"
import { newId } from "../ids.ts"
import { holdToQuota } from "../quotas.ts"
import { type IssuedSessionToken, issueSessionToken } from "../session-tokens/service.ts"
import { MAX_COUNTER } from "../sun/message.ts"
import { emitSun } from "../sun/virtual-chip.ts"
import type { UnitView } from "../units/service.ts"
import type { CreateTapBody, CreateTestTapBody, TestTap } from "./model.ts"

export type TapRow = typeof taps.$inferSelect

/** What a tap answers. `tap` and `session` are null for a dry run, which shows the chip as a tap would leave it. */
export type TapOutcome = {
  tap: TapRow | null
  chip: ChipView
  unit: UnitView
  redirect_url: string | null
  session: IssuedSessionToken | null
}

const defaultTtlSeconds = 600

/**
 * Verifies one scan of a chip, records it and issues a session token; a dry run answers the same and moves
 * nothing. Throws `auth.forbidden` (a dry run with a publishable key), `chip.not_found`,
 * `chip.invalid_e_value`, `unit.not_found`, `chip.already_scanned`, `quota.exceeded`.
 */
export async function createTap(
  turn: Turn,
  secret: string,
  caller: Caller,
  body: CreateTapBody,
): Promise<TapOutcome> {
  if (body.dry_run && caller.kind !== "api_key")
    throw new ApiError("auth.forbidden", "A dry run takes an API key.")
  const { chip, unit, redirect_url, quota_taps_per_month } = await findTag(turn.tx, caller, body.chip_id)
  const counter = provenCounter(secret, chip, { e: body.e, c: body.c })
  if (!unit) throw new ApiError("unit.not_found")
  if (counter <= chip.counter) throw new ApiError("chip.already_scanned")
  if (quota_taps_per_month !== null)
    await holdToQuota(turn, caller, "quota_taps_per_month", 1, {
      table: taps,
      where: gte(taps.created_at, startOfMonth(turn.at)),
    })

  const shown = shownAfterTap(chip, unit, counter)
  if (body.dry_run) return { tap: null, chip: shown, unit, redirect_url, session: null }
  const tap = await recordTap(turn, chip, unit, counter)
  const session = await issueSessionToken(turn, caller, {
    tap_id: tap.id,
    chip_id: chip.chip_id,
    unit_id: unit.id,
    ttl_seconds: caller.kind === "api_key" ? (body.ttl ?? defaultTtlSeconds) : defaultTtlSeconds,
  })
  return { tap, chip: shown, unit, redirect_url, session }
}

/**
 * Makes a test chip emit its next value, as a scan of hardware would; `count` is the read counter in it.
 * Throws `chip.not_found`, `chip.not_a_test_chip`.
 */
export async function createTestTap(
  turn: Turn,
  secret: string,
  caller: Caller,
  body: CreateTestTapBody,
): Promise<TestTap> {
  const { chip } = await findTag(turn.tx, caller, body.chip_id)
  if (!chip.is_test) throw new ApiError("chip.not_a_test_chip")
  const { counter, emitted_counter } = chips
  const [read] = await turn.tx
    .update(chips)
    .set({
      emitted_counter: sql`case when ${emitted_counter} > ${counter} then ${emitted_counter} else ${counter} end + 1`,
    })
    .where(and(isChip(chip), lt(counter, MAX_COUNTER), lt(emitted_counter, MAX_COUNTER)))
    .returning({ count: emitted_counter })
  if (!read)
    throw fieldError("chip_id", `this test chip has used up its ${MAX_COUNTER} reads: pair a new one`)
  return { chip_id: chip.chip_id, e: emitSun(sunChipOf(secret, chip), read.count).e, count: read.count }
}

/** Taps of test chips are shown only when asked for. Throws `validation.failed` on a window that ends before it starts. */
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
  const rows = await queries
    .select()
    .from(taps)
    .where(
      and(
        eq(taps.organization_id, caller.organization_id),
        eq(taps.is_test, is_test),
        chip_id === undefined ? undefined : eq(taps.chip_id, canonicalChipId(chip_id)),
        unit_id === undefined ? undefined : eq(taps.unit_id, canonicalId(unit_id, "unit_id")),
        created_after && gte(taps.created_at, created_after),
        created_before && lt(taps.created_at, created_before),
        keysetAfter(taps, page.after),
      ),
    )
    .orderBy(...newestFirst(taps))
    .limit(page.limit + 1)
  return pageOf(rows, page.limit)
}

/** The most specific redirect of a chip, whoever taps it; null when there is none, or no such chip. */
export async function findRedirect(queries: Queries, chipId: string): Promise<string | null> {
  const [levels] = await redirectQuery(queries).execute({ chip_id: chipId })
  return levels ? mostSpecific(levels) : null
}

const redirectLevels = {
  unit_redirect: units.redirect_url,
  product_redirect: products.redirect_url,
  collection_redirect: collections.redirect_url,
  organization_redirect: organizations.default_redirect_url,
}

type RedirectLevels = Record<keyof typeof redirectLevels, string | null>

function mostSpecific(levels: RedirectLevels): string | null {
  const { unit_redirect, product_redirect, collection_redirect, organization_redirect } = levels
  return unit_redirect ?? product_redirect ?? collection_redirect ?? organization_redirect
}

const redirectQuery = prepared((queries) =>
  queries
    .select(redirectLevels)
    .from(chips)
    .innerJoin(organizations, eq(organizations.id, chips.organization_id))
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .leftJoin(products, eq(products.id, units.product_id))
    .where(eq(chips.chip_id, sql.placeholder("chip_id")))
    .prepare("redirect"),
)

type Tag = {
  chip: ChipRow
  unit: UnitView | null
  redirect_url: string | null
  quota_taps_per_month: number | null
}

/** A chip with its unit, where a tap of it leads, and the organization's quota. Throws `chip.not_found`. */
async function findTag(queries: Queries, caller: Caller, chipId: string): Promise<Tag> {
  const [found] = await tagQuery(queries).execute({
    chip_id: canonicalChipId(chipId),
    organization_id: caller.organization_id,
  })
  if (!found) throw new ApiError("chip.not_found")
  const { chip, unit, collection, redirects, quota_taps_per_month } = found
  return {
    chip,
    unit: unit && { ...unit, collection, chip_id: chip.chip_id },
    redirect_url: mostSpecific(redirects),
    quota_taps_per_month,
  }
}

const tagQuery = prepared((queries) =>
  queries
    .select({
      chip: chips,
      unit: units,
      collection: collections,
      redirects: redirectLevels,
      quota_taps_per_month: organizations.quota_taps_per_month,
    })
    .from(chips)
    .innerJoin(organizations, eq(organizations.id, chips.organization_id))
    .leftJoin(units, eq(units.id, chips.unit_id))
    .leftJoin(collections, eq(collections.id, units.collection_id))
    .leftJoin(products, eq(products.id, units.product_id))
    .where(
      and(
        eq(chips.chip_id, sql.placeholder("chip_id")),
        eq(chips.organization_id, sql.placeholder("organization_id")),
      ),
    )
    .prepare("tag"),
)

/** One statement moves the counter: of any number of taps with one value it lets a single one through. */
async function recordTap(turn: Turn, chip: ChipRow, unit: UnitView, counter: number): Promise<TapRow> {
  const { chip_id, organization_id, is_test, key_version } = chip
  const [moved] = await moveCounter(turn.tx).execute({ chip_id, organization_id, unit_id: unit.id, counter })
  if (!moved) throw new ApiError("chip.already_scanned")
  const tap = {
    id: newId(),
    organization_id,
    chip_id,
    unit_id: unit.id,
    is_test,
    key_version,
    counter,
    skipped: counter - chip.counter - 1,
    created_at: turn.at,
  }
  const [recorded] = await insertTap(turn.tx).execute(tap)
  if (!recorded) throw new ApiError("chip.already_scanned")
  return tap
}

const moveCounter = prepared((queries) =>
  queries
    .update(chips)
    .set({ counter: sql`${sql.placeholder("counter")}`, scan_count: sql`${chips.scan_count} + 1` })
    .where(
      and(
        eq(chips.chip_id, sql.placeholder("chip_id")),
        eq(chips.organization_id, sql.placeholder("organization_id")),
        eq(chips.unit_id, sql.placeholder("unit_id")),
        lt(chips.counter, sql.placeholder("counter")),
      ),
    )
    .returning({ chip_id: chips.chip_id })
    .prepare("move_counter"),
)

const insertTap = prepared((queries) =>
  queries
    .insert(taps)
    .values(placeholdersOf(taps))
    .onConflictDoNothing()
    .returning({ id: taps.id })
    .prepare("insert_tap"),
)

function shownAfterTap(chip: ChipRow, unit: UnitView, counter: number): ChipView {
  const { uid: _uid, wrapped_keys: _wrapped_keys, ...shown } = chip
  return { ...shown, counter, scan_count: chip.scan_count + 1, unit }
}

function isChip({ chip_id, organization_id }: ChipRow) {
  return and(eq(chips.chip_id, chip_id), eq(chips.organization_id, organization_id))
}

function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
}
