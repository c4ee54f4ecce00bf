import { defineChain } from "viem"

/** The client's own list of chains has hundreds more, and would load them all. */
export const localChain = defineChain({
  id: 31_337,
  name: "local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [] } },
})
