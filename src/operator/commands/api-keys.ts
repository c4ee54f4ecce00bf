import { inTurn } from "../../platform/context.ts"
import { presentApiKey } from "../../resources/api-keys/present.ts"
import { issueApiKey, listApiKeys, revokeApiKey } from "../../resources/api-keys/service.ts"
import { inAct } from "../verbs/acts.ts"
import { type Command, UsageError, type Values } from "./command.ts"
import { fields, table } from "./text.ts"

export const apiKeyCommands: Command[] = [
  {
    name: "keys issue",
    does: "issues an API key, which is shown only once",
    takes: "--organization ID [--name N] [--expires TIME]  (such as 2027-01-31T00:00:00Z)",
    options: { organization: true, name: false, expires: false },
    plan(values) {
      const input = {
        organization_id: values.required("organization"),
        name: values.option("name"),
        expires_at: timeIn(values, "expires"),
      }
      return async ({ context }) => {
        const { id, key, row } = await inTurn(context, null, (turn) => issueApiKey(turn, input))
        return {
          document: { ...presentApiKey(row), key },
          text: `${fields({ id, key })}\n\nKeep the key now: it is not stored and cannot be shown again.`,
          ifUnseen: `key ${id} was issued all the same, and nobody has seen it: run keys revoke ${id}`,
        }
      }
    },
  },
  {
    name: "keys list",
    does: "lists an organization's API keys, without the keys themselves",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const keys = (await listApiKeys(context.db.read, values.required("organization"))).map(presentApiKey)
        return {
          document: { keys },
          text: table(keys, {
            ID: "id",
            NAME: "name",
            KEY: "hint",
            CREATED: "created_at",
            EXPIRES: "expires_at",
            REVOKED: "revoked_at",
          }),
        }
      },
  },
  {
    name: "keys revoke",
    does: "revokes an API key, within 5 seconds",
    takes: "ID",
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) => {
        const act = { act: "revoke key", subject: argument }
        const key = presentApiKey(await inAct(context, act, revokeApiKey))
        return { document: key, text: `key ${key.id} (${key.hint}) was revoked at ${key.revoked_at}` }
      },
  },
]

/** An option as a time in UTC; null if it was not given. Throws `UsageError`. */
function timeIn(values: Values, name: string): Date | null {
  const text = values.option(name)
  if (text === null) return null
  const form = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,3})?Z)?$/
  const time = new Date(text)
  if (form.test(text) && !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text.slice(0, 10)))
    return time
  throw new UsageError(`--${name} takes a day or time in UTC such as 2027-01-31T00:00:00Z, not "${text}"`)
}
