import * as examples from "../openapi/examples.ts"
import { type Html, html } from "./html.ts"

/** From nothing to a claimed unit with `curl` alone. A test runs these commands as they stand. */
export function gettingStarted(api_base_url: string): Html {
  return html`<h2 id="getting-started">Getting started</h2>
<p>You need an API key, which the operator of the service gives you. A development service,
<code>bun run dev</code>, prints one when it starts and keeps it in <code>data/dev.json</code>. The commands below are
for bash; run them in one terminal, in order.</p>
${steps(api_base_url).map(
  ({ title, why, commands }, index) => html`<h3>${index + 1}. ${title}</h3>
<p>${why}</p>
<pre tabindex="0"><code class="run">${commands}</code></pre>
`,
)}
<p>That is the whole way. In production the tap comes from a chip: its URL carries <code>service_chip_id</code> and
<code>service_e</code> to your page, which sends them with a publishable key, straight from the browser. See
<a href="/docs/operations/createTap">createTap</a> and
<a href="/docs/operations/replaceCorsOrigins">replaceCorsOrigins</a>.</p>`
}

/** What a reader puts in place of this is the API key. */
export const keyToFillIn = "end_sk_…"

type Step = { title: string; why: string; commands: string }

function steps(api_base_url: string): Step[] {
  return [
    {
      title: "Say where the service is and who you are",
      why: "Two short functions save typing: one asks the service, the other takes a field out of an answer.",
      commands: `API=${api_base_url}
KEY=${keyToFillIn}
ask() { curl -sS "$API$1" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "\${@:2}"; }
field() { grep -o "\\"$1\\":\\"[^\\"]*\\"" | head -n 1 | cut -d '"' -f 4; }`,
    },
    {
      title: "Create a collection",
      why: "Its contract is deployed in the background; a few seconds later it is active.",
      commands: `COLLECTION=$(ask /v1/collections -d '{"name":"Autumn Jackets"}' | field id)
until ask /v1/collections/$COLLECTION | grep '"status":"active"'; do sleep 1; done`,
    },
    {
      title: "Create a unit of it",
      why: "A unit is one item. It is issued as a token as soon as it has a chip.",
      commands: `UNIT=$(ask /v1/units -d '{"collection_id":"'$COLLECTION'","name":"Jacket 1"}' | field id)
echo $UNIT`,
    },
    {
      title: "Pair a chip to it",
      why: "A test chip needs no hardware and goes through the same verification. Wait until the unit is issued.",
      commands: `CHIP=$(ask /v1/chips -d '{"unit_id":"'$UNIT'","is_test":true}' | field chip_id)
until ask /v1/units/$UNIT | grep '"token":{"status":"active"'; do sleep 1; done`,
    },
    {
      title: "Tap the chip",
      why: "The test chip emits a one-time value, as a scan would; sending it to the service is the tap. The answer carries a session token.",
      commands: `E=$(ask /v1/test-helpers/taps -d '{"chip_id":"'$CHIP'"}' | field e)
SESSION=$(ask /v1/taps -d '{"chip_id":"'$CHIP'","e":"'$E'"}' | grep -o 'end_sess_[0-9A-Za-z]*')
echo $SESSION`,
    },
    {
      title: "Claim the unit",
      why: "With the session token in place of the API key: who tapped hands the unit to a wallet. The service sends the transaction.",
      commands: `CLAIM=$(KEY=$SESSION ask /v1/units/$UNIT/claims -d '{"recipient":"${examples.createClaim.recipient}"}' | field id)`,
    },
    {
      title: "Poll the claim",
      why: "It is claimed once the chain says so at the confirmation depth.",
      commands: `until ask /v1/units/$UNIT/claims/$CLAIM | grep '"status":"claimed"'; do sleep 1; done`,
    },
  ]
}
