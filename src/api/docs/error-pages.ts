import { failures } from "../../../machines/failures.ts"
import type { Config } from "../../platform/config.ts"
import { type ErrorCode, errorCatalogue } from "../../platform/errors.ts"
import { errorExample } from "../openapi/components.ts"
import type { Document } from "../openapi/document.ts"
import { alsoFailureMarkdown } from "./failure-pages.ts"
import { operationNamed, operationPath } from "./reference.ts"
import { requestMarkdown } from "./snippets.ts"

/** Every error code, in the order of the catalogue, and every code of a failure on chain. */
export function errorsMarkdown(): string {
  return `# Errors

Every error has the same form. Branch on \`error.code\`, never on the message. Codes are added over time: if you do not know a
code, go by the status.

${Object.entries(errorCatalogue)
  .map(([code, { status, title }]) => `- ${status} [\`${code}\`](/docs/errors/${code}): ${title}`)
  .join("\n")}

## What failed on chain

A claim, transfer, chip replacement, metadata refresh or collection that is \`failed\` says why in \`failure.code\`. The page
of the code says what to do.

${Object.entries(failures)
  .map(([code, message]) => `- [\`${code}\`](/docs/errors/${code}): ${message}`)
  .join("\n")}
`
}

/** What happened, what to do, what it looks like, a request that works, and related codes. */
export function errorMarkdown(
  document: Document,
  { api_base_url, docs_url }: Pick<Config, "api_base_url" | "docs_url">,
  code: ErrorCode,
): string {
  const { status, title, retryable, happened, fix, operation, related } = errorCatalogue[code]
  const asked = operationNamed(document, operation)
  return `# \`${code}\`

${title} Status ${status}${code === "internal.error" ? " or 503" : ""}. ${retryable ? "The same request may succeed later." : "The same request fails again until the cause is removed."}

## What happened

${happened}

\`\`\`json
${JSON.stringify(errorExample(code, docs_url).value, null, 2)}
\`\`\`

## How to fix it

${fix}

## A request that works

[${asked.operation.summary}](${operationPath(asked.operation)})

${requestMarkdown(api_base_url, asked)}
${alsoFailureMarkdown(document, code)}
## Related codes

${related.map((each) => `- [\`${each}\`](/docs/errors/${each}): ${errorCatalogue[each].title}`).join("\n")}
`
}
