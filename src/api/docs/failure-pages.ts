import { type FailureCode, failures } from "../../../machines/failures.ts"
import { errorCatalogue } from "../../platform/errors.ts"
import type { Document } from "../openapi/document.ts"
import { operationNamed, operationPath } from "./reference.ts"
import { firstExample } from "./snippets.ts"

/** Failures whose code is not also an error code have their own page; the others are part of that code's page. */
export const codesOfFailuresAlone = (Object.keys(failures) as FailureCode[]).filter(
  (code) => !Object.hasOwn(errorCatalogue, code),
)

/** The page of a `failure.code`: what failed, what it looks like, and what to do. */
export function failureMarkdown(document: Document, code: FailureCode): string {
  const { happened, fix, related } = failurePages[code]
  return `# \`${code}\`

${failures[code]} This code is not an error of a request: it says why something that was accepted failed later.

## What failed

${happened}

${answerOf(document, code)}

## What to do

${fix}

## Related codes

${related.map((each) => `- [\`${each}\`](/docs/errors/${each})`).join("\n")}
`
}

/** The same as part of an error code's page; empty if no failure has that code. */
export function alsoFailureMarkdown(document: Document, code: string): string {
  if (!isFailureCode(code)) return ""
  const { happened, fix } = failurePages[code]
  return `
## As a failure

The same code can be the \`failure.code\` of something that was accepted but failed later, on chain.
${happened}

${answerOf(document, code)}

${fix}
`
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(failures, code)
}

/** What the resource's own operation returns once it has failed, cut to the relevant fields. */
function answerOf(document: Document, code: FailureCode): string {
  const { operation, answer } = failurePages[code]
  const asked = operationNamed(document, operation)
  const { id } = firstExample(asked.operation.responses["200"]?.content) as { id: string }
  const shown = { id, ...(answer ?? { status: "failed", failure: shownFailure(code) }) }
  return `What [${asked.operation.summary}](${operationPath(asked.operation)}) returns from then on, in part:

\`\`\`json
${JSON.stringify(shown, null, 2)}
\`\`\``
}

function shownFailure(code: FailureCode): { code: FailureCode; message: string } {
  return { code, message: failures[code] }
}

type FailurePage = {
  /** The operation that reads what failed. */
  operation: string
  /** How its response shows the failure, if not by `status` and `failure`. */
  answer?: Record<string, unknown>
  happened: string
  fix: string
  related: readonly string[]
}

const failurePages: Record<FailureCode, FailurePage> = {
  "collection.deployment_reverted": {
    operation: "getCollection",
    answer: { contract: { status: "failed" }, failure: shownFailure("collection.deployment_reverted") },
    happened:
      "The deployment of the collection's contract was executed on chain and reverted. A lack of gas, funds or a role does not cause this: then the deployment waits and continues by itself.",
    fix: "Tell the operator of the service the collection's id. `operator explain` shows the reason, `operator retry` deploys again, to the same address.",
    related: ["collection.not_active", "unit.issuance_reverted"],
  },
  "unit.issuance_reverted": {
    operation: "getUnit",
    answer: { collection: { token: { status: "pending" } } },
    happened:
      "The issuance of the unit's token was executed on chain and reverted. The unit keeps its chip, and its token stays `pending`. Only the operator sees the failure: a unit has no `failure` field.",
    fix: "Tell the operator of the service the unit's id. `operator explain` shows the reason, `operator retry` issues again.",
    related: ["unit.not_minted", "unit.issuance_pending"],
  },
  "claim.already_claimed": {
    operation: "getClaim",
    happened:
      "Two claims of the unit reached the chain, and the contract accepted the other one: a token can be claimed only once.",
    fix: "Read the unit: `ownership.owner` is its owner now, who can hand it on with a transfer.",
    related: ["claim.superseded", "claim.already_to_recipient"],
  },
  "claim.superseded": {
    operation: "getClaim",
    happened:
      "Before this claim was on chain, another claim of the unit succeeded, or the unit got another chip. Both invalidate the authorization of a wallet. The service sends no claim of a unit that has another chip on chain, because the claim would lock that chip for good.",
    fix: "Read the unit. If nobody owns it, tap its chip and claim again; if that fails too, tell the operator of the service. If somebody owns it, the owner can transfer it.",
    related: ["claim.already_claimed", "transfer.superseded"],
  },
  "transfer.superseded": {
    operation: "getTransfer",
    happened:
      "The owner of the unit changed before the prepared transfer was on chain, for example by another transfer.",
    fix: "Read the unit. If the wallet still owns it, prepare another transfer and send it.",
    related: ["claim.superseded", "transfer.in_progress"],
  },
  "chip_replacement.locked": {
    operation: "getChipReplacement",
    happened:
      "A claim of the unit reached the chain before the replacement. A claim locks the chip for good.",
    fix: "The unit keeps its chip. The new chip is free again and can be paired to another unit.",
    related: ["chip_replacement.reverted", "claim.superseded"],
  },
  "chip_replacement.reverted": {
    operation: "getChipReplacement",
    happened:
      "The replacement was executed on chain and reverted. The unit keeps its chip, and the new chip is free again.",
    fix: "Replace the chip again. If it fails twice, tell the operator of the service the id of the replacement.",
    related: ["chip_replacement.locked", "chip_replacement.in_progress"],
  },
  "metadata_refresh.reverted": {
    operation: "getMetadataRefresh",
    happened:
      "The call that announces the change was executed on chain and reverted. The metadata has changed; only the announcement is missing.",
    fix: "Create another refresh a minute later. If it fails twice, tell the operator of the service the id of the refresh.",
    related: ["metadata_refresh.unsupported", "metadata_refresh.not_found"],
  },
  "webhook_endpoint.given_up": {
    operation: "getWebhookEndpoint",
    answer: { status: "paused", failure: shownFailure("webhook_endpoint.given_up") },
    happened:
      "One event was sent to the endpoint ten times over about three days, and no attempt got a 2xx within 10 seconds. The endpoint is paused, and the events that wait for it are kept.",
    fix: "Look at the deliveries to see how the endpoint responded, and fix it. Then set `status` to `enabled`: the waiting events are sent in order.",
    related: ["webhook_endpoint.paused", "webhook_endpoint.not_found"],
  },
  "internal.error": {
    operation: "getClaim",
    happened:
      "The work ended in a way that the service does not recognize. As far as it knows, nothing happened on chain.",
    fix: "Create it again. If it fails twice, tell the operator of the service the id of what failed.",
    related: [],
  },
}
