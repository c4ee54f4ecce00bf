import { formatUnits } from "viem"
import type { ChainConfig } from "../../platform/chain-settings.ts"

/** Formats an amount of wei in the chain's coin, to six significant digits, such as `0.0123 ETH`. */
export function inCoin(
  wei: bigint,
  { coin_symbol, coin_decimals }: Pick<ChainConfig, "coin_symbol" | "coin_decimals">,
): string {
  const exact = formatUnits(wei, coin_decimals)
  const [whole = "0", fraction = ""] = exact.split(".")
  const zeros = whole === "0" ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0
  const digits = whole === "0" ? zeros + 6 : Math.max(6 - whole.length, 0)
  const shown = fraction.slice(0, digits).replace(/0+$/, "")
  return `${whole}${shown && `.${shown}`} ${coin_symbol}`
}
