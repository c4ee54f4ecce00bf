import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { parseRecipients, writeManifest } from "../../engine/sun/encoding/write-manifest.ts"
import type { Context } from "../../platform/context.ts"
import { counted } from "../../platform/counted.ts"
import { newId } from "../../platform/ids.ts"
import { writeWholeAtOnce } from "../../platform/whole-file.ts"
import {
  countRegistered,
  linesOf,
  listOrders,
  type ManifestRow,
  placeOrder,
  requireOrder,
} from "../../resources/encodings/service.ts"
import { type NamedTag, parseTags } from "../../resources/encodings/wanted-tags.ts"
import { requireOrganization } from "../../resources/organizations/service.ts"
import { OperatorRefusal } from "../verbs/refusal.ts"
import { type Command, UsageError, type Values, wholeNumber } from "./command.ts"
import { showProgress } from "./progress.ts"
import { table } from "./text.ts"

export const encodeChips: Command = {
  name: "chips encode",
  does: "orders tags: registers chips and writes the encoding station's manifest",
  takes:
    '--organization ID --key-set ID (--count N | --uids F.csv) --url "https://tap.example/t/{chip_id}" [--mac] [--tamper] --out DIR [--seal-to PUBLIC_KEY_FILE]',
  about: `Registers chips and writes DIR/manifest.jsonl: for each chip what the encoding station writes, the keys of its
five slots, and a write order that cannot brick a tag. If it is interrupted, run the same command again.
--mac adds c to the URL; --tamper adds enc, the status of the TagTamper wire, and also c.
--uids names the tags at hand: one UID per line, or a CSV with the columns uid, chip_id or both. Known chips get the newest
keys of their set; the UID of a chip that was never paired is not known, so name it by chip_id.
--seal-to encrypts the manifest to the age public keys (age1…) in the file, as manifest.jsonl.age.`,
  options: {
    organization: true,
    "key-set": true,
    count: false,
    uids: false,
    url: true,
    out: true,
    "seal-to": false,
  },
  flags: ["mac", "tamper"],
  plan(values) {
    const tags = tagsOf(values)
    const recipients = recipientsOf(values)
    return async ({ context }) => {
      const folder = values.required("out")
      const order = {
        organization_id: values.required("organization"),
        key_set_id: values.required("key-set"),
        url_template: values.required("url"),
        mirrors: { mac: values.flag("mac") || values.flag("tamper"), tamper: values.flag("tamper") },
      }
      const id = orderIdOf(folder, { ...order, tags })
      await requireKnownManifest(context, folder, id, "count" in tags ? tags.count : tags.named.length)
      const manifest = await placeOrder(context, { ...order, id, tags }, (done, total) =>
        showProgress("registering", done, total, "chips"),
      ).catch(async (refusal) => {
        if ((await countRegistered(context.db.read, id)) === 0) forgetOrder(folder)
        throw refusal
      })
      const path = pathIn(folder, recipients)
      const { key_version, size } = manifest
      await writeManifest(path, linesOf(context, manifest), recipients).catch((error: Error) => {
        throw "path" in error ? unwritten(size, folder, error) : error
      })
      return {
        document: { ...presentOrder(manifest), manifest: path },
        text: `${counted(size, "chip is", "chips are")} registered with version ${key_version} of the key set, as order ${id}; give ${path} to the station`,
      }
    }
  },
}

