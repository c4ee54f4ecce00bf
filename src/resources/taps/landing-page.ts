import { createHash } from "node:crypto"
import type { PageAnswer } from "../../http/page.ts"
import { html, trusted, webPage } from "../../platform/html.ts"
import { look } from "../../platform/look/look.ts"

const page = webPage({
  title: "Nothing is set up for this tag yet",
  head: html`<meta name="robots" content="noindex">
<style>${trusted(look)}</style>`,
  body: html`<main class="card">
<h1>Nothing is set up for this tag yet</h1>
<p>Your phone read the tag, but no page has been chosen for it.</p>
<p class="quiet">If you bought something with this tag, please ask the brand. Opening this page has not used up the tag: you can tap it again at any time.</p>
</main>`,
})

const styleHash = createHash("sha256").update(look).digest("base64")

/** The page for a tap without a redirect; the same if the chip does not exist. */
export const landingPage = {
  status: 200,
  headers: {
    "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  },
  body: page,
} satisfies PageAnswer
