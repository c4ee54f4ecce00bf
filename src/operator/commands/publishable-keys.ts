import type { PublishableKeyRow } from "../../db/schema.ts"
import { inTurn } from "../../platform/context.ts"
import { requireName } from "../../platform/fields.ts"
import { requireOrganization } from "../../resources/organizations/service.ts"
import {
  issuePublishableKey,
  listAllPublishableKeys,
  revokePublishableKey,
  rotatePublishableKey,
} from "../../resources/publishable-keys/service.ts"
import { inAct } from "../verbs/acts.ts"
import { type Command, UsageError, type Values } from "./command.ts"
import { fields, table } from "./text.ts"

export const publishableKeyCommands: Command[] = [
  {
    name: "publishable-keys list",
    does: "lists an organization's publishable keys",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const { id } = await requireOrganization(context.db.read, values.required("organization"))
        const keys = (await listAllPublishableKeys(context.db.read, id)).map(presentKey)
        return {
          document: { publishable_keys: keys },
          text: table(keys, {
            ID: "id",
            NAME: "name",
            KEY: "key",
            CREATED: "created_at",
            EXPIRES: "expires_at",
            REVOKED: "revoked_at",
          }),
        }
      },
  },
  {
    name: "publishable-keys issue",
    does: "issues a publishable key",
    takes: "--organization ID [--name N]",
    options: { organization: true, name: false },
    plan(values) {
      const name = values.option("name") ?? "Default"
      return async ({ context }) => {
        requireName("name", name)
        const { id } = await requireOrganization(context.db.read, values.required("organization"))
        const document = presentKey(
          await inTurn(context, null, (turn) => issuePublishableKey(turn, id, name)),
        )
        return { document, text: fields({ id: document.id, key: document.key }) }
      }
    },
  },
  {
    name: "publishable-keys rotate",
    does: "issues a new key; the old one stays valid for a while",
    takes: "ID [--overlap 24h]",
    about: "The old key stays valid for --overlap: a number and s, m, h or d; 24h by default.",
    argument: "ID",
    options: { overlap: false },
    plan(values) {
      const overlap_seconds = secondsIn(values, "overlap") ?? 24 * 60 * 60
      return async ({ context }) => {
        const act = { act: "rotate publishable key", subject: values.argument }
        const { issued, rotated } = await inAct(context, act, (turn, id) =>
          rotatePublishableKey(turn, id, overlap_seconds),
        )
        const document = { ...presentKey(issued), rotated: presentKey(rotated) }
        const { id, key } = document
        return { document, text: fields({ id, key, "the old one ends": document.rotated.expires_at }) }
      }
    },
  },
  {
    name: "publishable-keys revoke",
    does: "revokes a publishable key, within 5 seconds",
    takes: "ID",
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) => {
        const act = { act: "revoke publishable key", subject: argument }
        const key = presentKey(await inAct(context, act, revokePublishableKey))
        return { document: key, text: `key ${key.id} was revoked at ${key.revoked_at}` }
      },
  },
]

function presentKey(key: PublishableKeyRow) {
  return {
    id: key.id,
    organization_id: key.organization_id,
    name: key.name,
    key: key.key,
    created_at: key.created_at.toISOString(),
    expires_at: key.expires_at?.toISOString() ?? null,
    revoked_at: key.revoked_at?.toISOString() ?? null,
  }
}

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 60 * 60, d: 24 * 60 * 60 }

/** An option as a duration in seconds; null if it was not given. Throws `UsageError`. */
function secondsIn(values: Values, name: string): number | null {
  const text = values.option(name)
  if (text === null) return null
  const [, number = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (number === "") throw new UsageError(`--${name} takes a duration such as 24h or 0s, not "${text}"`)
  return Number(number) * (unitSeconds[unit] ?? 1)
}
