import { Marked, type Token, type Tokens } from "marked"
import { html, type Markup, trusted } from "../../platform/html.ts"
import { highlighted } from "./highlight.ts"

/** A page's Markdown as sections of two columns, text and code; below the title, links to the other sections. */
export function renderMarkdown(text: string): Markup {
  const [title, ...others] = sectionsOf(marked.lexer(text))
  return html`${title && sectionHtml(title)}${onThisPage(others)}${others.map(sectionHtml)}`
}

function sectionHtml({ heading, words, blocks }: Section): Markup {
  return html`<section>
<div class="words">
${heading && headingOf(heading)}
${trusted(marked.parser(words))}</div>
${blocks.length > 0 ? html`<div class="blocks">${grouped(blocks).map(codeOf)}</div>` : null}
</section>
`
}

function onThisPage(sections: Section[]): Markup | null {
  const parts = sections.flatMap(({ heading }) => (heading?.depth === 2 ? [heading.text] : []))
  if (parts.length < 3) return null
  return html`<ul class="here" aria-label="On this page">${parts.map(
    (text) => html`<li><a href="#${slug(text)}">${text.replaceAll("`", "")}</a></li>`,
  )}</ul>
`
}

/** The anchor of a heading. */
export function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
}

type Section = { heading: Tokens.Heading | null; words: Token[]; blocks: Block[] }

/** `isNext`: it directly follows another block, so it says the same in another language. */
type Block = { language: string; text: string; isNext: boolean }

function sectionsOf(tokens: Token[]): Section[] {
  const sections: Section[] = [{ heading: null, words: [], blocks: [] }]
  let isNext = false
  for (const token of tokens) {
    const section = sections.at(-1) as Section
    if (token.type === "heading") sections.push({ heading: token as Tokens.Heading, words: [], blocks: [] })
    else if (token.type === "code")
      section.blocks.push({ language: token.lang ?? "", text: token.text, isNext })
    else if (token.type !== "space") section.words.push(token)
    if (token.type !== "space") isNext = token.type === "code"
  }
  return sections.filter(({ heading, words, blocks }) => heading || words.length > 0 || blocks.length > 0)
}

function headingOf({ depth, text, tokens }: Tokens.Heading): Markup {
  const inner = trusted(marked.Parser.parseInline(tokens, marked.defaults))
  if (depth === 1) return html`<h1>${inner}</h1>`
  return depth === 2 ? html`<h2 id="${slug(text)}">${inner}</h2>` : html`<h3 id="${slug(text)}">${inner}</h3>`
}

function grouped(blocks: Block[]): Block[][] {
  const groups: Block[][] = []
  for (const block of blocks) {
    const group = block.isNext ? groups.at(-1) : undefined
    if (group && !group.some(({ language }) => language === block.language)) group.push(block)
    else groups.push([block])
  }
  return groups
}

const labels: Record<string, string> = {
  bash: "curl",
  sh: "Shell",
  ts: "TypeScript",
  js: "JavaScript",
  viem: "Wallet (viem)",
  wagmi: "Wallet (wagmi)",
  json: "JSON",
}

/** Tabs are radio buttons, which work without a script and with the keyboard. */
function codeOf(group: Block[], place: number): Markup {
  const [only] = group
  if (group.length === 1 && only)
    return html`<figure><figcaption>${labels[only.language] ?? "Text"}</figcaption>${preOf(only)}</figure>`
  const name = `tabs-${only ? Bun.hash(only.text + place).toString(36) : place}`
  return html`<fieldset class="tabs"><legend class="unseen">The same in</legend>
${group.map(
  ({ language }, index) =>
    html`<label><input type="radio" name="${name}" value="${language}"${index === 0 ? trusted(" checked") : ""}><span>${labels[language] ?? language}</span></label>`,
)}
${group.map(preOf)}</fieldset>`
}

function preOf({ language, text }: Block): Markup {
  return html`<pre tabindex="0" data-language="${language}"><code>${highlighted(text, language)}</code></pre>`
}

/** Nested field lists are folded; HTML in a text is shown as text. */
const marked = new Marked({
  renderer: {
    html: ({ text }) => String(html`${text}`),
    listitem({ tokens }) {
      const below = tokens.filter(({ type }) => type === "list")
      if (below.length === 0) return `<li>${this.parser.parse(tokens)}</li>\n`
      const own = tokens.filter(({ type }) => type !== "list")
      return `<li><details><summary>${this.parser.parse(own)}</summary>${this.parser.parse(below)}</details></li>\n`
    },
    table(token) {
      const row = (cells: Tokens.TableCell[], tag: string) =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>\n`
      const body = token.rows.map((cells) => row(cells, "td")).join("")
      return `<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>\n`
    },
  },
})
