import { type Asking, type CollectionPlayed, endOf, type Made, type Stage, until } from "./asking.ts"
import type { Asked } from "./clients.ts"
import { Refused, read, tryMake } from "./errands.ts"
import { sleep } from "./scheduler.ts"
import { sendFromWallet, walletAddress, walletOf } from "./wallets.ts"

/** A person with a unit in hand. */
export type Person = Stage & {
  played: CollectionPlayed
  unit_id: string
  chip_id: string
  asking: Asking
}

type Session = { token: string; expires_at: string }

/** Taps until a value is accepted, sometimes sending it twice, and returns the new session. */
async function tap(person: Person, ttl = 3_600): Promise<Session | null> {
  const { chance, played, chip_id, clients, asking } = person
  for (let attempt = 0; attempt < 10; attempt++) {
    const e = await emit(person)
    if (e === null) return null
    asking.secrets.push(e)
    const body = { chip_id, e, ttl }
    const asked: Asked = { method: "POST", path: "/v1/taps", token: played.key, body }
    const answers = await Promise.all(
      chance.happens(0.25) ? [clients.ask(asked), clients.ask(asked)] : [clients.ask(asked)],
    )
    const taken = answers.find(({ status }) => status === 201)
    if (!taken) continue
    const { session_token } = taken.body as { session_token: Session }
    asking.secrets.push(session_token.token)
    return session_token
  }
  return null
}

/** A new value of the chip; null if it can emit no more. */
async function emit({ chest, clients, played, chip_id }: Person): Promise<string | null> {
  if (chest) return chest.emit(chip_id)
  const body = { chip_id }
  const asked = { method: "POST", path: "/v1/test-helpers/taps", token: played.key, body } as const
  const emitted = await clients.ask(asked)
  return emitted.status === 201 ? (emitted.body as { e: string }).e : null
}

export type ClaimWanted = {
  wallet: number
  execution: "service_relay" | "client_broadcast"
  /** How long a wallet waits before it sends its transaction. */
  hesitates_seconds?: number
}

/** Claims the unit for a wallet, and returns whether the wallet got it. */
export async function claim(person: Person, wanted: ClaimWanted): Promise<boolean> {
  const { unit_id, played } = person
  const { wallet, execution, hesitates_seconds = 0 } = wanted
  const recipient = walletAddress(wallet)
  const session = await tap(person)
  if (session === null) return false
  const path = `/v1/units/${unit_id}/claims`
  const made = await tryMake<Made>(person, { token: session.token, path, body: { execution, recipient } })
  if (!made) return false
  played.claims.push({ id: made.id, unit_id, recipient })
  return await submitUntilEnded(person, `${path}/${made.id}`, { ...made, wallet, hesitates_seconds })
}

/** Has the unit's owner transfer it to a wallet. */
export async function transfer(person: Person, friend: number, hesitates_seconds = 0): Promise<void> {
  const { unit_id, played } = person
  const recipient = walletAddress(friend)
  const session = await tap(person)
  if (session === null) return
  const path = `/v1/units/${unit_id}/transfers`
  const asked = { token: session.token, path, body: { recipient } }
  const made = await tryMake<Made & { sender: string }>(person, asked).catch(async (error) => {
    const isOwnerless = error instanceof Refused && error.code === "transfer.owner_unknown"
    if (isOwnerless && (await isInCustody(person))) return null
    throw error
  })
  if (!made) return
  played.transfers.push({ id: made.id, unit_id, recipient })
  const wallet = walletOf(made.sender)
  await submitUntilEnded(person, `${path}/${made.id}`, { ...made, wallet, hesitates_seconds })
}

/** Whether the unit is in custody again, as after a reorganization permanently undid its claim. */
async function isInCustody(person: Person): Promise<boolean> {
  const { unit_id, played } = person
  const { ownership } = await read<{ ownership: { status: string } }>(
    person,
    played.key,
    `/v1/units/${unit_id}`,
  )
  return ownership.status === "custody"
}

/** The shortest possible session, used at once and as soon as it has expired by every process's clock. */
export async function linger(person: Person): Promise<void> {
  const { clients, simulation, asking, most_skew_seconds, played, unit_id } = person
  const session = await tap(person, shortestSessionSeconds)
  if (session === null) return
  const asked = { method: "GET", path: "/v1/session-tokens/current", token: session.token } as const
  const over = Date.parse(session.expires_at) - simulation.epoch
  const skew = most_skew_seconds * 1_000
  const first = await clients.ask(asked)
  await sleep(simulation, over + skew - simulation.now)
  // Sessions end with their chip.
  const isReplaced = played.replacements.some((each) => each.unit_id === unit_id)
  const mayEnd = isReplaced || person.isRestored()
  if (first.status !== 200 && first.answered_at < over - skew && !mayEnd)
    asking.breaches.push(`a session of ${shortestSessionSeconds} s is refused before`)
  const { status } = await clients.ask(asked)
  if (status < 300) asking.breaches.push(`a session of ${shortestSessionSeconds} s is good for longer`)
}

const shortestSessionSeconds = 60

/** Returns the chip that the unit has in the end; null if it was not replaced. */
export async function replace(person: Person): Promise<string | null> {
  const { unit_id, played } = person
  const path = `/v1/units/${unit_id}/chip-replacements`
  const made = await tryMake<Made & { previous_chip_id: string; chip_id: string }>(person, {
    token: played.key,
    path,
    body: chipFor(person),
  })
  if (!made) return null
  const { id, previous_chip_id, chip_id } = made
  played.replacements.push({ id, unit_id, previous_chip_id, chip_id })
  await until(person, async () => endOf(await read<Made>(person, played.key, `${path}/${id}`)) !== null)
  return chip_id
}

type Submitted = Pick<Made, "transaction"> & { wallet: number; hesitates_seconds: number }

/** A wallet sends its transaction until the service reports the result; returns whether it succeeded. */
async function submitUntilEnded(
  person: Person,
  path: string,
  { transaction, wallet, hesitates_seconds }: Submitted,
): Promise<boolean> {
  const ended = async () => endOf(await read<Made>(person, person.played.key, path))
  if (hesitates_seconds > 0) await sleep(person.simulation, hesitates_seconds * 1_000)
  if (transaction) await sendFromWallet(person.simulation, person.chain, wallet, transaction, ended)
  else await until(person, async () => (await ended()) !== null)
  return (await ended()) === "well"
}

/** The chip in a request: one from the chest, with its next value, or a test chip. */
export function chipFor({ chest }: Stage, chipId = chest?.take()): object {
  return chest && chipId ? { chip_id: chipId, e: chest.emit(chipId) } : { is_test: true }
}
