import { toFunctionSelector } from "viem"
import { collectionAbi } from "../../engine/chain/contracts.generated.ts"

/** The contract's errors that people's wallets meet, as a table: with selectors, since wallets do not know the names. */
export function walletRefusalsMarkdown(): string {
  const rows = Object.entries(advice).map(
    ([name, text]) => `| \`${name}\` | \`${selectorOf(name)}\` | ${text} |`,
  )
  return `| Error | Selector | What to do |\n|---|---|---|\n${rows.join("\n")}`
}

const advice: Partial<Record<ErrorName, string>> = {
  NotRecipient: "The wallet sends from another account: change to the account in `from`.",
  NotOwner:
    "The account does not own the unit. Change to the account in `from`; if it is that one, the unit has moved on.",
  AlreadyClaimed: "The unit has an owner: read the unit. If it is this person, there is nothing left to do.",
  AuthorizationExpired: "`expires_at` has passed: tap again and create another claim or transfer.",
  InvalidAuthorization:
    "The unit got another owner or chip since, or the call data was changed: tap again and create another claim or transfer.",
  AuthorizationsPaused: "The operator of the service has paused it: try again later.",
  TransfersLocked:
    "This is not the service's transaction, but a plain transfer or approval: [transfer](/docs/transfers) it.",
}

type ContractError = Extract<(typeof collectionAbi)[number], { type: "error" }>
type ErrorName = ContractError["name"]

function selectorOf(name: string): string {
  const error = collectionAbi.find(
    (item): item is ContractError => item.type === "error" && item.name === name,
  )
  return toFunctionSelector(`${name}(${(error?.inputs ?? []).map(({ type }) => type).join(",")})`)
}
