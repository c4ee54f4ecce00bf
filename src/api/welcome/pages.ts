import type { PageAnswer } from "../../http/page.ts"
import { html, type Markup, webPage } from "../../platform/html.ts"

/** What a browser gets where a program gets the JSON of `getWelcome`. */
export const welcomePage: PageAnswer = {
  status: 200,
  ...cardPage(
    "Chip Verification and Ownership API",
    html`<p>A brand puts a chip into each product. Whoever taps it with a phone learns that the product is genuine, and can become its
owner, on chain.</p>
<ol>
<li><a href="/docs">Quick start</a>: from a collection to a first tap and a claim, in a minute</li>
<li><a href="/docs/real-chips">Real chips</a>: from ordering tags to the first tap of a product</li>
<li><a href="/docs/events">Events and webhooks</a>: be notified of what happens</li>
<li><a href="/docs/going-live">Going live</a>: what to do before people tap</li>
</ol>
<p><a class="button" href="/docs">Read the documentation</a></p>
<p class="quiet">For programs: <a href="/openapi.json">OpenAPI document</a>, <a href="/llms.txt">llms.txt</a>,
<a href="/health">health</a>. This URL returns JSON unless HTML is asked for.</p>`,
  ),
}

/** What a browser gets at an unknown address. */
export const nothingHere: PageAnswer = {
  status: 404,
  ...cardPage(
    "There is nothing at this URL",
    html`<p>The URL may be mistyped, or the page has moved.</p>
<p><a class="button" href="/docs">Open the documentation</a></p>`,
  ),
}

function cardPage(title: string, content: Markup): Omit<PageAnswer, "status"> {
  const page = webPage({
    title,
    head: html`<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/style.css">`,
    body: html`<main class="card">
<h1>${title}</h1>
${content}
</main>`,
  })
  const headers = {
    vary: "Accept, Origin",
    "content-security-policy":
      "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  }
  return { headers, body: page }
}
