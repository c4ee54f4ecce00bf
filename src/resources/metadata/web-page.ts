import { createHash } from "node:crypto"
import { html, type Markup, trusted, webPage } from "../../platform/html.ts"
import { look } from "../../platform/look/look.ts"
import type { CollectionDocument, TokenDocument } from "./present.ts"
import type { PublicToken } from "./service.ts"

/** Returns a token's page for people: its image, what it is and what its brand says about it. */
export function tokenPage(
  { name, description, image, attributes }: TokenDocument,
  token: PublicToken,
): string {
  const { collection, serial } = token
  const about = html`<p class="quiet"><bdi>${collection.name}</bdi>, number ${serial} · <code>${collection.address}</code> on chain ${collection.chain_id}</p>`
  const traits = attributes.map(
    ({ trait_type, value }) => html`<dt dir="auto">${trait_type}</dt><dd dir="auto">${String(value)}</dd>`,
  )
  return card({ name, description, image }, html`${about}${traits.length > 0 && html`<dl>${traits}</dl>`}`)
}

export function collectionPage({ name, description, image }: CollectionDocument): string {
  return card({ name, description, image }, html``)
}

type Head = { name: string; description: string | null; image: string }

function card({ name, description, image }: Head, rest: Markup): string {
  return webPage({
    title: name,
    head: html`<meta name="robots" content="noindex">
<style>${trusted(style)}</style>`,
    body: html`<main class="card">
<img src="${image}" alt="" width="320" height="320">
<h1 dir="auto">${name}</h1>
${description && html`<p class="words" dir="auto">${description}</p>`}
${rest}
</main>`,
  })
}

const style = `${look}
img { max-width: 100%; height: auto; border-radius: 12px; }
.words { white-space: pre-line; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 1rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
`

const styleHash = createHash("sha256").update(style).digest("base64")

/** Allows no scripts, and images from anywhere, since a brand may host them where it likes. */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${styleHash}'; font-src 'self'; img-src https: http://localhost:* http://127.0.0.1:* 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
