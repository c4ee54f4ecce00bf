import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { counted } from "../../platform/counted.ts"
import { exportedCollection, exportedTokens } from "../../resources/metadata/export.ts"
import { drawCollection, drawToken } from "../../resources/metadata/picture.ts"
import {
  type CollectionDocument,
  presentCollectionDocument,
  presentToken,
  type TokenDocument,
} from "../../resources/metadata/present.ts"
import type { PublicCollection, PublicToken } from "../../resources/metadata/service.ts"
import { type Command, UsageError } from "./command.ts"

export const exportMetadata: Command = {
  name: "metadata export",
  does: "writes the metadata of a collection's tokens as files",
  takes: "--collection ID --out DIR [--base URL]",
  about: `For IPFS or a web host: DIR/CHAIN_ID/ADDRESS/SERIAL is a token's document, SERIAL.svg beside it its picture if the unit
has none, and DIR/CHAIN_ID/ADDRESS.json the collection's document. contractURI points to the folder DIR/CHAIN_ID/ADDRESS,
for which gateways and web hosts serve its index.html: the collection's document again. If it is interrupted, run it again.

With --base, documents link to pictures under that URL, such as ipfs://…, and have no links to pages of this service;
without it, they link to both at this service. On IPFS the address of a folder depends on its content, so it takes two
exports: store the first one, then export again with its address as --base, and store the second one.

A factory has one metadata base for the collections of all brands. Export every collection of all organizations into the
same DIR before "chain call set-metadata-base" and "freeze-metadata-base": tokens that are not in that folder, such as
those issued later, have no metadata from then on, and never will once the base is frozen.`,
  options: { collection: true, out: true, base: false },
  plan(values) {
    const base = values.option("base")
    if (base !== null && !/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(base))
      throw new UsageError(`metadata export takes a URL such as ipfs://… as --base, not "${base}"`)
    return async ({ context: { db, config } }) => {
      const id = values.required("collection")
      const found = await exportedCollection(db.read, id)
      const { chain_id, address } = found.collection
      const place = `${chain_id}/${address.toLowerCase()}`
      const folder = join(values.required("out"), place)
      const pictures = base === null ? null : `${base.replace(/\/+$/, "")}/${place}`
      const { metadata_base_url } = config
      const destination: Destination = { folder, pictures, metadata_base_url }
      const tokens = await readableByAll(async () => {
        mkdirSync(folder, { recursive: true })
        let written = 0
        for await (const token of exportedTokens(db.read, id, found)) {
          writeToken(destination, token)
          written++
        }
        writeCollection(destination, found.collection)
        return written
      })
      return {
        document: { tokens, folder },
        text: `the metadata of ${counted(tokens, "token", "tokens")} is in ${folder}`,
      }
    }
  },
}

/** Unlike all else that operators write, these files are for the public, such as a web server of another user. */
async function readableByAll<T>(write: () => Promise<T>): Promise<T> {
  const before = process.umask(0o022)
  return await write().finally(() => process.umask(before))
}

type Destination = {
  folder: string
  /** Below which address pictures are named; null where they are this service's. */
  pictures: string | null
  metadata_base_url: string
}

function writeToken({ folder, pictures, metadata_base_url }: Destination, token: PublicToken): void {
  const { serial, image_url } = token
  const document = presentToken(metadata_base_url, token)
  if (image_url === null) {
    writeFileSync(join(folder, `${serial}.svg`), drawToken(token))
    if (pictures) document.image = `${pictures}/${serial}.svg`
  }
  writeFileSync(join(folder, `${serial}`), fileOf(document, pictures))
}

function writeCollection(
  { folder, pictures, metadata_base_url }: Destination,
  collection: PublicCollection,
): void {
  const document = presentCollectionDocument(metadata_base_url, collection)
  if (collection.image_url === null) {
    writeFileSync(`${folder}.svg`, drawCollection(collection))
    if (pictures) document.image = `${pictures}.svg`
  }
  for (const file of [`${folder}.json`, join(folder, "index.html")])
    writeFileSync(file, fileOf(document, pictures))
}

/** With pictures elsewhere, links to this service's pages are left out, because the files may outlive it. */
function fileOf(document: TokenDocument | CollectionDocument, pictures: string | null): string {
  const pages = { external_url: undefined, external_link: undefined }
  return JSON.stringify(pictures === null ? document : { ...document, ...pages })
}
