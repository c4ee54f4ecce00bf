import { type Address, getAddress } from "viem"
import type { WatchAuthorizationInput } from "../../../machines/authorization.ts"
import { authorizationSeconds } from "../../engine/chain/authorizer.ts"
import type { Authorization, Ownership } from "../../platform/chain.ts"
import type { Context } from "../../platform/context.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import type { IssuedUnit } from "./rules.ts"

/** What a person's wallet may submit until the deadline, and the token's nonce that it uses up. */
export type TimedAuthorization = Authorization & { authorization_nonce: number; deadline_at: Date }

/** The token that an authorization is about. */
type AuthorizedToken = { contract: Address; serial: number; deadline_at: Date }

/**
 * Has `sign` sign what may be done with a unit from now on, for half an hour. Throws `Unavailable` where the unit's
 * collection would not take it as long, when what was handed out would revert.
 */
export async function authorizeFrom(
  { clock }: Pick<Context, "clock">,
  unit: IssuedUnit,
  { authorization_nonce, authorizer_end }: Ownership,
  sign: (token: AuthorizedToken) => Promise<Authorization>,
): Promise<TimedAuthorization> {
  const deadline_at = deadlineFrom(clock())
  if (authorizer_end && authorizer_end.at < deadline_at) throw new Unavailable(authorizer_end.text)
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

/** In whole seconds, as the contract counts. */
function deadlineFrom(now: Date): Date {
  return new Date((Math.floor(now.getTime() / 1000) + authorizationSeconds) * 1000)
}
