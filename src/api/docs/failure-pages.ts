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

${failures[code]} It is not an answer to a request: it says why something failed later.

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

The same code can be the \`failure.code\` of something that was accepted and failed later, on chain.
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
      "The chain ran the deployment of the collection's contract and refused it. A lack of gas, money or a role does not cause this: then the deployment waits and continues by itself.",
    fix: "Tell the operator of the service the collection's id. `operator explain` shows the refusal, `operator retry` deploys again, to the same address.",
    related: ["collection.not_active", "unit.issuance_reverted"],
  },
  "unit.issuance_reverted": {
    operation: "getUnit",
    answer: { collection: { token: { status: "pending" } } },
    happened:
      "The chain ran the issuance of the unit's token and refused it. The unit keeps its chip, and its token stays `pending`. The operator sees the failure; a unit's answer has no `failure`.",
    fix: "Tell the operator of the service the unit's id. `operator explain` shows the refusal, `operator retry` issues again.",
    related: ["unit.not_minted", "unit.issuance_pending"],
  },
  "claim.already_claimed": {
    operation: "getClaim",
    happened:
      "Two claims of the unit reached the chain, and the contract accepted the other one: a token can be claimed once.",
    fix: "Read the unit: `ownership.owner` is who has it now. The owner can hand it on with a transfer.",
    related: ["claim.superseded", "claim.already_to_recipient"],
  },
  "claim.superseded": {
    operation: "getClaim",
    happened:
      "Before the claim was on chain, the unit was claimed in another way or got another chip. Either one invalidates an authorization that a wallet was to send. The service itself sends no claim of a unit that has another chip on chain, because that chip would be locked for ever.",
    fix: "Read the unit. If nobody owns it, tap its chip and claim again; if that fails too, tell the operator of the service. If somebody owns it, the owner can transfer it.",
    related: ["claim.already_claimed", "transfer.superseded"],
  },
  "transfer.superseded": {
    operation: "getTransfer",
    happened:
      "The unit changed its owner in another way before the prepared transfer was sent, for example by another transfer.",
    fix: "Read the unit. If the wallet still owns it, prepare another transfer and send it.",
    related: ["claim.superseded", "transfer.in_progress"],
  },
  "chip_replacement.locked": {
    operation: "getChipReplacement",
    happened:
      "A claim of the unit reached the chain before the replacement. A claim locks the chip for ever.",
    fix: "The unit keeps its chip. The new chip is free again and can be paired to another unit.",
    related: ["chip_replacement.reverted", "claim.superseded"],
  },
  "chip_replacement.reverted": {
    operation: "getChipReplacement",
    happened:
      "The chain ran the swap of the chips and refused it. The unit keeps its chip, and the new one is free again.",
    fix: "Replace the chip again. If it fails twice, tell the operator of the service the id of the replacement.",
    related: ["chip_replacement.locked", "chip_replacement.in_progress"],
  },
  "metadata_refresh.reverted": {
    operation: "getMetadataRefresh",
    happened:
      "The chain ran the call that announces the change and refused it. What tokens show has changed all the same; it was just not announced.",
    fix: "Ask for another refresh a minute later. If it fails twice, tell the operator of the service the id of the refresh.",
    related: ["metadata_refresh.unsupported", "metadata_refresh.not_found"],
  },
  "webhook_endpoint.given_up": {
    operation: "getWebhookEndpoint",
    answer: { status: "paused" },
    happened:
      "One event was sent to the endpoint ten times over about three days, and no attempt got a 2xx within 10 seconds. The endpoint is paused, and what waits for it is kept.",
    fix: "Look at its deliveries for the answers it gave, and fix it. Then set `status` to `enabled`: what waits is sent in order.",
    related: ["webhook_endpoint.not_found"],
  },
  "internal.error": {
    operation: "getClaim",
    happened:
      "The work ended in a way that the service does not recognize. As far as it knows, nothing was done on chain.",
    fix: "Do it again. If it fails twice, tell the operator of the service the id of what failed.",
    related: [],
  },
}
