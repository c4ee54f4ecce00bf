import { html, type Markup } from "../../platform/html.ts"

/** A snippet with its comments, strings and keywords marked. Joined, its parts are the snippet again. */
export function highlighted(text: string, language: string): Markup {
  const grammar = grammars[language]
  if (!grammar) return html`${text}`
  const parts: (string | Markup)[] = []
  let end = 0
  for (const { 0: whole, index, groups = {} } of text.matchAll(grammar)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined)
    parts.push(text.slice(end, index), html`<span class="${kind}">${whole}</span>`)
    end = index + whole.length
  }
  return html`${[...parts, text.slice(end)]}`
}

const script =
  /(?<comment>\/\/.*)|(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(?<word>\b(?:as|async|await|catch|const|for|from|function|if|import|let|new|of|return|throw|try|type)\b)/g
const shell =
  /(?<comment>(?<=^|\s)#.*$)|(?<text>'[^']*'|"(?:\\.|[^"\\])*")|(?<word>(?<=^\s*|[;|] |\bdo )(?:do|done|for|until|while)\b)/gm
const document = /(?<word>"(?:\\.|[^"\\])*"(?=:))|(?<text>"(?:\\.|[^"\\])*")/g

const grammars: Record<string, RegExp> = {
  ts: script,
  js: script,
  viem: script,
  wagmi: script,
  bash: shell,
  sh: shell,
  json: document,
}
