import { dataOf, type Schemas, type ServiceClient } from "./client.ts"
import { attemptUnder, inTime } from "./in-time.ts"
import { pause } from "./pause.ts"

/** Polls until the contract is deployed and units of the collection can be paired. Throws as `waitFor` does. */
export async function waitForCollection(
  api: ServiceClient,
  collection_id: string,
  options?: WaitOptions<Schemas["Collection"]>,
): Promise<Schemas["Collection"]> {
  const params = { path: { collection_id } }
  const read = (signal: AbortSignal) => dataOf(api.GET("/v1/collections/{collection_id}", { params, signal }))
  return await waitFor(
    read,
    { what: "collection", statusOf: ({ contract }) => contract.status, wanted: "active" },
    options,
  )
}

/** Polls until the unit is issued, so that it can be claimed. Throws as `waitFor` does. */
export async function waitForUnit(
  api: ServiceClient,
  unit_id: string,
  options?: WaitOptions<Schemas["Unit"]>,
): Promise<Schemas["Unit"]> {
  const params = { path: { unit_id } }
  const read = (signal: AbortSignal) => dataOf(api.GET("/v1/units/{unit_id}", { params, signal }))
  const statusOf = ({ collection }: Schemas["Unit"]) => collection?.token.status ?? "pending"
  return await waitFor(read, { what: "unit", statusOf, wanted: "active" }, options)
}

/** Polls until the claim is on chain at the confirmation depth. Throws as `waitFor` does. */
export async function waitForClaim(
  api: ServiceClient,
  { unit_id, id }: Pick<Schemas["Claim"], "unit_id" | "id">,
  options?: WaitOptions<Schemas["Claim"]>,
): Promise<Schemas["Claim"]> {
  const params = { path: { unit_id, claim_id: id } }
  const read = (signal: AbortSignal) =>
    dataOf(api.GET("/v1/units/{unit_id}/claims/{claim_id}", { params, signal }))
  return await waitFor(read, { what: "claim", statusOf: ({ status }) => status, wanted: "claimed" }, options)
}

/** Polls until the transfer is on chain at the confirmation depth. Throws as `waitFor` does. */
export async function waitForTransfer(
  api: ServiceClient,
  { unit_id, id }: Pick<Schemas["Transfer"], "unit_id" | "id">,
  options?: WaitOptions<Schemas["Transfer"]>,
): Promise<Schemas["Transfer"]> {
  const params = { path: { unit_id, transfer_id: id } }
  const read = (signal: AbortSignal) =>
    dataOf(api.GET("/v1/units/{unit_id}/transfers/{transfer_id}", { params, signal }))
  return await waitFor(
    read,
    { what: "transfer", statusOf: ({ status }) => status, wanted: "confirmed" },
    options,
  )
}

/** Polls until the new chip is the unit's. Throws as `waitFor` does. */
export async function waitForChipReplacement(
  api: ServiceClient,
  { unit_id, id }: Pick<Schemas["ChipReplacement"], "unit_id" | "id">,
  options?: WaitOptions<Schemas["ChipReplacement"]>,
): Promise<Schemas["ChipReplacement"]> {
  const params = { path: { unit_id, replacement_id: id } }
  const read = (signal: AbortSignal) =>
    dataOf(api.GET("/v1/units/{unit_id}/chip-replacements/{replacement_id}", { params, signal }))
  return await waitFor(
    read,
    { what: "chip replacement", statusOf: ({ status }) => status, wanted: "confirmed" },
    options,
  )
}

export type WaitOptions<Resource> = {
  /** How long to wait for the status; 5 minutes by default. Each read has at least two seconds. */
  patience_milliseconds?: number
  /** The first pause, 500 by default; each next one is half as long again, up to 5 seconds. */
  interval_milliseconds?: number
  signal?: AbortSignal
  /** Called with each resource that was read. */
  onRead?: (resource: Resource) => void
}

/** It ended in another status for good; `failure` says why, if the service does. */
export class EndedOtherwise<Resource extends Identified> extends Error {
  override name = "EndedOtherwise"
  readonly resource: Resource
  readonly status: string
  readonly failure: Schemas["Failure"] | null
  constructor(resource: Resource, { what, status, wanted }: Outcome) {
    const failure = (resource as { failure?: Schemas["Failure"] | null }).failure ?? null
    const reason = failure ? `: ${failure.code}: ${failure.message}` : ""
    super(`${what} ${resource.id} should become ${wanted} but is ${status}${reason}`)
    this.resource = resource
    this.status = status
    this.failure = failure
  }
}

/** It is still under way and may end well: wait again later, with the same id. */
export class WaitedTooLong<Resource extends Identified> extends Error {
  override name = "WaitedTooLong"
  /** As it was read last; null if no request got a response. */
  readonly resource: Resource | null
  constructor(resource: Resource | null, outcome: Outcome) {
    super(
      resource
        ? stillOf(resource, outcome)
        : `no response tells whether the ${outcome.what} is ${outcome.wanted}`,
    )
    this.resource = resource
  }
}

function stillOf(resource: Identified, { what, status, wanted }: Outcome): string {
  const isUnpaired = (resource as { chip_id?: string | null }).chip_id === null
  const reason = isUnpaired ? ": no chip is paired to it" : ""
  return `${what} ${resource.id} should become ${wanted} but is still ${status}${reason}`
}

type Identified = { id: string }

type Outcome = { what: string; status: string; wanted: string }

const endings = ["failed", "expired"]

/** Enough for a response on most networks: with less patience, nothing would be read at all. */
const leastReadMilliseconds = 2_000

/**
 * Reads until the status is the wanted one. Throws `EndedOtherwise` if it is `failed` or `expired`, `WaitedTooLong`
 * if patience ends first, the signal's reason if aborted, and whatever `read` throws.
 */
async function waitFor<Resource extends Identified>(
  read: (signal: AbortSignal) => Promise<Resource>,
  { what, statusOf, wanted }: { what: string; statusOf: (resource: Resource) => string; wanted: string },
  options: WaitOptions<Resource> = {},
): Promise<Resource> {
  const { patience_milliseconds = 300_000, interval_milliseconds = 500, signal, onRead } = options
  const deadline = performance.now() + patience_milliseconds
  let resource: Resource | null = null
  let status = "unknown"
  const tooLate = () => new WaitedTooLong(resource, { what, status, wanted })
  for (let interval = interval_milliseconds; ; interval = Math.min(5_000, interval * 1.5)) {
    const attempt = attemptUnder(signal)
    const patience = Math.max(leastReadMilliseconds, deadline - performance.now())
    resource = await inTime(read(attempt.signal), patience, tooLate).finally(attempt.abort)
    onRead?.(resource)
    status = statusOf(resource)
    if (status === wanted) return resource
    if (endings.includes(status)) throw new EndedOtherwise(resource, { what, status, wanted })
    if (performance.now() + interval > deadline) throw tooLate()
    await pause(interval, signal)
    signal?.throwIfAborted()
  }
}
