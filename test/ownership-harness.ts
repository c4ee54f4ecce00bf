import type { Address } from "viem"
import type { Caller } from "../src/caller.ts"
import type { Chain } from "../src/chain/chains.ts"
import { ChainUnreachable } from "../src/chain/rpc.ts"
import { createClaim, prepareClaim } from "../src/claims/service.ts"
import type { Context } from "../src/context.ts"
import { newId } from "../src/ids.ts"
import { createTransfer, prepareTransfer } from "../src/transfers/service.ts"
import type { UnitView } from "../src/units/service.ts"
import { chainId, pairedTestChip, settle, type TestService } from "./service-harness.ts"

export const alice: Address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
export const bob: Address = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"

/** What the chain of a test says: the owner of every serial, or null for custody; or that it does not answer. */
export type ChainSays = { owner: Address | null; isReachable: boolean }

/** The world of a service whose chain answers what `says` holds at that moment. */
export function contextWithChain(service: TestService, says: ChainSays): Context {
  const silent = service.context.chains.get(chainId) as Chain
  const chain: Chain = {
    ...silent,
    async ownershipOf() {
      if (!says.isReachable) throw new ChainUnreachable("nobody answers")
      return { owner: says.owner, authorization_nonce: says.owner ? 1 : 0 }
    },
    async authorizeClaim({ contract, recipient }) {
      return authorization(recipient, contract)
    },
    async authorizeTransfer({ contract, sender }) {
      return authorization(sender, contract)
    },
  }
  return { ...service.context, chains: new Map([[chainId, chain]]) }
}

function authorization(from: Address, to: Address) {
  return {
    transaction: { chain_id: chainId, from, to, data: "0x12", value: "0x0" as const },
    authorization_digest: `0x${newId().replaceAll("-", "").padEnd(64, "0")}`,
  }
}

/** A unit with serial 1 and a test chip, and the holder of a session of that chip. */
export async function issuedUnit(
  service: TestService,
  caller: Caller,
): Promise<{ unit: UnitView; session: Caller }> {
  const chip = await pairedTestChip(service, caller)
  const unit = chip.unit as UnitView
  await settle(service, unit.id, { serial: 1, transaction_hash: "0x02" })
  return { unit, session: sessionOf(caller, chip.chip_id, unit.id) }
}

export function sessionOf(caller: Caller, chip_id: string, unit_id: string): Caller {
  const expires_at = new Date("2099-01-01T00:00:00.000Z")
  const session = { chip_id, unit_id, expires_at }
  return { ...caller, kind: "session_token", credential_id: newId(), session }
}

/** Prepares and records a claim, as the route does. */
export async function claim(
  service: TestService,
  context: Context,
  caller: Caller,
  unitId: string,
  body: Parameters<typeof prepareClaim>[3],
) {
  const prepared = await prepareClaim(context, caller, unitId, body)
  return await service.turn((turn) => createClaim(turn, caller, unitId, body, prepared))
}

/** Prepares and records a transfer, as the route does. */
export async function transfer(
  service: TestService,
  context: Context,
  caller: Caller,
  unitId: string,
  body: Parameters<typeof prepareTransfer>[3],
) {
  const prepared = await prepareTransfer(context, caller, unitId, body)
  return await service.turn((turn) => createTransfer(turn, caller, unitId, body, prepared))
}
