/** Text that is HTML already: nothing in it is escaped again. */
export type Html = { html: string }

type Part = Html | string | number | null | Part[]

/** HTML from a template; everything put into it is escaped unless it is HTML itself. Null leaves nothing. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { html: strings.map((string, index) => string + render(parts[index] ?? null)).join("") }
}

/** Plain sentences: what stands between backticks becomes code. */
export function prose(text: string): Html {
  const parts = text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))
  return html`${parts}`
}

function render(part: Part): string {
  if (part === null) return ""
  if (Array.isArray(part)) return part.map(render).join("")
  return typeof part === "object" ? part.html : escaped(String(part))
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
