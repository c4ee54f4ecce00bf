// Two wallets for development that announce themselves as browser wallets do (EIP-6963). They belong to this machine's
// chain.

const { wallets, chain_id } = await (await fetch("/settings.json")).json()

const icon = (colour) =>
  `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="${colour}"/></svg>`)}`

const announced = [
  { name: "Test wallet", rdns: "localhost.test-wallet", icon: icon("#5d7148"), account: wallets[0] },
  { name: "Friend's wallet", rdns: "localhost.friends-wallet", icon: icon("#b0683a"), account: wallets[1] },
].map(({ account, ...info }) =>
  Object.freeze({
    info: { uuid: crypto.randomUUID(), ...info },
    provider: { request: (asked) => answer(account, asked) },
  }),
)

async function answer(account, { method, params }) {
  if (method === "eth_requestAccounts" || method === "eth_accounts") return [account]
  if (method === "eth_chainId") return `0x${chain_id.toString(16)}`
  if (method !== "eth_sendTransaction") throw new Error(`The test wallet does not know ${method}.`)
  const [{ to, data }] = params
  const response = await fetch("/wallet", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ from: account, to, data }),
  })
  const { hash, message } = await response.json()
  if (!hash) throw new Error(message)
  return hash
}

function announce() {
  for (const detail of announced) dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }))
}

addEventListener("eip6963:requestProvider", announce)
announce()
