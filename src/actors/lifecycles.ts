import { and, eq } from "drizzle-orm"
import type { AnyStateMachine } from "xstate"
import { chipReplacementMachine } from "../../machines/chip-replacement.ts"
import { claimMachine } from "../../machines/claim.ts"
import { collectionContractMachine } from "../../machines/collection-contract.ts"
import type { EffectFailure } from "../../machines/effect.ts"
import { sessionTokenMachine } from "../../machines/session-token.ts"
import { transferMachine } from "../../machines/transfer.ts"
import { unitTokenMachine } from "../../machines/unit-token.ts"
import {
  chipReplacements,
  chips,
  claims,
  collections,
  type JournalEvent,
  sessionTokens,
  transfers,
  units,
} from "../db/schema.ts"
import type { Turn } from "../db/turn.ts"

/** The six machines with what the runtime must know of each. An actor has the id of the row it governs. */
export const lifecycles = {
  "unit-token": { machine: unitTokenMachine, version: 1, journalled: true, project: projectUnitToken },
  "collection-contract": {
    machine: collectionContractMachine,
    version: 1,
    journalled: true,
    project: projectCollectionContract,
  },
  claim: { machine: claimMachine, version: 1, journalled: true, project: projectClaim },
  transfer: { machine: transferMachine, version: 1, journalled: true, project: projectTransfer },
  "chip-replacement": {
    machine: chipReplacementMachine,
    version: 1,
    journalled: true,
    project: projectChipReplacement,
  },
  // Sessions are many and short: their history is not kept.
  "session-token": {
    machine: sessionTokenMachine,
    version: 1,
    journalled: false,
    project: projectSessionToken,
  },
} as const satisfies Record<string, Lifecycle>

export type MachineName = keyof typeof lifecycles

export type Lifecycle = {
  machine: AnyStateMachine
  /** Grows when stored snapshots of the machine no longer fit its code. */
  version: number
  journalled: boolean
  /** Carries a stored snapshot into the rows that the API reads, in the same database transaction. */
  project: (turn: Turn, actor: ProjectedActor, send: SendEvent) => Promise<void>
}

export type ProjectedActor = {
  id: string
  /** The top-level state, which is what the API shows. */
  status: string
  /** The whole state, such as `pending.issuing`. */
  state: string
  // biome-ignore lint/suspicious/noExplicitAny: each machine has a context of its own
  context: any
}

export type SendEvent = (turn: Turn, actorId: string, event: JournalEvent) => Promise<unknown>

async function projectUnitToken(turn: Turn, actor: ProjectedActor): Promise<void> {
  await turn.tx
    .update(units)
    .set({
      token_status: actor.status as "pending" | "active",
      serial: actor.context.serial,
      claimed: actor.state === "active.claimed",
    })
    .where(eq(units.id, actor.id))
}

async function projectCollectionContract(turn: Turn, actor: ProjectedActor): Promise<void> {
  await turn.tx
    .update(collections)
    .set({ status: actor.status as "deploying" | "active" | "failed" })
    .where(eq(collections.id, actor.id))
}

async function projectClaim(turn: Turn, actor: ProjectedActor, send: SendEvent): Promise<void> {
  await turn.tx
    .update(claims)
    .set({
      status: actor.status as "claiming" | "claimed" | "expired" | "failed",
      ...outcomeOf(turn, actor),
    })
    .where(eq(claims.id, actor.id))
  if (actor.status === "claimed") await send(turn, actor.context.unit_id, { type: "CLAIMED" })
}

async function projectTransfer(turn: Turn, actor: ProjectedActor): Promise<void> {
  await turn.tx
    .update(transfers)
    .set({
      status: actor.status as "prepared" | "confirmed" | "expired" | "failed",
      ...outcomeOf(turn, actor),
    })
    .where(eq(transfers.id, actor.id))
}

async function projectChipReplacement(turn: Turn, actor: ProjectedActor, send: SendEvent): Promise<void> {
  const status = actor.status as "prepared" | "submitted" | "confirmed" | "failed"
  await turn.tx
    .update(chipReplacements)
    .set({ status, ...outcomeOf(turn, actor) })
    .where(eq(chipReplacements.id, actor.id))
  const { unit_id, previous_chip_id, chip_id } = actor.context
  const reserved = and(eq(chips.chip_id, chip_id), eq(chips.reserved_for, actor.id))
  if (status === "failed") await turn.tx.update(chips).set({ reserved_for: null }).where(reserved)
  if (status !== "confirmed") return
  await turn.tx
    .update(chips)
    .set({ unit_id: null, retired_at: turn.at })
    .where(and(eq(chips.chip_id, previous_chip_id), eq(chips.unit_id, unit_id)))
  await turn.tx.update(chips).set({ unit_id, reserved_for: null, paired_at: turn.at }).where(reserved)
  await send(turn, unit_id, { type: "CHIP_REPLACED", chip_id })
}

async function projectSessionToken(turn: Turn, actor: ProjectedActor): Promise<void> {
  await turn.tx
    .update(sessionTokens)
    .set({ status: actor.status as "valid" | "expired" | "revoked" })
    .where(eq(sessionTokens.id, actor.id))
}

function outcomeOf(turn: Turn, actor: ProjectedActor) {
  return {
    transaction_hash: actor.context.transaction_hash as string | null,
    failure: actor.context.failure as EffectFailure | null,
    updated_at: turn.at,
  }
}
