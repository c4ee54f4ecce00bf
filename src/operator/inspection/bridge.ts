import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { html, trusted, webPage } from "../../platform/html.ts"
import { look } from "../../platform/look/look.ts"

const styleHash = createHash("sha256").update(look).digest("base64")

/**
 * A page that shows the feed in the Stately inspector once a person opens it; until then nothing leaves the machine.
 */
export function bridgePage(): Response {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'sha256-${styleHash}'; font-src 'self'; connect-src 'self' ws:; frame-ancestors 'none'; base-uri 'none'`,
    "cache-control": "no-store",
  }
  return new Response(pageText, { headers })
}

export function bridgeScript(): Response {
  return new Response(scriptText, { headers: { "content-type": "text/javascript; charset=utf-8" } })
}

const scriptText = readFileSync(new URL("bridge.js", import.meta.url), "utf8")

const pageText = webPage({
  title: "Inspection",
  head: html`<style>${trusted(look)}</style>`,
  body: html`<main class="card">
<h1>Running actors in the Stately inspector</h1>
<p>The button opens https://stately.ai/inspect in a window of its own and hands this feed to it, in your browser.
Wallets and authorizations are not in the feed. Before you press it, nothing leaves this machine.</p>
<p><button id="open">Open the inspector</button></p>
<p class="quiet" role="status" id="status">Connecting to the feed …</p>
</main>
<script type="module" src="/bridge.js"></script>`,
})
