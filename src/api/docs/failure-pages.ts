import { type FailureCode, failures } from "../../../machines/failures.ts"
import { errorCatalogue } from "../../platform/errors.ts"
import type { Document } from "../openapi/document.ts"
import { operationPath, operationsOf } from "./reference.ts"
import { firstExample } from "./snippets.ts"

/** Failures whose code is not also an error code have their own page; the others are part of that code's page. */
export const codesOfFailuresAlone = (Object.keys(failures) as FailureCode[]).filter(
  (code) => !Object.hasOwn(errorCatalogue, code),
)

/** The page of a `failure.code`: what failed, what it looks like, and what to do. */
export function failureMarkdown(document: Document, code: FailureCode): string {
  return `# \`${code}\`

${failures[code]} It is no answer to a request: it says why something failed later.

## What failed

${failurePages[code].happened}

${answerOf(document, code)}

## What to do

${failurePages[code].fix}

## Related codes

${failurePages[code].related.map((each) => `- [\`${each}\`](/docs/errors/${each})`).join("\n")}
`
}

/** The same as part of an error code's page; empty if no failure has that code. */
export function alsoFailureMarkdown(document: Document, code: string): string {
  if (!isFailureCode(code)) return ""
  return `
## As a failure

The same code may stand in \`failure.code\` of what was accepted and failed later, on chain.
${failurePages[code].happened}

${answerOf(document, code)}

${failurePages[code].fix}
`
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(failures, code)
}

/** What the resource's own operation answers once it has failed, cut to the relevant fields. */
function answerOf(document: Document, code: FailureCode): string {
  const { operation, answer } = failurePages[code]
  const asked = operationsOf(document).find((each) => each.operation.operationId === operation)
  if (!asked) throw new Error(`there is no operation ${operation}`)
  const { id } = firstExample(asked.operation.responses["200"]?.content) as { id: string }
  const shown = { id, ...(answer ?? { status: "failed", failure: { code, message: failures[code] } }) }
  return `What [${asked.operation.summary}](${operationPath(asked.operation)}) answers from then on, in part:

\`\`\`json
${JSON.stringify(shown, null, 2)}
\`\`\``
}

type FailurePage = {
  /** The operation that reads what failed. */
  operation: string
  /** How its answer shows the failure, if not by `status` and `failure`. */
  answer?: Record<string, unknown>
  happened: string
  fix: string
  related: readonly string[]
}

const failurePages: Record<FailureCode, FailurePage> = {
  "collection.deployment_reverted": {
    operation: "getCollection",
    answer: { contract: { status: "failed" } },
    happened:
      "The chain ran the deployment of the collection's contract and refused it. Want of gas, money or a role is not that: then the deployment waits and goes on by itself.",
    fix: "Tell the operator of the service the collection's id. `operator explain` shows the refusal, `operator retry` deploys again, to the same address.",
    related: ["collection.not_active", "unit.issuance_reverted"],
  },
  "unit.issuance_reverted": {
    operation: "getUnit",
    answer: { collection: { token: { status: "pending" } } },
    happened:
      "The chain ran the issuance of the unit's token and refused it. The unit keeps its chip, and its token stays `pending`. It is seen by the operator; a unit's answer has no `failure`.",
    fix: "Tell the operator of the service the unit's id. `operator explain` shows the refusal, `operator retry` issues again.",
    related: ["unit.not_minted", "unit.issuance_pending"],
  },
  "claim.already_claimed": {
    operation: "getClaim",
    happened:
      "Two claims of the unit came to the chain, and the contract let the other one through: a token is claimed once.",
    fix: "Read the unit: `ownership.owner` is who has it now. Its owner hands it on with a transfer.",
    related: ["claim.superseded", "claim.already_to_recipient"],
  },
  "claim.superseded": {
    operation: "getClaim",
    happened:
      "Before the claim was on chain, the unit was claimed in another way or got another chip. Either makes an authorization worthless that a wallet was to send; and the service itself sends no claim of a unit that has another chip on chain, for that one would be locked for ever.",
    fix: "Read the unit. Where nobody owns it, tap its chip and claim again, and where that fails too tell the operator of the service; where somebody owns it, its owner makes a transfer.",
    related: ["claim.already_claimed", "transfer.superseded"],
  },
  "transfer.superseded": {
    operation: "getTransfer",
    happened:
      "The transfer was prepared and not sent before the unit changed its owner in another way, by another of its transfers for example.",
    fix: "Read the unit. Where the wallet still owns it, prepare another transfer and send it.",
    related: ["claim.superseded", "transfer.in_progress"],
  },
  "chip_replacement.locked": {
    operation: "getChipReplacement",
    happened:
      "A claim of the unit came to the chain before the replacement. A claim locks the chip for ever.",
    fix: "Leave the unit its chip. The new chip is free again and can be paired to another unit.",
    related: ["chip_replacement.reverted", "claim.superseded"],
  },
  "chip_replacement.reverted": {
    operation: "getChipReplacement",
    happened:
      "The chain ran the swap of the chips and refused it. The unit keeps its chip, and the new one is free again.",
    fix: "Replace the chip again. Where it fails twice, tell the operator of the service the id of the replacement.",
    related: ["chip_replacement.locked", "chip_replacement.in_progress"],
  },
  "metadata_refresh.reverted": {
    operation: "getMetadataRefresh",
    happened:
      "The chain ran the call that announces the change and refused it. What tokens show has changed all the same: only nobody was told.",
    fix: "Ask for another refresh a minute later. Where it fails twice, tell the operator of the service the id of the refresh.",
    related: ["metadata_refresh.unsupported", "metadata_refresh.not_found"],
  },
  "webhook_endpoint.given_up": {
    operation: "getWebhookEndpoint",
    answer: { status: "paused" },
    happened:
      "One event was offered to the endpoint ten times over about three days, and no attempt was answered with a 2xx within 10 seconds. The endpoint is paused, and keeps what waits for it.",
    fix: "Look at its deliveries for the answers it gave and mend it. Then set `status` to `enabled`: what waits is sent in order.",
    related: ["webhook_endpoint.not_found"],
  },
  "internal.error": {
    operation: "getClaim",
    happened:
      "The work ended in a way that the service does not know. Nothing was done on chain that it knows of.",
    fix: "Do it again. Where it fails twice, quote the id of what failed to the operator of the service.",
    related: [],
  },
}
