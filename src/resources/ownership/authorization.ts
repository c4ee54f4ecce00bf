import { type Address, getAddress } from "viem"
import type { WatchAuthorizationInput } from "../../../machines/authorization.ts"
import type { Authorization, Ownership } from "../../platform/chain.ts"
import type { Context } from "../../platform/context.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import type { IssuedUnit } from "./rules.ts"

/** What a person's wallet may submit until the deadline, and the token's nonce that it uses up. */
export type TimedAuthorization = Authorization & { authorization_nonce: number; deadline_at: Date }

/** The token that an authorization is about. */
type AuthorizedToken = { contract: Address; serial: number; deadline_at: Date }

/**
 * Has `sign` sign what may be done with a unit from now on, for half an hour. Throws `Unavailable` while the chain
 * does not know the authorizer, when whatever was handed out would revert.
 */
export async function authorizeFrom(
  { clock, keyFaults }: Pick<Context, "clock" | "keyFaults">,
  unit: IssuedUnit,
  { authorization_nonce }: Ownership,
  sign: (token: AuthorizedToken) => Promise<Authorization>,
): Promise<TimedAuthorization> {
  const { chain_id } = unit.collection
  const fault = keyFaults().find((each) => each.variable === "AUTHORIZER_KEY" && each.chain_id === chain_id)
  if (fault) throw new Unavailable(fault.text)
  const deadline_at = deadlineFrom(clock())
  const contract = getAddress(unit.collection.address)
  const authorization = await sign({ contract, serial: unit.serial, deadline_at })
  return { ...authorization, authorization_nonce, deadline_at }
}

/** What to watch for on the chain until the authorization is used or over. */
export function watchOf(unit: IssuedUnit, authorization: TimedAuthorization): WatchAuthorizationInput {
  return {
    chain_id: unit.collection.chain_id,
    contract_address: unit.collection.address,
    serial: unit.serial,
    authorization_digest: authorization.authorization_digest,
    authorization_nonce: authorization.authorization_nonce,
    deadline_at: authorization.deadline_at.toISOString(),
  }
}

const AUTHORIZATION_SECONDS = 30 * 60

/** In whole seconds, as the contract counts. */
function deadlineFrom(now: Date): Date {
  return new Date((Math.floor(now.getTime() / 1000) + AUTHORIZATION_SECONDS) * 1000)
}
