import { afterAll, beforeAll, expect, test } from "bun:test"
import fc, { type AsyncCommand } from "fast-check"
import {
  type Answer,
  ask,
  type Customer,
  createCustomer,
  type HttpService,
  type Question,
  startService,
} from "../harness/api.ts"
import { alice, bob } from "../harness/ownership.ts"
import { seedOf } from "../harness/seed.ts"
import { activeCollection, settle } from "../harness/services.ts"

// Random sequences of requests, each response compared with a model of units, chips, taps, claims and idempotency that
// fits on a page. MODEL_SEED repeats a run; a failure prints the shortest sequence that reproduces it.

const seed = seedOf("MODEL_SEED")

let service: HttpService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

test(`random sequences of requests get the responses that the model predicts, with the seed ${seed}`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 80, size: "max" }), async (sequence) => {
      const real = await newReal()
      const model = await begin(real)
      await fc.asyncModelRun(() => ({ model, real }), sequence)
    }),
    { seed, numRuns: 40 },
  )
}, 120_000)

/** What was covered: operations that succeeded, errors of writes, and replayed responses. */
const seen = new Set<string>()

test("the sequences covered every success and every error of the model", () => {
  const [successes, refusals] = [
    ["units", "chips", "taps", "claims", "replayed"],
    ["unit.already_exists", "chip.already_paired", "chip.already_scanned", "claim.in_progress"],
  ]
  expect([...successes, ...refusals].filter((outcome) => !seen.has(outcome))).toEqual([])
})

/** What the model knows about a unit. A unit has the same chip throughout. */
type Unit = {
  id: string
  external_id: string | null
  chip: Chip | null
  token: "pending" | "active"
  claim: { id: string; recipient: string; status: "claiming" | "claimed" } | null
}

type Chip = { chip_id: string; accepted: number; emitted: number; values: string[]; skipped: number[] }

type Session = { token: string; unit: Unit; ended: boolean; expires_at: number }

type Kept = { asked: string; send: () => Promise<Answer>; text: string; until: number }

type Model = { units: Unit[]; sessions: Session[]; kept: Map<string, Kept>; now: number }

type Real = { customer: Customer; collection_id: string }

/** Two issued units whose chips have emitted some values: random steps seldom get that far. */
async function begin(real: Real): Promise<Model> {
  const model: Model = { units: [], sessions: [], kept: new Map(), now: 0 }
  for (const unit of [0, 1])
    for (const first of [
      createUnit({ external_id: null, key: null }),
      pairChip({ unit, key: null }),
      issueUnit({ unit }),
      ...Array.from({ length: 4 }, () => emitValue({ unit })),
      tap({ unit, value: 0, dry_run: false, key: null }),
    ])
      await first.run(model, real)
  return model
}

async function newReal(): Promise<Real> {
  const customer = await createCustomer(service)
  const { id } = await activeCollection(service.behind, customer.caller)
  return { customer, collection_id: id }
}

/** The expected response: a success, with what the model learns from it, or an error code. */
type Expected = string | { learn: (body: Record<string, unknown>) => void }

const key = fc.option(fc.constantFrom("k1", "k2", "k3", "k4", "k5"), { nil: null, freq: 2 })
const pick = fc.nat({ max: 20 })

const commands = [
  fc.record({ external_id: fc.option(fc.constantFrom("a", "b", "c"), { nil: null }), key }).map(createUnit),
  fc.record({ unit: pick, key }).map(pairChip),
  fc.record({ unit: pick }).map(issueUnit),
  fc.record({ unit: pick }).map(emitValue),
  fc.record({ unit: pick, value: pick, dry_run: fc.boolean(), key }).map(tap),
  fc.record({ unit: pick, value: pick, dry_run: fc.constant(false), key }).map(tap),
  fc.record({ unit: pick }).map(tapGarbage),
  fc.record({ session: pick, recipient: fc.constantFrom(alice, bob), key }).map(claim),
  fc.record({ session: pick, recipient: fc.constantFrom(alice, bob), key: fc.constant(null) }).map(claim),
  fc.record({ unit: pick }).map(settleClaim),
  fc.record({ session: pick }).map(endSession),
  fc.record({ request: pick }).map(sendAgain),
  fc.constantFrom(1, 30_000, 599_999, 600_000, 24 * 60 * 60 * 1000).map(waitFor),
  fc.record({ unit: pick }).map(look),
  fc.constant(lookAtAll()),
]

