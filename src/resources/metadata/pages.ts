import { cachedAnswer } from "../../http/cached.ts"
import type { Page, PageAnswer } from "../../http/page.ts"
import type { Context } from "../../platform/context.ts"
import { drawCollection, drawToken } from "./picture.ts"
import { presentCollectionDocument, presentToken } from "./present.ts"
import {
  type PublicCollection,
  type PublicToken,
  publicCollection,
  publicToken,
  type TokenAddress,
} from "./service.ts"
import { collectionPage, pagePolicy, tokenPage } from "./web-page.ts"

/** What tokens and contracts link to: documents, images, and pages for people. */
export const metadataPages: readonly Page[] = [
  ofCollection("", (base, collection) => json(presentCollectionDocument(base, collection))),
  ofCollection("/image.svg", (_base, collection) => svg(drawCollection(collection))),
  ofCollection("/page", (base, collection) =>
    page(collectionPage(presentCollectionDocument(base, collection))),
  ),
  ofToken("", (base, token) => json(presentToken(base, token))),
  ofToken("/image.svg", (_base, token) => svg(drawToken(token))),
  ofToken("/page", (base, token) => page(tokenPage(presentToken(base, token), token))),
]

type Shown = { content: string; type: string; policy: string }

function ofCollection(what: string, show: (base: string, collection: PublicCollection) => Shown): Page {
  return publicPage(`/metadata/{chain_id}/{address}${what}`, async ({ db, config }, asked) =>
    show(config.metadata_base_url, await publicCollection(db.read, asked)),
  )
}

function ofToken(what: string, show: (base: string, token: PublicToken) => Shown): Page {
  return publicPage(`/metadata/{chain_id}/{address}/{serial}${what}`, async ({ db, config }, asked) =>
    show(config.metadata_base_url, await publicToken(db.read, asked)),
  )
}

function publicPage(path: string, show: (context: Context, asked: TokenAddress) => Promise<Shown>): Page {
  return {
    path,
    bucket: "metadata",
    is_readable_from_anywhere: true,
    async open(context, { params, if_none_match }): Promise<PageAnswer> {
      const { chain_id = "", address = "", serial = "" } = params
      const { policy, ...held } = await show(context, { chain_id, address, serial })
      return cachedAnswer({ ...held, if_none_match }, policy)
    },
  }
}

function json(document: object): Shown {
  return {
    content: JSON.stringify(document),
    type: "application/json",
    policy: "default-src 'none'; frame-ancestors 'none'",
  }
}

/** Serves an image, which may use nothing else when opened by itself. */
function svg(content: string): Shown {
  return {
    content,
    type: "image/svg+xml; charset=utf-8",
    policy: "default-src 'none'",
  }
}

function page(content: string): Shown {
  return { content, type: "text/html; charset=utf-8", policy: pagePolicy }
}
