import type { DocsPage } from "./site.ts"

/**
 * The pages that contain all of the question's first words; those with the words in the title first, then by
 * frequency.
 */
export function search(pages: readonly DocsPage[], question: string): DocsPage[] {
  const asked = question.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? []
  // Each word costs a scan of many pages, which blocks all other requests.
  const words = [...new Set(asked)].slice(0, mostWords)
  if (words.length === 0) return []
  return pages
    .map((page) => ({ page, score: scoreOf(page, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, mostResults)
    .map(({ page }) => page)
}

const mostWords = 12
const mostResults = 12

function scoreOf(page: DocsPage, words: string[]): number {
  const { heading, text } = lowered.get(page) ?? lower(page)
  let score = 0
  for (const word of words) {
    const times = occurrences(text, word)
    const isInHeading = heading.includes(word)
    if (times === 0 && !isInHeading) return 0
    score += times + (isInHeading ? 100 : 0)
  }
  return score + (page.group === "Guides" ? 20 : 0)
}

/** How often a word occurs, up to 10 times. */
function occurrences(text: string, word: string): number {
  let times = 0
  for (let at = text.indexOf(word); at >= 0 && times < 10; at = text.indexOf(word, at + word.length)) times++
  return times
}

function lower(page: DocsPage): Lowered {
  const { title, path, markdown } = page
  const texts = { heading: `${title} ${path}`.toLowerCase(), text: markdown.toLowerCase() }
  lowered.set(page, texts)
  return texts
}

type Lowered = { heading: string; text: string }
const lowered = new WeakMap<DocsPage, Lowered>()
