import type { Content, Document, Operation, Response } from "../openapi/document.ts"
import type { JsonSchema } from "../openapi/schemas.ts"
import { type Html, html, prose } from "./html.ts"

export type Asked = { path: string; method: string; operation: Operation }

/** What holds for every operation, in short. */
export function conventions(): Html {
  const rules: [string, string][] = [
    [
      "Credentials",
      "Send `Authorization: Bearer <token>`. An API key (`end_sk_…`) stays on your server. A session token (`end_sess_…`) is answered by a tap and acts for the person who tapped, on one unit. A publishable key (`end_pk_live_…`) may stand in browser code and works for `POST /v1/taps` only.",
    ],
    [
      "Bodies",
      "JSON in UTF-8, at most 64 KiB. Unknown fields and unknown query parameters are refused. In answers every field is always present and null where nothing is known. Times are ISO 8601 in UTC.",
    ],
    [
      "Retries",
      "Give each create an `Idempotency-Key` of your own and send it again after a connection failure or a 5xx: a retry gets the first answer, with `Idempotent-Replayed: true`, and nothing happens twice. Where `Retry-After` is set, wait that many seconds first.",
    ],
    [
      "Lists",
      "Newest first, `limit` up to 100 (50 when absent). While `pagination.has_more` is true, send `pagination.next_cursor` as `cursor`, with the same filters.",
    ],
    [
      "Rate limits",
      "`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix seconds) tell how much room is left. Beyond it the answer is 429 with `Retry-After`.",
    ],
    [
      "What happens in the background",
      "Deployments, issuances, claims, transfers and chip replacements are done on chain after the answer. Poll the resource until its `status` is final; it never moves backwards.",
    ],
    [
      "Errors",
      "Every error has a stable `code`, a message for people, a `request_id` to quote and the address of a page on it. New codes are added over time: treat an unknown one by its status.",
    ],
    [
      "Browsers",
      "Register the origins of your pages with `PUT /v1/settings/cors-origins`. Never send `credentials: include`.",
    ],
  ]
  return html`<h2 id="conventions">What holds everywhere</h2>
${rules.map(([title, text]) => html`<h3>${title}</h3>\n<p>${prose(text)}</p>\n`)}`
}

/** Every operation with its address, by subject. */
export function operationIndex(document: Document): Html {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  return html`<h2 id="operations">Operations</h2>
${document.tags.map(
  (tag) => html`<h3>${tag.name}</h3>
<p class="quiet">${tag.description}</p>
<ul class="plain">
${all
  .filter(({ operation }) => operation.tags.includes(tag.name))
  .map(
    ({ path, method, operation }) =>
      html`<li><a href="/docs/operations/${operation.operationId}"><code>${method} ${path}</code></a> ${operation.summary}</li>\n`,
  )}</ul>
`,
)}`
}

/** One operation: who may ask it, what is sent, what is answered, what can go wrong. */
export function operationPage(document: Document, api_base_url: string, asked: Asked): Html {
  const { path, method, operation } = asked
  const body = operation.requestBody?.content["application/json"]
  const answers = Object.entries(operation.responses)
  return html`<h1>${operation.summary}</h1>
<p class="address"><code>${method} ${path}</code> <span class="quiet">${operation.operationId}</span></p>
<p>${prose(operation.description)}</p>
<h2>Credential</h2>
<p>${credentialWords(operation)}</p>
${parametersOf(operation)}
${body ? html`<h2>Body</h2>\n${fieldsOf(document, body.schema)}` : null}
<h2>Example</h2>
${codeBlock(curlOf(api_base_url, asked))}
${answers.filter(([status]) => status.startsWith("2")).map(([status, answer]) => successOf(document, status, answer))}
<h2>Errors</h2>
${errorsOf(answers.filter(([status]) => !status.startsWith("2")))}`
}

/** The operation's example as a command. */
export function curlOf(api_base_url: string, { path, method, operation }: Asked): string {
  const [scheme] = operation.security.flatMap((each) => Object.keys(each))
  const body = firstExample(operation.requestBody?.content)
  const named = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`)
  const lines = [
    `curl${method === "GET" || (method === "POST" && body) ? "" : ` -X ${method}`} "${api_base_url}${named}"`,
    ...(scheme ? [`-H "Authorization: Bearer $${tokenNames[scheme]}"`] : []),
    ...(operation.parameters.some(({ name }) => name === "Idempotency-Key")
      ? [`-H "Idempotency-Key: $(uuidgen)"`]
      : []),
    ...(body ? [`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(body)}'`] : []),
  ]
  return lines.join(" \\\n  ")
}

export function codeBlock(text: string): Html {
  return html`<pre tabindex="0"><code>${text}</code></pre>`
}

export function table(heads: string[], rows: (Html | string)[][]): Html {
  return html`<div class="wide" tabindex="0" role="group" aria-label="${heads.join(", ")}"><table>
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>
${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`
}

const tokenNames: Record<string, string> = {
  apiKey: "API_KEY",
  sessionToken: "SESSION_TOKEN",
  publishableKey: "PUBLISHABLE_KEY",
}

