// Checks a receipt in this browser, with the keys that came with the page or that you kept: nothing is sent anywhere.
import { isOfChip, ReceiptInvalid, verifyReceipt } from "./receipt-verifier.js"

const form = document.querySelector("#verify-receipt")
const [receipt, chip, keys] = ["receipt", "chip", "keys"].map((id) => document.getElementById(id))
const verdict = document.querySelector("#verdict")
const claims = document.querySelector("#claims")

form.addEventListener("submit", (event) => {
  event.preventDefault()
  show()
})

showHanded()
// Another such link opened here changes only what is behind the #, and the page is not loaded again.
addEventListener("hashchange", showHanded)

/** A link may carry a receipt behind the #, which no browser sends to a server. */
function showHanded() {
  const handed = /^#receipt=([\w.-]+)$/.exec(location.hash)?.[1]
  if (!handed) return
  receipt.value = handed
  show()
}

async function show() {
  claims.replaceChildren()
  verdict.className = ""
  // Browsers have it only in pages with https:, and on this machine.
  if (!crypto.subtle) {
    verdict.textContent = "Not verified: a browser does this only in a page with https:. Open this page so."
    verdict.className = "bad"
    return
  }
  try {
    const said = await verifyReceipt(receipt.value.trim(), keysIn(keys.value))
    const chipId = chip.value.trim()
    const isMeant = chipId === "" || (await isOfChip(said, chipId))
    verdict.textContent = isMeant ? wordsFor(said) : "The receipt is genuine, but is about another chip."
    verdict.className = isMeant ? "good" : "bad"
    claims.replaceChildren(...Object.entries(said).flatMap(rowOf))
  } catch (error) {
    if (!(error instanceof ReceiptInvalid)) throw error
    verdict.textContent = `Not valid: ${error.message}.`
    verdict.className = "bad"
  }
}

function keysIn(text) {
  try {
    const jwks = JSON.parse(text)
    if (Array.isArray(jwks?.keys)) return jwks
  } catch {
    // Said below.
  }
  throw new ReceiptInvalid('the keys are not a JWKS, which is JSON that begins with {"keys":[')
}

function wordsFor({ iss, iat, is_test }) {
  const at = new Date(iat * 1000).toISOString()
  return `Genuine: ${iss} verified this tap at ${at}${is_test ? ", of a test chip" : ""}.`
}

function rowOf([name, value]) {
  const [term, detail] = [document.createElement("dt"), document.createElement("dd")]
  term.textContent = name
  detail.textContent = value === null ? "not issued yet" : String(value)
  return [term, detail]
}
