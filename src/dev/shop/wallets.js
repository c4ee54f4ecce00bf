// Wallets as browsers have them: each announces itself (EIP-6963), gives its address and sends what its owner confirms.

/** A button in each place for every wallet that is there; tells which was connected, null for one that refused. */
export function offerWallets(places, tell) {
  addEventListener("eip6963:announceProvider", ({ detail }) => {
    for (const place of places) offer(place, detail, tell)
  })
  dispatchEvent(new Event("eip6963:requestProvider"))
}

function offer(place, { info, provider }, tell) {
  if ([...place.children].some((button) => button.dataset.wallet === info.rdns)) return
  const button = document.createElement("button")
  const icon = document.createElement("img")
  icon.src = info.icon
  icon.alt = ""
  button.type = "button"
  button.className = "plain"
  button.dataset.wallet = info.rdns
  button.append(icon, `Connect ${info.name}`)
  button.addEventListener("click", async () => {
    const connected = await connect(provider, info.name)
    if (connected) markConnected(info.rdns)
    tell(connected)
  })
  place.append(button)
}

function markConnected(rdns) {
  for (const each of document.querySelectorAll("[data-wallet]"))
    each.ariaPressed = String(each.dataset.wallet === rdns)
}

async function connect(provider, name) {
  try {
    const [account] = await provider.request({ method: "eth_requestAccounts" })
    return { provider, account, name }
  } catch {
    return null
  }
}

/** Has the wallet send it on the chain that it is meant for. Throws where its owner or the wallet refuses. */
export async function sendTransaction(provider, { from, to, data, value }, chain) {
  const chainId = `0x${chain.id.toString(16)}`
  if ((await provider.request({ method: "eth_chainId" })) !== chainId)
    await changeChain(provider, { chainId, chainName: chain.name, rpcUrls: [chain.rpc_url] })
  await provider.request({ method: "eth_sendTransaction", params: [{ from, to, data, value }] })
}

/** To a chain that the wallet may have to be told of (EIP-3085) before it can change to it (EIP-3326). */
async function changeChain(provider, chain) {
  const change = { method: "wallet_switchEthereumChain", params: [{ chainId: chain.chainId }] }
  try {
    await provider.request(change)
  } catch (error) {
    // MetaMask on phones wraps it in an error of its own.
    const { code } = error.data?.originalError ?? error
    if (code !== unknownChain) throw error
    await provider.request({ method: "wallet_addEthereumChain", params: [{ ...chain, nativeCurrency }] })
    await provider.request(change)
  }
}

const unknownChain = 4902
const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 }