type Step = AsyncCommand<Model, Real>

function createUnit({ external_id, key }: { external_id: string | null; key: string | null }): Step {
  return step(`create unit ${external_id}, key ${key}`, always, async (model, real) => {
    const isTaken = external_id !== null && model.units.some((unit) => unit.external_id === external_id)
    const body = { collection_id: real.collection_id, external_id }
    await write(
      model,
      "POST /v1/units",
      { as: real.customer.key, body },
      { scope: "organization", key },
      () => {
        if (isTaken) return "unit.already_exists"
        return {
          learn({ id }) {
            model.units.push({ id: String(id), external_id, chip: null, token: "pending", claim: null })
          },
        }
      },
    )
  })
}

function pairChip({ unit: index, key }: { unit: number; key: string | null }): Step {
  return step(`pair unit ${index}, key ${key}`, hasUnits, async (model, real) => {
    const unit = one(model.units, index)
    const body = { unit_id: unit.id, is_test: true }
    await write(
      model,
      "POST /v1/chips",
      { as: real.customer.key, body },
      { scope: "organization", key },
      () => {
        if (unit.chip) return "chip.already_paired"
        return {
          learn({ chip_id }) {
            unit.chip = { chip_id: String(chip_id), accepted: 0, emitted: 0, values: [], skipped: [] }
          },
        }
      },
    )
  })
}

function issueUnit({ unit: index }: { unit: number }): Step {
  return step(`issue unit ${index}`, hasUnits, async (model) => {
    const unit = one(model.units, index)
    if (!unit.chip || unit.token === "active") return
    await settle(service.behind, unit.id, { serial: index + 1, transaction_hash: "0x02" })
    unit.token = "active"
  })
}

function emitValue({ unit: index }: { unit: number }): Step {
  return step(`emit a value of unit ${index}`, hasChips, async (model, real) => {
    const chip = chipOf(model, index)
    const { chip_id } = chip
    const { status, body } = await ask(service, "POST /v1/test-helpers/taps", {
      as: real.customer.key,
      body: { chip_id },
    })
    chip.emitted = Math.max(chip.emitted, chip.accepted) + 1
    expect([status, body.count]).toEqual([201, chip.emitted])
    chip.values.push(String(body.e))
  })
}

type TapOf = { unit: number; value: number; dry_run: boolean; key: string | null }

function tap({ unit: index, value, dry_run, key }: TapOf): Step {
  return step(
    `tap unit ${index}, value ${value}, dry ${dry_run}, key ${key}`,
    hasValues,
    async (model, real) => {
      const withValues = paired(model).filter(({ chip }) => chip.values.length > 0)
      const { unit, chip } = one(withValues, index)
      const counter = (value % chip.values.length) + 1
      const body = { chip_id: chip.chip_id, e: chip.values[counter - 1], dry_run }
      await write(
        model,
        "POST /v1/taps",
        { as: real.customer.key, body },
        { scope: "organization", key, is_dry: dry_run },
        () => {
          if (counter <= chip.accepted) return "chip.already_scanned"
          return {
            learn(answered) {
              expect((answered.chip as { scan_count: number }).scan_count).toBe(chip.skipped.length + 1)
              if (dry_run) {
                expect([answered.id, answered.session_token]).toEqual([null, null])
                return
              }
              chip.skipped.push(counter - chip.accepted - 1)
              chip.accepted = counter
              const { token } = answered.session_token as { token: string }
              model.sessions.push({ token, unit, ended: false, expires_at: model.now + 600_000 })
            },
          }
        },
        dry_run ? 200 : 201,
      )
    },
  )
}

