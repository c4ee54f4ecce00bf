import type { OrganizationRow } from "../../db/schema.ts"
import { inTurn } from "../../platform/context.ts"
import { presentOrganization } from "../../resources/organizations/present.ts"
import {
  createOrganization,
  listOrganizations,
  requireConfiguredChain,
  resumeOrganization,
  suspendOrganization,
  updateOrganization,
} from "../../resources/organizations/service.ts"
import { nothingCounted, usageByOrganization } from "../../resources/quotas/service.ts"
import { inAct } from "../verbs/acts.ts"
import { type Command, type Output, UsageError, wholeNumber, wholeNumberIn } from "./command.ts"
import { fields, table } from "./text.ts"

export const organizationCommands: Command[] = [
  {
    name: "organizations create",
    does: "creates an organization",
    takes: "--name N [--default-chain ID] [--allowed-chains ID,ID]",
    options: { name: true, "default-chain": false, "allowed-chains": false },
    plan(values) {
      const input = {
        name: values.required("name"),
        default_chain_id: wholeNumber(values, "default-chain", 1),
        allowed_chain_ids: chainIds(values.option("allowed-chains") ?? ""),
      }
      return async ({ context }) => {
        requireConfiguredChain(context.chains, input.default_chain_id)
        return shownOrganization(await inTurn(context, null, (turn) => createOrganization(turn, input)))
      }
    },
  },
  {
    name: "organizations update",
    does: "changes an organization's name or chains",
    takes: "ID [--name N] [--default-chain ID] [--allowed-chains ID,ID]",
    argument: "ID",
    options: { name: false, "default-chain": false, "allowed-chains": false },
    plan(values) {
      const name = values.option("name")
      const default_chain_id = wholeNumber(values, "default-chain", 1)
      const allowed = values.option("allowed-chains")
      const changes = {
        ...(name !== null && { name }),
        ...(default_chain_id !== null && { default_chain_id }),
        ...(allowed !== null && { allowed_chain_ids: chainIds(allowed) }),
      }
      if (Object.keys(changes).length === 0)
        throw new UsageError("organizations update needs --name, --default-chain or --allowed-chains")
      return async ({ context }) => {
        requireConfiguredChain(context.chains, default_chain_id)
        return shownOrganization(
          await inTurn(context, null, (turn) => updateOrganization(turn, values.argument, changes)),
        )
      }
    },
  },
  {
    name: "organizations suspend",
    does: "suspends an organization: its credentials are refused",
    takes: "ID",
    about: `All its credentials get 403 auth.forbidden within 5 seconds. Work that is already in progress continues, taps are still
redirected, and events are still sent to its webhook endpoints.`,
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) =>
        shownOrganization(await inAct(context, { act: "suspend", subject: argument }, suspendOrganization)),
  },
  {
    name: "organizations resume",
    does: "resumes a suspended organization",
    takes: "ID",
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) =>
        shownOrganization(await inAct(context, { act: "resume", subject: argument }, resumeOrganization)),
  },
  {
    name: "organizations list",
    does: "lists all organizations, oldest first, and what they have used of their quotas",
    takes: "",
    about:
      "A ? of a quota means that nothing was counted since the quota was set or, of taps, in this month (UTC).",
    options: {},
    plan:
      () =>
      async ({ context: { db, clock } }) => {
        const usage = await usageByOrganization(db.read, clock())
        const organizations = (await listOrganizations(db.read)).map((row) => ({
          ...presentOrganization(row),
          quotas_used: usage.get(row.id) ?? nothingCounted,
        }))
        return {
          document: { organizations },
          text: table(organizations, {
            ID: "id",
            NAME: "name",
            "DEFAULT CHAIN": "default_chain_id",
            "ALLOWED CHAINS": ({ allowed_chain_ids }) => allowed_chain_ids.join(", "),
            UNITS: ({ quotas, quotas_used }) => usedOf(quotas.units, quotas_used.units),
            COLLECTIONS: ({ quotas, quotas_used }) => usedOf(quotas.collections, quotas_used.collections),
            CHIPS: ({ quotas, quotas_used }) => usedOf(quotas.chips, quotas_used.chips),
            "TAPS THIS MONTH": ({ quotas, quotas_used }) =>
              usedOf(quotas.taps_per_month, quotas_used.taps_per_month),
            CREATED: "created_at",
            SUSPENDED: "suspended_at",
          }),
        }
      },
  },
]

function shownOrganization(organization: OrganizationRow): Output {
  const document = presentOrganization(organization)
  const { id, name, suspended_at } = document
  const text = fields({
    id,
    name,
    "default chain": document.default_chain_id,
    "allowed chains": document.allowed_chain_ids.join(", "),
    ...(suspended_at && { suspended: suspended_at }),
  })
  return { document, text }
}

function usedOf(quota: number | null, used: number | null): string | null {
  return quota === null ? null : `${used ?? "?"} of ${quota}`
}

function chainIds(text: string): number[] {
  if (text === "") return []
  return text.split(",").map((each) => wholeNumberIn(each.trim(), "allowed-chains", 1))
}
