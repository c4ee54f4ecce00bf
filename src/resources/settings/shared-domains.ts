import { edgeChild, edgeLength, edgeStart, labelText, rulesRoot } from "tldts/dist/es6/src/data/trie.js"

/** Returns whether others can get names under a domain that is not a public suffix, as in `NAME.s3.amazonaws.com`. */
export function isShared(domain: string): boolean {
  return hasPublicSuffixBelow(domain) || unlisted.some((suffix) => isAtOrAbove(domain, suffix))
}

/** Domains that provide names to customers but are not on the Public Suffix List; a region may precede them. */
const unlisted = [
  "cloudapp.azure.com",
  "oraclecloud.com",
  "aliyuncs.com",
  "myqcloud.com",
  "googleusercontent.com",
]

function isAtOrAbove(domain: string, suffix: string): boolean {
  const withoutRegion = domain.split(".").slice(1).join(".")
  return [domain, withoutRegion].includes(suffix) || suffix.endsWith(`.${domain}`)
}

function hasPublicSuffixBelow(domain: string): boolean {
  let node = rulesRoot
  for (const label of domain.split(".").reverse()) {
    const edge = edgesOf(node).find((each) => labelOf(each) === label)
    if (edge === undefined) return false
    node = edgeChild[edge] ?? rulesRoot
  }
  return edgesOf(node).length > 0
}

function edgesOf(node: number): number[] {
  const first = edgeStart[node] ?? 0
  return Array.from({ length: (edgeStart[node + 1] ?? first) - first }, (_, index) => first + index)
}

function labelOf(edge: number): string {
  const start = labelStarts[edge] ?? 0
  return labelText.slice(start, start + (edgeLength[edge] ?? 0))
}

const labelStarts = startsOf(edgeLength)

function startsOf(lengths: Uint8Array): number[] {
  let start = 0
  return Array.from(lengths, (length) => {
    start += length
    return start - length
  })
}