function tapGarbage({ unit: index }: { unit: number }): Step {
  return step(`tap unit ${index} with garbage`, hasChips, async (model, real) => {
    const body = { chip_id: chipOf(model, index).chip_id, e: "0123456789ABCDEF0123456789ABCDEF" }
    expectRefusal(
      await ask(service, "POST /v1/taps", { as: real.customer.key, body }),
      "chip.invalid_e_value",
    )
  })
}

function claim({
  session: index,
  recipient,
  key,
}: {
  session: number
  recipient: string
  key: string | null
}): Step {
  return step(
    `claim with session ${index} for ${recipient.slice(0, 6)}, key ${key}`,
    hasSessions,
    async (model) => {
      const session = one(model.sessions, index)
      const { unit } = session
      const owner = unit.claim?.status === "claimed" ? unit.claim.recipient : null
      service.chain.owner = owner as `0x${string}` | null
      const question = `POST /v1/units/${unit.id}/claims` as const
      if (!isLive(model, session)) {
        const answer = await ask(service, question, { as: session.token, body: { recipient } })
        expectRefusal(answer, "session_token.invalid_or_expired")
        return
      }
      await write(
        model,
        question,
        { as: session.token, body: { recipient } },
        { scope: session.token, key },
        () => {
          if (unit.token === "pending") return "unit.issuance_pending"
          if (unit.claim?.status === "claiming") return "claim.in_progress"
          if (owner !== null)
            return owner === recipient ? "claim.already_to_recipient" : "claim.already_claimed"
          return {
            learn({ id }) {
              unit.claim = { id: String(id), recipient, status: "claiming" }
            },
          }
        },
      )
    },
  )
}

function settleClaim({ unit: index }: { unit: number }): Step {
  return step(`settle the claim of unit ${index}`, hasUnits, async (model) => {
    const { claim } = one(model.units, index)
    if (claim?.status !== "claiming") return
    await settle(service.behind, claim.id, { transaction_hash: `0x${"03".repeat(32)}` })
    claim.status = "claimed"
  })
}

function endSession({ session: index }: { session: number }): Step {
  return step(`end session ${index}`, hasSessions, async (model) => {
    const session = one(model.sessions, index)
    const answer = await ask(service, "DELETE /v1/session-tokens/current", { as: session.token })
    if (isLive(model, session)) expect(answer.status).toBe(204)
    else expectRefusal(answer, "session_token.invalid_or_expired")
    session.ended = true
  })
}

function sendAgain({ request: index }: { request: number }): Step {
  return step(`send the kept request ${index} again`, always, async (model) => {
    const ofKeys = [...model.kept].filter(
      ([name, { until }]) => name.startsWith("organization") && model.now < until,
    )
    const [, kept] = ofKeys[index % ofKeys.length] ?? []
    if (kept) expectReplay(await kept.send(), kept)
  })
}

function waitFor(milliseconds: number): Step {
  return step(`wait ${milliseconds} ms`, always, async (model) => {
    service.advance(milliseconds)
    model.now += milliseconds
  })
}

function look({ unit: index }: { unit: number }): Step {
  return step(`look at unit ${index}`, hasUnits, async (model, { customer }) => {
    const unit = one(model.units, index)
    const { body } = await ask(service, `GET /v1/units/${unit.id}`, { as: customer.key })
    const { token } = body.collection as { token: { status: string; serial: number | null } }
    expect([body.external_id, body.chip_id, token.status]).toEqual([
      unit.external_id,
      unit.chip?.chip_id ?? null,
      unit.token,
    ])
    expect(token.serial === null).toBe(unit.token === "pending")
    if (!unit.claim) return
    const shown = await ask(service, `GET /v1/units/${unit.id}/claims/${unit.claim.id}`, { as: customer.key })
    expect([shown.body.status, shown.body.recipient]).toEqual([unit.claim.status, unit.claim.recipient])
  })
}

