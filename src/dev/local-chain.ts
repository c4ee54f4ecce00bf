import { defineChain } from "viem"

/** Importing viem's own list would load hundreds of chains. */
export const localChain = defineChain({
  id: 31_337,
  name: "local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [] } },
})
