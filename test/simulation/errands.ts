import { type Asked, type Clients, codeOf, type Exchange } from "./clients.ts"

/** With what people go to the service. */
type Errand = {
  clients: Clients
  /** Whether a back-up was restored, after which the service may know nothing of what it answered. */
  isRestored(): boolean
}

type Create = Pick<Asked, "token" | "path" | "body">

/** What is made; throws where it is refused. */
export async function make<T>(errand: Errand, asked: Create): Promise<T> {
  const answer = await errand.clients.ask({ method: "POST", ...asked })
  if (answer.status !== 201) throw whyNot(errand, answer)
  return answer.body as T
}

/** What is made, or null where somebody else was quicker. */
export async function tryMake<T>(errand: Errand, asked: Create): Promise<T | null> {
  const answer = await errand.clients.ask({ method: "POST", ...asked })
  if (answer.status === 201) return answer.body as T
  if (overtaken.includes(codeOf(answer.body) ?? "")) return null
  throw whyNot(errand, answer)
}

/** What a race may lead to. */
const overtaken = [
  "claim.already_claimed",
  "claim.already_to_recipient",
  // The unit has another chip on chain.
  "claim.owner_unknown",
  "chip_replacement.locked",
  // A chip replacement was confirmed meanwhile: sessions end with their chip.
  "session_token.invalid_or_expired",
  "session_token.wrong_chip",
  "transfer.already_to_recipient",
]

/** What is at a path; throws where it is refused. */
export async function read<T>(errand: Errand, token: string, path: string): Promise<T> {
  const answer = await errand.clients.ask({ method: "GET", path, token })
  if (answer.status !== 200) throw whyNot(errand, answer)
  return answer.body as T
}

/** What was asked about was lost with what a back-up does not have. */
export class Forgotten extends Error {
  override name = "Forgotten"
}

/** Whoever is told that something does not exist any more gives up. */
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
 * What is refused where only what it needs was lost: a deployment, a pairing, the claim before a transfer, or whose the
 * chip is that the chain has.
 */
const forgetful = [
  "collection.not_active",
  "unit.not_minted",
  "transfer.owner_unknown",
  "chip.already_paired",
]

/** A refusal that nobody expected. */
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
