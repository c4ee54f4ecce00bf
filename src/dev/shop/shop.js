// A shop's page. The tap's URL brings the chip's id and one-time value; the publishable key is the only credential
// that stands in the page, and the session token that the tap answers does the rest.

const settings = await (await fetch("/settings.json")).json()
const address = new URLSearchParams(location.search)
let session = null

for (const wallet of settings.wallets) element("wallets").append(new Option(wallet))
element("claim").addEventListener("submit", claim)
await tap()

async function tap() {
  const chip_id = address.get("service_chip_id")
  const e = address.get("service_e")
  const c = address.get("service_c")
  if (!chip_id || !e) return say("status", "Tap the chip in your jacket to see it here.")
  const tapped = await ask("POST", "/v1/taps", settings.publishable_key, { chip_id, e, ...(c && { c }) })
  if (tapped.error) return say("status", refusalText(tapped.error))
  session = tapped.session_token
  const { contract, token } = tapped.unit.collection
  say("status", "This jacket is genuine.")
  say("unit-name", tapped.unit.name ?? "A jacket without a name")
  say("serial", token.serial ?? "being issued")
  say("contract", `${contract.address} on chain ${contract.chain_id}`)
  say("chip", tapped.chip.chip_id)
  say("scan-count", tapped.chip.scan_count)
  element("unit").hidden = false
}

async function claim(event) {
  event.preventDefault()
  const path = `/v1/units/${session.scope.unit_id}/claims`
  const recipient = element("recipient").value.trim()
  let claimed = await ask("POST", path, session.token, { recipient })
  while (claimed.status === "claiming") {
    say("claim-status", "Claiming it …")
    await new Promise((resolve) => setTimeout(resolve, 500))
    claimed = await ask("GET", `${path}/${claimed.id}`, session.token)
  }
  if (claimed.error) return say("claim-status", refusalText(claimed.error))
  say(
    "claim-status",
    claimed.status === "claimed" ? `It is yours: ${claimed.recipient}` : `It ${claimed.status}.`,
  )
}

/** The answer's body; what never arrived looks like an error, too. */
async function ask(method, path, token, body) {
  try {
    const response = await fetch(settings.api_base_url + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body && { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    say("request-id", response.headers.get("X-Request-Id") ?? "unreadable")
    say("remaining", response.headers.get("X-RateLimit-Remaining") ?? "unreadable")
    return await response.json()
  } catch {
    return {
      error: { code: "browser.refused", message: "The browser may not read the service from this page." },
    }
  }
}

function refusalText({ code, message }) {
  return `${message} (${code})`
}

function say(id, text) {
  element(id).textContent = text
}

function element(id) {
  return document.getElementById(id)
}
