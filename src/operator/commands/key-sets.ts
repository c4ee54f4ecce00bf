import { randomBytes } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { KEY_BYTES } from "../../engine/sun/key-schemes.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import {
  createKeySet,
  type KeySetView,
  listKeySets,
  requireKeySet,
  retireKeySet,
  rotateKeySet,
} from "../../resources/key-sets/service.ts"
import { inAct } from "../verbs/acts.ts"
import { type Command, UsageError, type Values } from "./command.ts"
import { fields, table } from "./text.ts"

export const keySetCommands: Command[] = [
  {
    name: "key-sets create",
    does: "creates a set of keys for tags",
    takes: "--organization ID --name N --scheme S [--master-key-file F]",
    about: `S is an10922 (AN10922 AES-128 diversification), sdm-backend, boltcard, or explicit for chips that bring their own
keys. The file has a master key of 32 hexadecimal digits; without one the service generates a master key, which nobody
ever sees.`,
    options: { organization: true, name: true, scheme: true, "master-key-file": false },
    plan(values) {
      const scheme = values.required("scheme")
      const master = scheme === "explicit" ? givenMaster(values) : (givenMaster(values) ?? newMaster())
      return async ({ context }) => {
        const input = {
          organization_id: values.required("organization"),
          name: values.required("name"),
          scheme,
          master,
          zero_is_allowed: isDev(context),
        }
        const view = await inTurn(context, null, (turn) =>
          createKeySet(turn, context.config.service_secret, input),
        )
        const document = presentKeySet(view)
        return { document, text: fields({ id: document.id, version: document.version }) }
      }
    },
  },
  {
    name: "key-sets list",
    does: "lists an organization's key sets and their versions",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const views = await listKeySets(context.db.read, values.required("organization"))
        const key_sets = views.map(presentKeySet)
        return {
          document: { key_sets },
          text: table(key_sets, {
            ID: "id",
            NAME: "name",
            SCHEME: "scheme",
            VERSION: "version",
            CREATED: "created_at",
            RETIRED: "retired_at",
          }),
        }
      },
  },
  {
    name: "key-sets rotate",
    does: "adds a version to a key set, for new tags",
    takes: "ID [--master-key-file F]",
    argument: "ID",
    about: `Adds a version with another master key to the set. New orders use it; orders already placed keep theirs, and tags in
use keep working. chips encode --uids gives known tags the new keys.`,
    options: { "master-key-file": false },
    plan(values) {
      const given = givenMaster(values)
      return async ({ context }) => {
        const { scheme } = await requireKeySet(context.db.read, values.argument)
        const master = scheme === "explicit" ? given : (given ?? newMaster())
        const input = { key_set_id: values.argument, master, zero_is_allowed: isDev(context) }
        const view = await inAct(context, { act: "rotate key set", subject: values.argument }, (turn) =>
          rotateKeySet(turn, context.config.service_secret, input),
        )
        const document = presentKeySet(view)
        return { document, text: fields({ id: document.id, version: document.version }) }
      }
    },
  },
  {
    name: "key-sets retire",
    does: "retires a key set: no new tags get its keys",
    takes: "ID",
    argument: "ID",
    about: "No new tags are encoded with a retired set; tags that already have its keys keep working.",
    options: {},
    plan:
      (values) =>
      async ({ context }) => {
        const view = await inTurn(context, null, (turn) => retireKeySet(turn, values.argument))
        return { document: presentKeySet(view), text: `key set ${view.id} was retired` }
      },
  },
]

function presentKeySet(view: KeySetView) {
  return {
    id: view.id,
    organization_id: view.organization_id,
    name: view.name,
    scheme: view.scheme,
    version: lastVersion(view),
    created_at: view.created_at.toISOString(),
    retired_at: view.retired_at?.toISOString() ?? null,
  }
}

function lastVersion({ versions }: KeySetView): number {
  return versions.at(-1) ?? 0
}

function newMaster(): Uint8Array {
  return randomBytes(KEY_BYTES)
}

/** The key in a file, whose content is never quoted. */
function givenMaster(values: Values): Uint8Array | null {
  const file = values.option("master-key-file")
  if (file === null) return null
  const text = readFileSync(file, "utf8").trim()
  if (/^[0-9a-fA-F]{32}$/.test(text)) return Buffer.from(text, "hex")
  throw new UsageError("--master-key-file takes a file with one key of 32 hexadecimal digits")
}

/** Only a dev service, which has this file, may have tags with well-known keys. */
function isDev({ config }: Context): boolean {
  return existsSync(join(config.data_dir, "dev.json"))
}
