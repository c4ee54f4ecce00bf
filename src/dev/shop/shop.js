// A shop's page. The tap's URL brings the chip's id and one-time value; the publishable key is the only credential
// that stands in the page, and the session token that the tap answers does the rest.

import { createService } from "/service.js"
import { offerWallets, sendTransaction } from "/wallets.js"
import { words } from "/words.js"

const settings = await (await fetch("/settings.json")).json()
const service = createService(settings.api_base_url, note)
const address = new URLSearchParams(location.search)
/** What this page knows of its tap: `tapped`, the `owner`, and a claim or transfer that is on its way. */
let known = {}
let wallet = null

for (const form of ["claim", "transfer"]) element(form).addEventListener("submit", submitted)
for (const link of document.querySelectorAll("#taps a"))
  link.addEventListener("click", () => proof("Tapping. A new jacket takes a few seconds …", "busy"))
for (const friend of settings.wallets) {
  const option = document.createElement("option")
  option.value = friend
  element("friends").append(option)
}
offerWallets(document.querySelectorAll(".wallets"), connected)
await open()

/** A tap's value works once, so a page that is loaded again goes on with what it knew. */
async function open() {
  const chip_id = address.get("service_chip_id")
  const e = address.get("service_e")
  const c = address.get("service_c")
  const enc = address.get("service_enc")
  if (!chip_id || !e) return proof("Hold your phone to the tag in your jacket to see it here.")
  known = JSON.parse(sessionStorage.getItem(e) ?? "{}")
  if (!known.tapped) {
    const tapped = await service.ask("POST", "/v1/taps", settings.publishable_key, {
      chip_id,
      e,
      ...(c && { c }),
      ...(enc && { enc }),
      receipt: true,
    })
    if (tapped.error) return refused(tapped.error)
    remember({ tapped, owner: tapped.unit.ownership.owner })
  }
  showUnit(known.tapped)
  showOwner()
  if (known.underway) await follow(known.underway)
}

function remember(more) {
  known = { ...known, ...more }
  sessionStorage.setItem(address.get("service_e"), JSON.stringify(known))
}

function refused(error) {
  const isSuspect = ["chip.invalid_e_value", "chip.not_found"].includes(error.code)
  if (isSuspect) {
    say("unit-name", "Not verified")
    element("picture").classList.add("unknown")
  }
  proof(wordsFor(error), isSuspect ? "no" : "")
}

function showUnit({ unit, chip, receipt }) {
  const { contract, token } = unit.collection
  proof("✓ This jacket is genuine.", "yes")
  say("unit-name", unit.name ?? "A jacket without a name")
  if (unit.image_url) showPicture(unit.image_url, unit.name ?? "The jacket")
  say("serial", token.serial ?? "being issued")
  say("contract", `${contract.address} on chain ${contract.chain_id}`)
  say("chip", chip.chip_id)
  say("scan-count", chip.scan_count)
  element("receipt").href = `${settings.docs_url}/verify-receipt#receipt=${receipt}`
  element("unit").hidden = false
}

/** The picture that its brand has set; where it cannot be had, the shop's own stays. */
function showPicture(src, alt) {
  const picture = new Image()
  picture.addEventListener("load", () => Object.assign(element("picture"), { src, alt }))
  picture.src = src
}

/** Who owns the jacket decides what can be done with it. */
function showOwner() {
  const { owner, tapped } = known
  if (tapped.unit.ownership.status === "unissued") return outcome(words["unit.issuance_pending"])
  const isMine = owner !== null && (isSame(owner, wallet?.account) || isSame(owner, known.recipient))
  say("ownership", isMine ? `It is yours, ${short(owner)}.` : `It has an owner: ${short(owner ?? "")}.`)
  say("owner", owner ?? "nobody yet")
  element("ownership").hidden = owner === null
  element("claim").hidden = owner !== null
  element("hand-on").hidden = owner === null
}

function connected(chosen) {
  if (!chosen) return outcome("The wallet did not connect. You can paste an address instead.")
  wallet = chosen
  element("recipient").value = chosen.account
  complain(element("recipient"), "")
  outcome(`${chosen.name} is connected: ${short(chosen.account)}.`)
  showOwner()
}

async function submitted(event) {
  event.preventDefault()
  const button = event.target.querySelector("[type=submit]")
  const isClaim = event.target.id === "claim"
  const input = element(isClaim ? "recipient" : "friend")
  complain(input, "")
  button.disabled = true
  await (isClaim ? claim(input) : transfer(input))
  button.disabled = false
}

async function claim(input) {
  outcome("Claiming it. This takes a few seconds …", "busy")
  await create("claims", input)
}

async function transfer(input) {
  if (!isSame(wallet?.account, known.owner)) return outcome("Connect the wallet that owns the jacket first.")
  outcome("Your wallet asks you to confirm …", "busy")
  await create("transfers", input)
}

async function create(kind, input) {
  const { session_token } = known.tapped
  const path = `/v1/units/${session_token.scope.unit_id}/${kind}`
  const made = await service.ask("POST", path, session_token.token, { recipient: input.value.trim() })
  if (made.error?.details?.fieldErrors?.recipient) {
    outcome("")
    return complain(
      input,
      "This is not a wallet address: 0x and 40 digits or letters from a to f. Please copy it again.",
    )
  }
  if (made.error) return outcome(wordsFor(made.error))
  if (made.transaction)
    try {
      await sendTransaction(wallet.provider, made.transaction, settings.chain)
    } catch {
      return outcome("Your wallet did not send it. Nothing has changed.")
    }
  await follow({ path: `${path}/${made.id}`, status: made.status })
}

/** Reads a claim or transfer until it is neither on its way nor unknown. */
async function follow(underway) {
  remember({ underway })
  outcome("On its way to the chain. This takes a few seconds …", "busy")
  const ended = await service.readUntilOther(underway, known.tapped.session_token.token)
  if (ended.error) return outcome(wordsFor(ended.error))
  remember({ underway: null })
  if (!["claimed", "confirmed"].includes(ended.status))
    return outcome("It did not succeed, and nothing has changed. Please tap and try again.")
  const isClaim = ended.status === "claimed"
  remember({ owner: ended.recipient, recipient: isClaim ? ended.recipient : known.recipient })
  say("transaction", ended.transaction_hash)
  outcome(
    isClaim
      ? "Recorded on the chain, where anyone can check it."
      : `Handed on: it now belongs to ${short(ended.recipient)}.`,
  )
  element("hand-on").open = false
  showOwner()
}

function wordsFor({ code }) {
  say("code", code)
  return words[code] ?? "Something went wrong. Please try again."
}

function complain(input, text) {
  input.ariaInvalid = text ? "true" : null
  say(`${input.id}-wrong`, text)
  if (text) input.focus()
}

function proof(text, kind = "") {
  say("status", text)
  element("status").dataset.kind = kind
}

function outcome(text, kind = "") {
  say("outcome", text)
  element("outcome").dataset.kind = kind
}

/** What the service said beside its answer, for whoever asks why. */
function note(headers) {
  say("request-id", headers.get("X-Request-Id") ?? "unreadable")
  say("remaining", headers.get("X-RateLimit-Remaining") ?? "unreadable")
}

function isSame(one, other) {
  return one?.toLowerCase() === other?.toLowerCase()
}

/** Word joiners keep it on one line. */
function short(account) {
  return `${account.slice(0, 6)}\u2060…\u2060${account.slice(-4)}`
}

function say(id, text) {
  element(id).textContent = text
}

function element(id) {
  return document.getElementById(id)
}
