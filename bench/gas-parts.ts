import type { Hex } from "viem"
import { type Chain, type Receipt, rpc } from "../test/harness/contracts.ts"

/** What the gas of a transaction is made of, in the order in which it is shown; a refund is below zero. */
export type GasParts = {
  transaction: number
  calldata: number
  "storage written": number
  "storage read": number
  events: number
  "code made": number
  calls: number
  "the rest": number
  refund: number
}

type Step = { op: string; depth: number; gas: number; gasCost: number }

/** Takes a mined transaction's gas apart, by the node's own trace of it. */
export async function gasPartsOf(
  chain: Chain,
  { hash, data }: { hash: Hex; data: Hex },
  receipt: Receipt,
): Promise<GasParts> {
  const options = { disableMemory: true, disableStack: true, disableStorage: true }
  const { structLogs } = await rpc<{ structLogs: Step[] }>(chain, "debug_traceTransaction", [hash, options])
  const parts: GasParts = {
    transaction: 21_000,
    calldata: calldataGas(data),
    "storage written": 0,
    "storage read": 0,
    events: 0,
    "code made": 0,
    calls: 0,
    "the rest": 0,
    refund: 0,
  }
  for (const [part, gas] of ownCosts(structLogs)) parts[part] += gas
  const sum = Object.values(parts).reduce((total, gas) => total + gas, 0)
  parts.refund = receipt.gasUsed - sum
  return parts
}

/** EIP-2028; the floor of EIP-7623 is far below what our calls cost. */
function calldataGas(data: Hex): number {
  let gas = 0
  for (let index = 2; index < data.length; index += 2) gas += data.startsWith("00", index) ? 4 : 16
  return gas
}

/** What each step costs without the steps of the calls that it makes. */
function ownCosts(steps: Step[]): [keyof GasParts, number][] {
  const costs: [keyof GasParts, number][] = []
  /** By depth, what the steps of the frame there have cost so far. */
  const spent: number[] = []
  for (let index = steps.length - 1; index >= 0; index--) {
    const step = steps[index]
    if (!step) continue
    const { op, depth, gas, gasCost } = step
    const inner = spent[depth + 1] ?? 0
    spent[depth + 1] = 0
    const next = steps.slice(index + 1).find((each) => each.depth <= depth)
    const total = inner > 0 && next?.depth === depth ? gas - next.gas : gasCost
    spent[depth] = (spent[depth] ?? 0) + total
    costs.push([partOf(op), total - inner])
  }
  return costs
}

function partOf(op: string): keyof GasParts {
  if (op === "SSTORE") return "storage written"
  if (op === "SLOAD") return "storage read"
  if (op.startsWith("LOG")) return "events"
  if (op.startsWith("CREATE")) return "code made"
  if (/CALL$|^EXTCODE/.test(op)) return "calls"
  return "the rest"
}

/** Parts in one line, without those that cost nothing, the small ones of whole numbers rounded. */
export function partsInWords(parts: GasParts): string {
  return Object.entries(parts)
    .filter(([, gas]) => Math.round(gas) !== 0)
    .map(([part, gas]) => `${part} ${Math.round(gas).toLocaleString("en")}`)
    .join(", ")
}
