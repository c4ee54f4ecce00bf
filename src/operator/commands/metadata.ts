import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { exportedCollection, exportedTokens } from "../../resources/metadata/export.ts"
import { drawCollection, drawToken } from "../../resources/metadata/picture.ts"
import { presentCollectionDocument, presentToken } from "../../resources/metadata/present.ts"
import { type Command, UsageError } from "./command.ts"

export const metadataCommand: Command = {
  name: "metadata export",
  does: "writes what the tokens of a collection show as files",
  takes: "--collection ID --out DIR [--base URL]",
  about: `For a store that keeps files by their content: DIR/CHAIN_ID/ADDRESS/SERIAL holds what the service answers for a token,
DIR/CHAIN_ID/ADDRESS.json the collection's document, and SERIAL.svg beside a token the picture of one that has none. With --base pictures are named where the
folder will be, such as ipfs://…; without it, at this service. Cut short, run it again.`,
  options: { collection: true, out: true, base: false },
  plan(values) {
    const base = values.option("base")
    if (base !== null && !/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(base))
      throw new UsageError(`metadata export takes an address such as ipfs://… as --base, not "${base}"`)
    return async ({ context: { db, config } }) => {
      const id = values.required("collection")
      const found = await exportedCollection(db.read, id)
      const { chain_id, address } = found.collection
      const place = `${chain_id}/${address.toLowerCase()}`
      const folder = join(values.required("out"), place)
      const pictures = base === null ? null : `${base.replace(/\/+$/, "")}/${place}`
      mkdirSync(folder, { recursive: true })

      let tokens = 0
      for await (const token of exportedTokens(db.read, id, found)) {
        const { serial, image_url } = token
        const document = presentToken(config.metadata_base_url, token)
        if (image_url === null) {
          writeFileSync(join(folder, `${serial}.svg`), drawToken(token))
          if (pictures) document.image = `${pictures}/${serial}.svg`
        }
        writeFileSync(join(folder, `${serial}`), JSON.stringify(document))
        tokens++
      }
      const document = presentCollectionDocument(config.metadata_base_url, found.collection)
      if (found.collection.image_url === null) {
        writeFileSync(`${folder}.svg`, drawCollection(found.collection))
        if (pictures) document.image = `${pictures}.svg`
      }
      writeFileSync(`${folder}.json`, JSON.stringify(document))
      return { document: { tokens, folder }, text: `what ${tokens} tokens show is in ${folder}` }
    }
  },
}
