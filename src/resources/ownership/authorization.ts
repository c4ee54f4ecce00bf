import { and, eq, gte } from "drizzle-orm"
import { type Address, getAddress } from "viem"
import type { WatchAuthorizationInput } from "../../../machines/authorization.ts"
import type { Queries } from "../../db/database.ts"
import { type Given, query } from "../../db/query.ts"
import { claims, transfers } from "../../db/schema.ts"
import { authorizationSeconds } from "../../engine/chain/authorizer.ts"
import type { Authorization, Ownership } from "../../platform/chain.ts"
import type { Context } from "../../platform/context.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import type { IssuedUnit } from "./rules.ts"

/** What a person's wallet may submit until the deadline, and the token's authorization nonce that it consumes. */
export type TimedAuthorization = Authorization & { authorization_nonce: number; deadline_at: Date }

/** The token that an authorization is for, and its deadline. */
type AuthorizedToken = { contract: Address; serial: number; deadline_at: Date }

/** What to authorize, and the unit's current state on chain. */
type Wanted = {
  table: typeof claims | typeof transfers
  unit: IssuedUnit
  ownership: Ownership
  recipient: Address
}

/**
 * Calls `sign` for an authorization that is valid for half an hour, also by the chain's clock if that is ahead. Throws
 * `Unavailable` if the unit's collection would stop accepting the signature before that.
 */
export async function authorizeFrom(
  { clock, db }: Pick<Context, "clock" | "db">,
  { table, unit, ownership, recipient }: Wanted,
  sign: (token: AuthorizedToken) => Promise<Authorization>,
): Promise<TimedAuthorization> {
  const { block_at, authorization_nonce, authorizer_end } = ownership
  const now = new Date(Math.max(clock().getTime(), block_at.getTime()))
  const deadline_at = await freeDeadline(db.read, table, { unit_id: unit.id, recipient, now })
  if (authorizer_end && authorizer_end.at < deadline_at) throw new Unavailable(authorizer_end.text)
  const contract = getAddress(unit.collection.address)
  const authorization = await sign({ contract, serial: unit.serial, deadline_at })
  return { ...authorization, authorization_nonce, deadline_at }
}

/** Returns what to watch on chain until the authorization is used or has expired. */
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

/**
 * Returns the first deadline that no other authorization has, in whole seconds as in the contract. Equal deadlines
 * would make equal authorizations, and it would be unknown which one was used.
 */
async function freeDeadline(
  queries: Queries,
  table: Wanted["table"],
  { unit_id, recipient, now }: { unit_id: string; recipient: Address; now: Date },
): Promise<Date> {
  const deadline = new Date((Math.ceil(now.getTime() / 1000) + authorizationSeconds) * 1000)
  const deadlinesFrom = table === claims ? claimsFrom : transfersFrom
  const others = await deadlinesFrom(queries, { unit_id, recipient, earliest: deadline })
  const taken = new Set(others.map(({ expires_at }) => expires_at?.getTime()))
  while (taken.has(deadline.getTime())) deadline.setTime(deadline.getTime() + 1_000)
  return deadline
}

const claimsFrom = queryFrom(claims)
const transfersFrom = queryFrom(transfers)

function queryFrom(table: Wanted["table"]) {
  const { expires_at, unit_id, recipient } = table
  return query((db, given: Given<{ unit_id: string; recipient: string; earliest: Date }>) =>
    db
      .select({ expires_at })
      .from<Wanted["table"]>(table)
      .where(
        and(eq(unit_id, given.unit_id), eq(recipient, given.recipient), gte(expires_at, given.earliest)),
      ),
  )
}