const credentialNames: Record<string, string> = {
  apiKey: "an API key (`end_sk_…`)",
  sessionToken: "a session token (`end_sess_…`)",
  publishableKey: "a publishable key (`end_pk_live_…`)",
}

function credentialWords({ security }: Operation): Html {
  const names = security.flatMap((each) =>
    Object.keys(each).map((scheme) => credentialNames[scheme] ?? scheme),
  )
  return names.length === 0 ? html`None is needed.` : prose(`Needs ${names.join(" or ")}.`)
}

function parametersOf({ parameters }: Operation): Html | null {
  if (parameters.length === 0) return null
  const rows = parameters.map((each) => [
    html`<code>${each.name}</code><br><span class="quiet">${each.in}${each.required ? ", required" : ""}</span>`,
    html`${typeWords(each.schema)}`,
    prose(each.description),
  ])
  return html`<h2>Parameters</h2>\n${table(["Name", "Type", "Meaning"], rows)}`
}

function successOf(document: Document, status: string, answer: Response): Html {
  const content = answer.content?.["application/json"]
  const headers = Object.keys(answer.headers ?? {})
  return html`<h2>Answer ${status}</h2>
<p>${answer.description} Headers: ${headers.map((name, index) => html`${index > 0 ? ", " : ""}<code>${name}</code>`)}.</p>
${content ? [codeBlock(JSON.stringify(firstExample(answer.content), null, 2)), fieldsOf(document, content.schema)] : null}`
}

function errorsOf(answers: [string, Response][]): Html {
  const rows = answers.flatMap(([status, answer]) =>
    Object.entries(answer.content?.["application/json"]?.examples ?? {}).map(([code]) => [
      status,
      html`<a href="/docs/errors/${code}"><code>${code}</code></a>`,
    ]),
  )
  return table(["Status", "Code"], rows)
}

/** The fields of a schema, those of inner objects below their own. */
function fieldsOf(document: Document, schema: JsonSchema): Html {
  const { variants } = shapeOf(document, schema)
  if (variants.length > 1)
    return html`${variants.map((variant) => html`<h3>${String(variant.title)}</h3>\n${fieldsOf(document, variant)}`)}`
  const rows = fieldRows(document, schema, "", 0)
  return rows.length === 0 ? html`` : table(["Field", "Type", "Meaning"], rows)
}

const deepestLevel = 5

function fieldRows(document: Document, schema: JsonSchema, prefix: string, level: number): Html[][] {
  const { object } = shapeOf(document, schema)
  const required = (object.required ?? []) as string[]
  return Object.entries((object.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, field]) => {
    const isList = field.type === "array"
    const inner = isList ? (field.items as JsonSchema) : field
    const path = `${prefix}${name}`
    const row = [
      html`<code>${path}</code>${required.includes(name) ? null : html`<br><span class="quiet">optional</span>`}`,
      html`${typeWords(field)}`,
      prose(String(field.description ?? "")),
    ]
    const below =
      level < deepestLevel ? fieldRows(document, inner, `${path}${isList ? "[]" : ""}.`, level + 1) : []
    return [row, ...below]
  })
}

/** What stands behind a reference, and which variants there are beside null. */
function shapeOf(document: Document, schema: JsonSchema): { object: JsonSchema; variants: JsonSchema[] } {
  if (typeof schema.$ref === "string") {
    const named = document.components.schemas[schema.$ref.replace("#/components/schemas/", "")]
    return shapeOf(document, named ?? {})
  }
  const all = ((schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined)?.filter(
    (variant) => variant.type !== "null",
  )
  const [only, ...others] = all ?? []
  if (only && others.length === 0) return shapeOf(document, only)
  return { object: schema, variants: all ?? [] }
}

function typeWords(schema: JsonSchema): string {
  if (typeof schema.$ref === "string") return "object"
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return (schema.enum as unknown[]).map((value) => JSON.stringify(value)).join(" | ")
  if (schema.anyOf) return (schema.anyOf as JsonSchema[]).map(typeWords).join(" | ")
  if (schema.oneOf) return "object"
  const types = [schema.type].flat().map(String)
  const words = types.map((type) => (type === "string" && schema.format ? String(schema.format) : type))
  if (schema.type === "array") return `array of ${typeWords(schema.items as JsonSchema)}`
  return words.join(" | ") + rangeWords(schema)
}

function rangeWords({ minimum, maximum, minLength, maxLength, minItems, maxItems }: JsonSchema): string {
  const [least, most] = [minimum ?? minLength ?? minItems, maximum ?? maxLength ?? maxItems]
  if (least !== undefined && most !== undefined && most !== Number.MAX_SAFE_INTEGER)
    return `, ${least} to ${most}${maxLength ? " characters" : ""}`
  return least === undefined ? "" : `, from ${least}`
}

function firstExample(content: Content | undefined): unknown {
  return Object.values(content?.["application/json"]?.examples ?? {})[0]?.value
}
