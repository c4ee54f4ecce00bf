import { afterAll, beforeAll, beforeEach } from "bun:test"
import { and, eq } from "drizzle-orm"
import type { Address } from "viem"
import type { Queries } from "../../src/db/database.ts"
import { type ChipReplacementRow, chips, collections, effects, units } from "../../src/db/schema.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import type { Caller } from "../../src/platform/caller.ts"
import type { AuthorizerEnd, Chain } from "../../src/platform/chain.ts"
import type { Context } from "../../src/platform/context.ts"
import { newId } from "../../src/platform/ids.ts"
import type { CreateChipReplacementBody } from "../../src/resources/chip-replacements/model.ts"
import { createChipReplacement, readLockedChip } from "../../src/resources/chip-replacements/service.ts"
import { checkPairing } from "../../src/resources/chips/pairing.ts"
import { createClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { createTransfer, prepareTransfer } from "../../src/resources/transfers/service.ts"
import type { UnitView } from "../../src/resources/units/service.ts"
import type { Engine } from "./engines.ts"
import {
  activeCollection,
  chainId,
  createCaller,
  newUnit,
  openService,
  pairedTestChip,
  settle,
  type TestService,
} from "./services.ts"

export const alice: Address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
export const bob: Address = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"

/** The services, with a stubbed chain that returns what `says` holds, and the holder of an API key. */
export type OwnershipService = TestService & { caller: Caller; says: ChainSays; read: () => Queries }

/** Opens one for the tests of the calling `describe`. Before the first test it has only `says` and `read`. */
export function useOwnership(engine: Engine): OwnershipService {
  const says: ChainSays = { owner: null, isReachable: true }
  const service = { says, read: () => service.context.db.read } as OwnershipService
  beforeAll(async () => {
    const opened = await openService(engine)
    const caller = await createCaller(opened)
    const context = contextWithChain(opened, says)
    Object.assign(service, opened, { caller, context })
  })
  beforeEach(() =>
    Object.assign(says, {
      ...{ owner: null, isReachable: true, chip_id: null, authorizer_end: null },
      is_ahead_by_milliseconds: 0,
    }),
  )
  afterAll(() => service.close())
  return service
}

/** What the stubbed chain returns: the owner of every serial, null for custody; or that it is unreachable. */
export type ChainSays = {
  owner: Address | null
  isReachable: boolean
  /** The chip on the chain, if it is not the unit's own. */
  chip_id?: string | null
  authorizer_end?: AuthorizerEnd | null
  /** How far the chain's clock is ahead of the service's. */
  is_ahead_by_milliseconds?: number
}

/** A service's context with a chain that returns what `says` holds at that moment. */
export function contextWithChain(service: TestService, says: ChainSays): Context {
  const silent = service.context.chains.get(chainId) as Chain
  const ownerOf = async () => {
    if (!says.isReachable) throw new ChainUnreachable("nobody answers")
    return says.owner
  }
  const chain: Chain = {
    ...silent,
    ownerOf,
    async ownershipOf(contract, serial) {
      const owner = await ownerOf()
      const chip_id = says.chip_id ?? (await chipIdOf(service, contract, serial))
      const { authorizer_end = null, is_ahead_by_milliseconds = 0 } = says
      const block_at = new Date(service.context.clock().getTime() + is_ahead_by_milliseconds)
      return { block_at, owner, chip_id, authorization_nonce: owner ? 1 : 0, authorizer_end }
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

async function chipIdOf({ context }: TestService, contract: Address, serial: number): Promise<string> {
  const [chip] = await context.db.read
    .select({ chip_id: chips.chip_id })
    .from(chips)
    .innerJoin(units, eq(units.id, chips.unit_id))
    .innerJoin(collections, eq(collections.id, units.collection_id))
    .where(and(eq(units.serial, serial), eq(collections.address, contract)))
  if (!chip) throw new Error(`serial ${serial} of ${contract} has no chip`)
  return chip.chip_id
}

function authorization(from: Address, to: Address) {
  return {
    transaction: { chain_id: chainId, from, to, data: "0x12", value: "0x0" as const },
    authorization_digest: `0x${newId().replaceAll("-", "").padEnd(64, "0")}`,
  }
}

/** A unit of a deployed collection, without a chip. */
export async function unpairedUnit(service: OwnershipService): Promise<UnitView> {
  return await newUnit(service, service.caller, await activeCollection(service, service.caller))
}

/** A unit with serial 1 and a test chip, and the holder of a session of that chip. */
export async function issuedUnit(
  service: OwnershipService,
  owner = service.caller,
): Promise<{ unit: UnitView; session: Caller }> {
  const chip = await pairedTestChip(service, owner)
  const unit = chip.unit as UnitView
  await settle(service, unit.id, { serial: 1, transaction_hash: "0x02" })
  return { unit, session: sessionOf(owner, chip.chip_id, unit.id) }
}

/** The same after alice has claimed it; `id` is her claim. */
export async function claimedUnit(
  service: OwnershipService,
  owner = service.caller,
): Promise<{ unit: UnitView; session: Caller; id: string }> {
  const { unit, session } = await issuedUnit(service, owner)
  const { id } = await claim(service, session, unit.id, { recipient: alice })
  await settle(service, id, { transaction_hash: `0x${"ab".repeat(32)}` })
  service.says.owner = alice
  return { unit, session, id }
}

export function sessionOf(caller: Caller, chip_id: string, unit_id: string): Caller {
  const expires_at = new Date("2099-01-01T00:00:00.000Z")
  const session = { chip_id, unit_id, expires_at }
  return { ...caller, kind: "session_token", credential_id: newId(), session }
}

/** Prepares and records a claim, as the route does. */
export async function claim(
  service: TestService,
  caller: Caller,
  unitId: string,
  body: Parameters<typeof prepareClaim>[3],
) {
  const prepared = await prepareClaim(service.context, caller, unitId, body)
  return await service.turn((turn) => createClaim(turn, caller, { unit_id: unitId, body, prepared }))
}

/** Prepares and records a transfer, as the route does. */
export async function transfer(
  service: TestService,
  caller: Caller,
  unitId: string,
  body: Parameters<typeof prepareTransfer>[3],
) {
  const prepared = await prepareTransfer(service.context, caller, unitId, body)
  return await service.turn((turn) => createTransfer(turn, caller, { unit_id: unitId, body, prepared }))
}

/** Records a chip replacement, as the route does. */
export async function replaceChip(
  service: OwnershipService,
  unitId: string,
  body: CreateChipReplacementBody,
  caller = service.caller,
): Promise<ChipReplacementRow> {
  const { context, secret } = service
  checkPairing(body)
  const locked_chip_id = await readLockedChip(context, caller, unitId, body)
  const asked = { unit_id: unitId, body, locked_chip_id }
  return await service.turn((turn) =>
    createChipReplacement(turn, { secret, chains: context.chains }, caller, asked),
  )
}

/** The open effect of an actor. */
export async function openEffect({ context }: TestService, actorId: string) {
  const [effect] = await context.db.read
    .select()
    .from(effects)
    .where(and(eq(effects.actor_id, actorId), eq(effects.status, "open")))
  return effect
}
