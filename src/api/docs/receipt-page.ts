import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { PublicReceiptJwk } from "../../db/receipt-key-schema.ts"
import { html, type Markup } from "../../platform/html.ts"

/** A form whose script checks a receipt with these keys, in the browser. */
export function receiptForm(keys: readonly PublicReceiptJwk[]): Markup {
  return html`<section><div class="words"><h1>Verify a tap receipt</h1>
<p>The receipt is verified here in your browser, with the keys below. Nothing is sent, and the service need not be reachable.</p>
<form id="verify-receipt" class="check">
<label for="receipt">Receipt</label>
<textarea id="receipt" rows="6" required spellcheck="false" autocomplete="off"></textarea>
<label for="chip">Chip id (optional), to check that the receipt is about that chip</label>
<input id="chip" pattern="[0-9A-Fa-f]{10}" maxlength="10" autocomplete="off" spellcheck="false">
<details><summary>Keys of this service, or your own copy of /.well-known/jwks.json</summary>
<label for="keys">JWKS</label>
<textarea id="keys" rows="8" spellcheck="false" autocomplete="off">${JSON.stringify({ keys }, null, 2)}</textarea></details>
<button type="submit">Verify</button>
</form>
<p id="verdict" role="status"></p>
<dl id="claims"></dl>
<noscript><p>This page needs JavaScript. The guide shows other ways to verify a receipt.</p></noscript>
<p>What the fields mean: <a href="/docs/receipts">Tap receipts</a>.</p>
</div></section>
<script type="module" src="/docs/verify-receipt.js"></script>`
}

const verifier = join(import.meta.dir, "../../../clients/verify-receipt/verify-receipt.ts")

/** The one-file verifier, compiled for browsers. */
export function receiptVerifier(): string {
  return new Bun.Transpiler({ loader: "ts", target: "browser" }).transformSync(readFileSync(verifier, "utf8"))
}
