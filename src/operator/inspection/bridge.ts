import { createHash } from "node:crypto"
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

/** The feed repeats everything on each connection; what the inspector has already seen is not passed on again. */
const scriptText = `const inspector = "https://stately.ai"
const told = new Map()
let target = null
let isReady = false

addEventListener("message", ({ source, origin, data }) => {
  if (source !== target || origin !== inspector || data?.type !== "@statelyai.connected") return
  isReady = true
  for (const message of told.values()) target.postMessage(message, inspector)
})

document.getElementById("open").addEventListener("click", () => {
  isReady = false
  target = open(inspector + "/inspect", "xstateinspector")
})

function connect() {
  const feed = new WebSocket("ws://" + location.host + "/feed")
  feed.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (told.has(message.id)) return
    told.set(message.id, message)
    say(told.size + " messages so far")
    if (isReady) target.postMessage(message, inspector)
  }
  feed.onclose = () => {
    say("The feed is not there; connecting again …")
    setTimeout(connect, 1000)
  }
}

function say(text) {
  document.getElementById("status").textContent = text
}

connect()
`
