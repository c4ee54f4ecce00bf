import type { PublicCollection, PublicToken } from "./service.ts"

/** The document that a token's `tokenURI` returns (ERC-721). */
export type TokenDocument = {
  name: string
  description: string | null
  image: string
  external_url: string
  attributes: { trait_type: string; value: string | number | boolean }[]
}

/** The document that a collection's `contractURI` returns (ERC-7572). */
export type CollectionDocument = {
  name: string
  description: string | null
  image: string
  external_link: string
}

/** Returns a token's document, whose URLs of this service begin with `base`. */
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

/** Returns a token's name, even if its unit has none. */
export function titleOf({ name, collection, serial }: PublicToken): string {
  return name ?? `${collection.name} #${serial}`
}

/** Sorts the attributes by name, since the databases do not keep their order. */
function traitsOf({ metadata }: PublicToken): TokenDocument["attributes"] {
  return Object.entries(metadata ?? {})
    .map(([trait_type, value]) => ({ trait_type, value }))
    .sort((one, other) => (one.trait_type < other.trait_type ? -1 : 1))
}

/** Returns the URL as the contract writes it: decimal numbers, and the address in lower case. */
function placeOf(base: string, { chain_id, address }: PublicCollection): string {
  return `${base}/${chain_id}/${address.toLowerCase()}`
}
