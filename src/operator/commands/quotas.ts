import type { Turn } from "../../db/turn.ts"
import { inTurn } from "../../platform/context.ts"
import { presentQuotas } from "../../resources/organizations/present.ts"
import { changeQuotas, type Quotas, setQuotas } from "../../resources/organizations/service.ts"
import { type Command, UsageError, type Values, wholeNumberIn } from "./command.ts"
import { fields } from "./text.ts"

export const quotas: Command = {
  name: "quotas set",
  does: "sets an organization's quotas",
  takes: "--organization ID [--units N] [--collections N] [--chips N] [--taps-per-month N]  (N or unlimited)",
  about:
    "What exists already counts. Quotas that are not named stay as they are; organizations list --json shows them all.",
  options: { organization: true, units: false, collections: false, chips: false, "taps-per-month": false },
  plan(values) {
    const changes = quotasIn(values)
    if (Object.keys(changes).length === 0)
      throw new UsageError("quotas set needs --units, --collections, --chips or --taps-per-month")
    return async ({ context }) => {
      const id = values.required("organization")
      // Only a serializable change makes Postgres run again what is being created without the new quota.
      if (context.db.engine === "postgres")
        await inTurn(context, null, (turn) => changeQuotas(turn, id, changes))
      const work = (turn: Turn) => setQuotas(turn, id, changes)
      // A serializable database transaction would never get through while a busy organization's taps are counted.
      const organization = await inTurn(context, null, work, "read committed alone")
      const set = presentQuotas(organization)
      const shown = Object.entries(set).map(([name, limit]) => [name, limit ?? "unlimited"])
      return { document: { id: organization.id, quotas: set }, text: fields(Object.fromEntries(shown)) }
    }
  },
}

const columns = {
  units: "quota_units",
  collections: "quota_collections",
  chips: "quota_chips",
  "taps-per-month": "quota_taps_per_month",
} as const

/** The quotas that were given, by their columns; null is unlimited. */
function quotasIn(values: Values): Quotas {
  const given: Quotas = {}
  for (const [option, column] of Object.entries(columns)) {
    const text = values.option(option)
    if (text !== null) given[column] = text === "unlimited" ? null : wholeNumberIn(text, option, 0)
  }
  return given
}