function lookAtAll(): Step {
  return step("look at everything", always, async (model, { customer }) => {
    const get = async (path: string) => (await ask(service, `GET ${path}`, { as: customer.key })).body
    const { units } = (await get("/v1/units?limit=100")) as { units: { id: string }[] }
    expect(units.map(({ id }) => id).sort()).toEqual(model.units.map(({ id }) => id).sort())
    const { chips } = (await get("/v1/chips?limit=100")) as {
      chips: { chip_id: string; scan_count: number }[]
    }
    const scans = new Map(chips.map(({ chip_id, scan_count }) => [chip_id, scan_count]))
    const expected = paired(model).map(({ chip }) => [chip.chip_id, chip.skipped.length] as const)
    expect(scans).toEqual(new Map(expected))
    for (const { chip } of paired(model)) {
      const { taps } = (await get(`/v1/taps?is_test=true&limit=100&chip_id=${chip.chip_id}`)) as {
        taps: { counter: number; skipped: number }[]
      }
      expect(taps.map(({ skipped }) => skipped).reverse()).toEqual(chip.skipped)
      expect(taps[0]?.counter ?? 0).toBe(chip.accepted)
    }
    for (const session of model.sessions) {
      const { status } = await ask(service, "GET /v1/session-tokens/current", { as: session.token })
      expect(status).toBe(isLive(model, session) ? 200 : 401)
    }
  })
}

/**
 * Sends a request that may carry an idempotency key: a stored response is replayed, another request with the key
 * conflicts, and only a success is stored, for a day.
 */
async function write(
  model: Model,
  question: `${string} /${string}`,
  { as, body }: Question,
  { scope, key, is_dry = false }: { scope: string; key: string | null; is_dry?: boolean },
  expected: () => Expected,
  status = 201,
): Promise<void> {
  const send = () =>
    ask(service, question, {
      ...(as !== undefined && { as }),
      body,
      ...(key !== null && { headers: { "idempotency-key": key } }),
    })
  const answer = await send()
  const name = `${scope} ${key}`
  const asked = JSON.stringify([question, body])
  // A dry run changes nothing and ignores its idempotency key.
  const kept = key === null || is_dry ? undefined : model.kept.get(name)
  if (kept && model.now < kept.until) {
    if (kept.asked !== asked) return expectRefusal(answer, "idempotency.key_conflict")
    expectReplay(answer, kept)
    return
  }
  const outcome = expected()
  seen.add(typeof outcome === "string" ? outcome : (question.split("/").at(-1) ?? ""))
  if (typeof outcome === "string") return expectRefusal(answer, outcome)
  expect([answer.status, answer.code]).toEqual([status, null])
  expect(answer.headers.has("idempotent-replayed")).toBe(false)
  outcome.learn(answer.body)
  if (key !== null && !is_dry)
    model.kept.set(name, { asked, send, text: answer.text, until: model.now + 24 * 60 * 60 * 1000 })
}

function expectReplay(answer: Answer, kept: Kept): void {
  seen.add("replayed")
  expect([answer.text, answer.headers.get("idempotent-replayed")]).toEqual([kept.text, "true"])
}

function expectRefusal(answer: Answer, code: string): void {
  expect(answer.code).toBe(code)
}

function step(
  description: string,
  check: (model: Readonly<Model>) => boolean,
  run: (model: Model, real: Real) => Promise<void>,
): Step {
  return { check, run, toString: () => description }
}

function always(): boolean {
  return true
}

function hasUnits({ units }: Readonly<Model>): boolean {
  return units.length > 0
}

function hasChips({ units }: Readonly<Model>): boolean {
  return units.some(({ chip }) => chip !== null)
}

function hasValues({ units }: Readonly<Model>): boolean {
  return units.some(({ chip }) => chip !== null && chip.values.length > 0)
}

function hasSessions({ sessions }: Readonly<Model>): boolean {
  return sessions.length > 0
}

function one<T>(list: T[], index: number): T {
  const found = list[index % list.length]
  if (!found) throw new Error("the list is empty")
  return found
}

function paired(model: Model): { unit: Unit; chip: Chip }[] {
  return model.units.flatMap((unit) => (unit.chip ? [{ unit, chip: unit.chip }] : []))
}

function chipOf(model: Model, index: number): Chip {
  return one(paired(model), index).chip
}

function isLive(model: Model, session: Session): boolean {
  return !session.ended && model.now < session.expires_at
}
