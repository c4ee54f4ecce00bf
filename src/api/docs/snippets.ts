import type { Content, Operation } from "../openapi/document.ts"

export type Asked = { path: string; method: string; operation: Operation }

/** The operation's example request in each language, as Markdown. */
export function requestMarkdown(api_base_url: string, asked: Asked): string {
  return `\`\`\`bash
${curlOf(api_base_url, asked)}
\`\`\`
${typeScriptBlock(asked)}
${takesKey(asked.operation) ? aboutTheKey : ""}`
}

const aboutTheKey =
  "The `Idempotency-Key` is an example: use a new one for each new request, and the same one only for a [retry](/docs/idempotency).\n"

/** Pages are opened by browsers, not by the client. */
function typeScriptBlock(asked: Asked): string {
  const isPage = Object.values(asked.operation.responses).some(({ content }) => content?.["text/html"])
  return isPage ? "" : `\`\`\`ts\n${typeScriptOf(asked)}\n\`\`\`\n`
}

/** The example as a curl command, with the variable names that the guides use. */
function curlOf(api_base_url: string, { path, method, operation }: Asked): string {
  const scheme = schemeOf(operation)
  const body = firstExample(operation.requestBody?.content)
  const named = path.replaceAll(/\{(\w+?)(_id)?\}/g, (_, name: string) => `$${name.toUpperCase()}`)
  const lines = [
    `curl${method === "GET" || (method === "POST" && body) ? "" : ` -X ${method}`} "${api_base_url}${named}"`,
    ...(scheme ? [`-H "Authorization: Bearer $${tokenNames[scheme]}"`] : []),
    ...(takesKey(operation) ? [`-H "Idempotency-Key: ${operation.operationId}-1"`] : []),
    ...(body
      ? [
          `-H 'Content-Type: application/json'`,
          `-d '${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}'`,
        ]
      : []),
  ]
  return lines.join(" \\\n  ")
}

/** The same with the TypeScript client, path parameters by name. */
export function typeScriptOf({ path, method, operation }: Asked): string {
  const body = firstExample(operation.requestBody?.content)
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  const init = [
    ...(names.length > 0 ? [`  params: { path: { ${names.join(", ")} } },`] : []),
    ...(body ? [`  body: ${literal(body)},`] : []),
  ]
  const client = schemeOf(operation) === "sessionToken" ? "visitor" : "api"
  const options = init.length > 0 ? `, {\n${init.join("\n")}\n}` : ""
  return `const result = await dataOf(${client}.${method}("${path}"${options}))`
}

export function firstExample(content: Content | undefined): unknown {
  return Object.values(content?.["application/json"]?.examples ?? {})[0]?.value
}

function takesKey({ parameters }: Operation): boolean {
  return parameters.some(({ name }) => name === "Idempotency-Key")
}

function schemeOf({ security }: Operation): string | undefined {
  return security.flatMap((each) => Object.keys(each))[0]
}

const tokenNames: Record<string, string> = {
  apiKey: "KEY",
  sessionToken: "SESSION",
  publishableKey: "PUBLISHABLE",
}

/** A JavaScript literal: names without quotes. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .replaceAll(/"(\w+)":/g, "$1:")
    .replaceAll("\n", "\n  ")
}
