import { eq } from "drizzle-orm"
import { webhookEndpoints } from "../../src/db/event-schema.ts"
import { type Given, query } from "../../src/db/query.ts"
import { eventBody } from "../../src/engine/events/body.ts"
import { signingSecrets } from "../../src/engine/events/signing-secrets.ts"
import type { Checkpoint } from "../../src/engine/lanes/step.ts"
import { type Context, inTurn } from "../../src/platform/context.ts"
import { loggable } from "../../src/platform/log.ts"
import { countDelivery } from "../../src/platform/metrics.ts"
import type { Places } from "../../src/platform/places.ts"
import { mayBeLocal, type Resolve } from "../../src/platform/public-address.ts"
import { type DueDelivery, dueDeliveries } from "./due.ts"
import type { SteadyClock } from "./leases.ts"
import { type Attempted, recordOutcomes } from "./outcomes.ts"
import { type Answer, sendWebhook } from "./send.ts"

/** One endpoint's work, as long as it has some and its lease is held. */
export type Round = {
  /** When the lease ends. */
  held_until: number
  /** Looks for more to do. */
  look(): void
  /** Starts nothing more. */
  end(): void
  over: Promise<void>
}

type Means = {
  owner: string
  checkpoint: Checkpoint
  resolve: Resolve
  steady: SteadyClock
  /** The endpoints without a secret that signs, for which the operator was already told. */
  unsigned: Set<string>
  /** Limits this process's open requests to endpoints. */
  places: Places
  held_until: number
}

/** How many events are sent to one endpoint at once, each of another line; grows while the endpoint accepts them. */
const widthAtFirst = 16
const greatestWidth = 256
const foundAtOnce = 512
const patienceMilliseconds = 10_000

/** Sends what is due at one endpoint. Ends when nothing is due, or when there is no place for more. */
export function startRound(
  context: Context,
  endpointId: string,
  { owner, checkpoint, resolve, steady, unsigned, places, held_until }: Means,
): Round {
  const onTheirWay = new Map<string, Promise<void>>()
  let attempted: Attempted[] = []
  /** The first events of their lines, found together; a line does not change while none of its events is being sent. */
  let found: DueDelivery[] = []
  let width = widthAtFirst
  let isEnding = false
  let news = Promise.withResolvers<void>()
  const round: Round = {
    held_until,
    look: () => news.resolve(),
    end() {
      isEnding = true
      news.resolve()
    },
    over: Promise.resolve(),
  }
  // Starts nothing that would outlast the lease.
  const mayBegin = () => !isEnding && steady() + patienceMilliseconds < round.held_until

  async function begin(delivery: DueDelivery, to: Address): Promise<void> {
    checkpoint("webhook.send", delivery.event.type)
    const answer = await attempt(context, to, delivery, resolve)
    checkpoint("webhook.sent", delivery.event.type)
    countDelivery(answer)
    width = answer.error === null ? Math.min(width + 1, greatestWidth) : Math.max(width >> 1, 1)
    attempted.push({ delivery, answer })
    round.look()
  }

  async function writeDown(): Promise<void> {
    if (attempted.length === 0) return
    const some = attempted
    attempted = []
    await inTurn(context, null, (turn) => recordOutcomes(turn, endpointId, some), "read committed")
    // Only now: until its outcome is recorded, an event is still the first of its line.
    for (const { delivery } of some) onTheirWay.delete(delivery.line)
    checkpoint("webhook.recorded", endpointId)
  }

  async function beginDue(): Promise<void> {
    if (onTheirWay.size >= width || !mayBegin()) return
    // The endpoint's URL, secrets and status may have changed since the last look.
    const [endpoint] = await endpointOfId(context.db.read, { id: endpointId })
    if (endpoint?.status !== "enabled" || endpoint.lease_owner !== owner) return
    if (found.length === 0) {
      const asked = { at: context.clock(), limit: foundAtOnce }
      const firsts = await dueDeliveries(context.db.read, endpointId, asked)
      found = firsts.filter(({ line }) => !onTheirWay.has(line))
    }
    if (found.length === 0) return
    const at = context.clock()
    const { id, url, secrets, organization_id } = endpoint
    const to = { url, secrets: signingSecrets(context.config.service_secret, id, { secrets, at }) }
    tellOfUnsigned(context, id, to, unsigned)
    for (let next = found[0]; next && onTheirWay.size < width; next = found[0]) {
      const leave = places.take([organization_id, id])
      if (!leave) return
      found.shift()
      onTheirWay.set(next.line, begin(next, to).finally(leave))
    }
  }

  async function run(): Promise<void> {
    do {
      news = Promise.withResolvers()
      await writeDown()
      await beginDue()
      if (attempted.length === 0 && onTheirWay.size > 0) await news.promise
    } while (attempted.length > 0 || onTheirWay.size > 0)
  }

  round.over = run().catch(async (error) => {
    context.log.warn(
      { endpoint_id: endpointId, ...loggable(error) },
      "a round of deliveries failed and is tried again",
    )
    await Promise.all(onTheirWay.values())
  })
  return round
}

const endpointOfId = query((db, { id }: Given<{ id: string }>) =>
  db.select().from(webhookEndpoints).where(eq(webhookEndpoints.id, id)),
)

/** Where events are sent, and the secrets that sign them, newest first. */
type Address = { url: string; secrets: string[] }

/** Logs once that no secret signs, however often it is tried. */
function tellOfUnsigned({ log }: Context, endpoint_id: string, { secrets }: Address, unsigned: Set<string>) {
  if (secrets.length > 0) {
    unsigned.delete(endpoint_id)
    return
  }
  if (unsigned.has(endpoint_id)) return
  unsigned.add(endpoint_id)
  log.error({ endpoint_id }, unsignedAdvice)
}

const unsignedAdvice =
  "no secret of this webhook endpoint can be decrypted: set SERVICE_SECRET_PREVIOUS to the SERVICE_SECRET that it was encrypted with or, if that is lost, have its organization create a new secret (createWebhookSecret)"

async function attempt(
  context: Context,
  to: Address,
  { event }: DueDelivery,
  resolve: Resolve,
): Promise<Answer> {
  if (to.secrets.length === 0) return { response_status: null, error: unsignedWords, milliseconds: 0 }
  const body = JSON.stringify(eventBody(event))
  return await sendWebhook(
    { ...to, event_id: event.id, body, at: context.clock() },
    {
      allowLoopback: mayBeLocal(context.config, new URL(to.url)),
      resolve,
      patience_milliseconds: patienceMilliseconds,
    },
  )
}

const unsignedWords = "its secret is lost: create a new one for this endpoint"
