import type { PublicCollection, PublicToken } from "./service.ts"

/** What `tokenURI` of a token leads to (ERC-721). */
export type TokenDocument = {
  name: string
  description: string | null
  image: string
  external_url: string
  attributes: { trait_type: string; value: string | number | boolean }[]
}

/** What `contractURI` of a collection leads to (ERC-7572). */
export type CollectionDocument = {
  name: string
  description: string | null
  image: string
  external_link: string
}

/** The document of a token, whose own addresses begin with `base`. */
export function presentToken(base: string, token: PublicToken): TokenDocument {
  const place = `${placeOf(base, token.collection)}/${token.serial}`
  return {
    name: titleOf(token),
    description: token.description,
    image: token.image_url ?? `${place}/image.svg`,
    external_url: `${place}/page`,
    attributes: traitsOf(token),
  }
}

export function presentCollectionDocument(base: string, collection: PublicCollection): CollectionDocument {
  const place = placeOf(base, collection)
  return {
    name: collection.name,
    description: collection.description,
    image: collection.image_url ?? `${place}/image.svg`,
    external_link: `${place}/page`,
  }
}

/** What a token is called where its unit has no name. */
export function titleOf({ name, collection, serial }: PublicToken): string {
  return name ?? `${collection.name} #${serial}`
}

/** In the order of the names: the databases keep none of their own. */
function traitsOf({ metadata }: PublicToken): TokenDocument["attributes"] {
  return Object.entries(metadata ?? {})
    .map(([trait_type, value]) => ({ trait_type, value }))
    .sort((one, other) => (one.trait_type < other.trait_type ? -1 : 1))
}

/** As the contract forms it: decimal numbers, the address in lower case. */
function placeOf(base: string, { chain_id, address }: PublicCollection): string {
  return `${base}/${chain_id}/${address.toLowerCase()}`
}