export const orderCommands: Command[] = [
  {
    name: "chips orders",
    does: "lists an organization's orders of tags, newest first",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context: { db } }) => {
        const { id } = await requireOrganization(db.read, values.required("organization"))
        const orders = (await listOrders(db.read, id)).map((order) => ({
          ...presentOrder(order),
          url: order.url_template,
          created_at: order.created_at.toISOString(),
        }))
        return {
          document: { orders },
          text: table(orders, {
            ID: "id",
            "KEY SET": "key_set_id",
            VERSION: "version",
            CHIPS: "chips",
            URL: "url",
            CREATED: "created_at",
          }),
        }
      },
  },
  {
    name: "chips manifest",
    does: "writes the manifest of an order again, as when its folder was lost",
    takes: "ORDER --out DIR [--seal-to PUBLIC_KEY_FILE]",
    argument: "ORDER",
    about: "The chips and keys are those of the order. chips orders lists the orders.",
    options: { out: true, "seal-to": false },
    plan(values) {
      const recipients = recipientsOf(values)
      return async ({ context }) => {
        const order = await requireOrder(context.db.read, values.argument)
        const registered = await countRegistered(context.db.read, order.id)
        if (registered < order.size)
          throw new OperatorRefusal(
            "order.incomplete",
            `only ${registered} of the ${order.size} chips of the order are registered, because chips encode was interrupted: run that again where its folder is, or place another order`,
          )
        const folder = values.required("out")
        const path = pathIn(folder, recipients)
        if (existsSync(path) || existsSync(orderFile(folder)))
          throw new UsageError(`${folder} has the manifest of an order: name another folder with --out`)
        mkdirSync(folder, { recursive: true })
        await writeManifest(path, linesOf(context, order), recipients)
        return {
          document: { ...presentOrder(order), manifest: path },
          text: `${path} has ${counted(order.size, "chip", "chips")}`,
        }
      }
    },
  },
]

function presentOrder({ id, organization_id, key_set_id, key_version, size }: ManifestRow) {
  return { id, organization_id, key_set_id, version: key_version, chips: size }
}

function pathIn(folder: string, recipients: string[]): string {
  return join(folder, recipients.length === 0 ? manifestName : sealedName)
}

function tagsOf(values: Values): { count: number } | { named: NamedTag[] } {
  const count = wholeNumber(values, "count", 1)
  const file = values.option("uids")
  if (file !== null && count === null) return { named: parseTags(readFileSync(file, "utf8")) }
  if (count !== null && file === null) return { count }
  throw new UsageError("chips encode takes either --count or --uids")
}

function recipientsOf(values: Values): string[] {
  const file = values.option("seal-to")
  return file === null ? [] : parseRecipients(readFileSync(file, "utf8"))
}

/**
 * The id of a folder's order. It is drawn and written down before anything is registered, so that the same command
 * continues the same order, wherever it was interrupted.
 */
function orderIdOf(folder: string, order: object): string {
  mkdirSync(folder, { recursive: true })
  const path = orderFile(folder)
  const digest = createHash("sha256").update(JSON.stringify(order)).digest("hex")
  if (existsSync(path)) {
    const known = JSON.parse(readFileSync(path, "utf8")) as { id: string; digest: string }
    if (known.digest === digest) return known.id
    throw new UsageError(`${folder} has the manifest of another order: name another folder with --out`)
  }
  const id = newId()
  writeWholeAtOnce(path, `${JSON.stringify({ id, digest })}\n`)
  return id
}

/**
 * Refuses to overwrite a manifest whose chips the database has forgotten: it may be the only record of the tags made.
 * A manifest is written once all its chips are registered.
 */
async function requireKnownManifest(
  { db }: Context,
  folder: string,
  id: string,
  size: number,
): Promise<void> {
  const isThere = [manifestName, sealedName].some((name) => existsSync(join(folder, name)))
  if (isThere && (await countRegistered(db.read, id)) < size)
    throw new UsageError(
      `${folder} has a manifest whose order the database does not know, or not completely, as after a backup was restored: keep it, and name another folder with --out`,
    )
}

const manifestName = "manifest.jsonl"
const sealedName = "manifest.jsonl.age"

/** Another folder would get an order of its own, with as many chips again. */
function unwritten(size: number, folder: string, { message }: Error): OperatorRefusal {
  const chips = counted(size, "chip is", "chips are")
  return new OperatorRefusal(
    "file",
    `${chips} registered, but the manifest cannot be written: ${message}. Mend that and run the same command again, which registers no more; to write it elsewhere, move ${orderFile(folder)} there first`,
  )
}

/** A refused order leaves its folder free for the next one. */
function forgetOrder(folder: string): void {
  rmSync(orderFile(folder), { force: true })
}

function orderFile(folder: string): string {
  return join(folder, "order.json")
}
