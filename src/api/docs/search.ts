import type { DocsPage } from "./site.ts"

/**
 * The pages that contain all of the question's first words; those with the words in the title first, then by
 * frequency.
 */
export function search(pages: readonly DocsPage[], question: string): DocsPage[] {
  const asked = question.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? []
  // Each word costs a scan of every page, which blocks all other requests.
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

function scoreOf({ title, path, markdown, group }: DocsPage, words: string[]): number {
  const heading = `${title} ${path}`.toLowerCase()
  const text = markdown.toLowerCase()
  let score = 0
  for (const word of words) {
    const times = text.split(word).length - 1
    const isInHeading = heading.includes(word)
    if (times === 0 && !isInHeading) return 0
    score += Math.min(times, 10) + (isInHeading ? 100 : 0)
  }
  return score + (group === "Guides" ? 20 : 0)
}
