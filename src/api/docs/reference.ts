import { type ErrorCode, errorCatalogue } from "../../platform/errors.ts"
import type { Document, Operation, Response } from "../openapi/document.ts"
import type { JsonSchema } from "../openapi/schemas.ts"
import { fieldLines, type Homes, nameOf } from "./field-lines.ts"
import { slug } from "./markdown.ts"
import { type Asked, firstExample, requestMarkdown } from "./snippets.ts"

/** Every operation with its method and path. */
export function operationsOf(document: Document): Asked[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
}

/** The operation of this name. Throws where there is none. */
export function operationNamed(document: Document, name: string): Asked {
  const asked = operationsOf(document).find(({ operation }) => operation.operationId === name)
  if (!asked) throw new Error(`there is no operation ${name}`)
  return asked
}

export function operationPath({ operationId }: Operation): string {
  return `/docs/operations/${operationId}`
}

export function resourcePath(name: string): string {
  return `/docs/resources/${slug(name)}`
}

/** Where each returned schema is shown: on the page of the first resource that returns it itself. */
export function homesOf(document: Document): Homes {
  const homes: Homes = new Map()
  for (const { operation } of operationsOf(document))
    for (const name of answeredNames(operation))
      if (!homes.has(name)) homes.set(name, `${resourcePath(operation.tags[0] ?? "")}#${slug(name)}`)
  return homes
}

/** A resource: its operations, and the objects they return. */
export function resourceMarkdown(document: Document, homes: Homes, tag: Document["tags"][number]): string {
  const path = resourcePath(tag.name)
  const operations = operationsOf(document).filter(({ operation }) => operation.tags.includes(tag.name))
  const objects = [...homes].filter(([, home]) => home.startsWith(`${path}#`)).map(([name]) => name)
  return `# ${tag.name}

${tag.description}

${operations.map(({ path, method, operation }) => `- [${operation.summary}](${operationPath(operation)}): \`${method} ${path}\``).join("\n")}

${objects
  .map((name) => {
    const schema = document.components.schemas[name] ?? {}
    const example = exampleOf(operations, name)
    return `## ${name}

${fieldLines(document, homes, schema, { beside: name }).join("\n")}

${example === undefined ? "" : jsonBlock(example)}`
  })
  .join("\n\n")}
`
}

/** One operation: credentials, parameters, body, responses and errors. */
export function operationMarkdown(
  document: Document,
  homes: Homes,
  api_base_url: string,
  asked: Asked,
): string {
  const { path, method, operation } = asked
  const answers = Object.entries(operation.responses)
  return `# ${operation.summary}

\`${method} ${path}\` · \`${operation.operationId}\`

${operation.description}

${credentialWords(operation)}

${requestMarkdown(api_base_url, asked)}
${parametersOf(operation)}
${bodyOf(document, homes, operation)}
${answers
  .filter(([status]) => isSuccess(status))
  .map(([status, answer]) => successOf(document, homes, status, answer))
  .join("\n")}

## Errors

${answers
  .filter(([status]) => !isSuccess(status))
  .flatMap(([status, answer]) =>
    Object.keys(answer.content?.["application/json"]?.examples ?? {}).map(
      (code) => `- ${status} [\`${code}\`](/docs/errors/${code}) ${errorCatalogue[code as ErrorCode].title}`,
    ),
  )
  .join("\n")}
`
}

function isSuccess(status: string): boolean {
  return status < "400"
}

const credentialNames: Record<string, string> = {
  apiKey: "an API key (`end_sk_…`)",
  sessionToken: "a session token (`end_sess_…`)",
  publishableKey: "a publishable key (`end_pk_live_…`)",
}

function credentialWords({ security }: Operation): string {
  const names = security.flatMap((each) => Object.keys(each).map((scheme) => credentialNames[scheme]))
  return names.length === 0 ? "No credential is needed." : `Needs ${names.join(" or ")}.`
}

function parametersOf({ parameters }: Operation): string {
  if (parameters.length === 0) return ""
  const lines = parameters.map(
    ({ name, required, description, in: place }) =>
      `- \`${name}\` *${place}${required ? "" : ", optional"}* ${description}`,
  )
  return `## Parameters\n\n${lines.join("\n")}\n`
}

function bodyOf(document: Document, homes: Homes, operation: Operation): string {
  const body = operation.requestBody?.content["application/json"]
  if (!body) return ""
  return `## Body\n\n${fieldLines(document, homes, body.schema).join("\n")}\n`
}

function successOf(document: Document, homes: Homes, status: string, answer: Response): string {
  const content = answer.content?.["application/json"]
  const headers = Object.keys(answer.headers ?? {}).map((name) => `\`${name}\``)
  return `## Response ${status}

${answer.description}

${content ? answerFields(document, homes, content.schema) : ""}

Headers: ${headers.join(", ")}.

${content ? jsonBlock(firstExample(answer.content)) : ""}
`
}

function answerFields(document: Document, homes: Homes, schema: JsonSchema): string {
  const name = nameOf(schema)
  const home = name && homes.get(name)
  return home ? `Fields: see [${name}](${home}).` : fieldLines(document, homes, schema).join("\n")
}

function jsonBlock(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}

/** The schemas that an operation returns, alone or as list entries. */
function answeredNames({ responses }: Operation): string[] {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([, { content }]) => {
      const schema = content?.["application/json"]?.schema
      const entries = Object.values((schema?.properties ?? {}) as Record<string, JsonSchema>)
      return [schema, ...entries.map(({ items }) => items as JsonSchema | undefined)].map(nameOf)
    })
    .filter((name) => name !== undefined)
}

function exampleOf(operations: Asked[], name: string): unknown {
  for (const { operation } of operations)
    for (const { content } of Object.values(operation.responses))
      if (nameOf(content?.["application/json"]?.schema) === name) return firstExample(content)
  return undefined
}
