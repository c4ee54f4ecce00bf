import { type Asked, type Clients, codeOf, type Exchange } from "./clients.ts"

/** What a person needs for requests to the service. */
type Errand = {
  clients: Clients
  /** Whether a back-up was restored, after which the service may have lost what it returned. */
  isRestored(): boolean
}

type Create = Pick<Asked, "token" | "path" | "body">

/** Creates a resource; throws if the request is rejected. */
export async function make<T>(errand: Errand, asked: Create): Promise<T> {
  const answer = await errand.clients.ask({ method: "POST", ...asked })
  if (answer.status !== 201) throw whyNot(errand, answer)
  return answer.body as T
}

/** Creates a resource; returns null if somebody else was quicker. */
export async function tryMake<T>(errand: Errand, asked: Create): Promise<T | null> {
  const answer = await errand.clients.ask({ method: "POST", ...asked })
  if (answer.status === 201) return answer.body as T
  if (overtaken.includes(codeOf(answer.body) ?? "")) return null
  throw whyNot(errand, answer)
}

/** Errors that a race may lead to. */
const overtaken = [
  "claim.already_claimed",
  "claim.already_to_recipient",
  // The unit has another chip on the chain.
  "claim.owner_unknown",
  "chip_replacement.locked",
  // A chip replacement was confirmed meanwhile: sessions end with their chip.
  "session_token.invalid_or_expired",
  "session_token.wrong_chip",
  "transfer.already_to_recipient",
]

/** Reads the resource at a path; throws if the request is rejected. */
export async function read<T>(errand: Errand, token: string, path: string): Promise<T> {
  const answer = await errand.clients.ask({ method: "GET", path, token })
  if (answer.status !== 200) throw whyNot(errand, answer)
  return answer.body as T
}

/** The requested resource was lost in a restore. */
export class Forgotten extends Error {
  override name = "Forgotten"
}

/** Gives up when a resource no longer exists. */
export async function unlessForgotten(work: Promise<void>): Promise<void> {
  await work.catch((error) => {
    if (!(error instanceof Forgotten)) throw error
  })
}

function whyNot(errand: Errand, answer: Exchange): Error {
  const code = codeOf(answer.body) ?? ""
  return errand.isRestored() && (code.endsWith(".not_found") || forgetful.includes(code))
    ? new Forgotten(answer.path)
    : refused(answer)
}

/**
 * Errors that occur if only a prerequisite was lost: a deployment, a pairing, the claim before a transfer, or the owner
 * of the chip that the chain has.
 */
const forgetful = [
  "collection.not_active",
  "unit.not_minted",
  "transfer.owner_unknown",
  "chip.already_paired",
]

/** An unexpected error response. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly code: string | undefined,
  ) {
    super(message)
  }
}

export function refused({ method, path, status, body }: Exchange): Error {
  return new Refused(`${method} ${path} was refused with ${status}: ${JSON.stringify(body)}`, codeOf(body))
}
