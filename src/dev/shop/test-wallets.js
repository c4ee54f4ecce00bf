// Two wallets for development that announce themselves as browser wallets do (EIP-6963). Like a person's own they begin
// on Ethereum, and have to be told of this machine's chain.

const { wallets, chain } = await (await fetch("/settings.json")).json()

const ethereum = "0x1"
const icon = (colour) =>
  `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="${colour}"/></svg>`)}`

const announced = [
  { name: "Test wallet", rdns: "localhost.test-wallet", icon: icon("#5d7148"), account: wallets[0] },
  { name: "Friend's wallet", rdns: "localhost.friends-wallet", icon: icon("#b0683a"), account: wallets[1] },
].map(({ account, ...info }) => {
  const wallet = { account, chainId: ethereum, chainIds: new Set([ethereum]) }
  return Object.freeze({
    info: { uuid: crypto.randomUUID(), ...info },
    provider: { request: (asked) => answer(wallet, asked) },
  })
})

async function answer(wallet, { method, params: [asked] = [] }) {
  if (method === "eth_requestAccounts" || method === "eth_accounts") return [wallet.account]
  if (method === "eth_chainId") return wallet.chainId
  if (method === "wallet_addEthereumChain") return addChain(wallet, asked)
  if (method === "wallet_switchEthereumChain") return changeChain(wallet, asked)
  if (method === "eth_sendTransaction") return await send(wallet, asked)
  throw new Error(`The test wallet does not know ${method}.`)
}

function addChain({ chainIds }, { chainId }) {
  chainIds.add(chainId)
  return null
}

function changeChain(wallet, { chainId }) {
  if (!wallet.chainIds.has(chainId))
    throw Object.assign(new Error("The test wallet does not know this chain."), { code: 4902 })
  wallet.chainId = chainId
  return null
}

async function send({ account, chainId }, { to, data }) {
  if (Number(chainId) !== chain.id) throw new Error("The test wallet is on another chain.")
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
