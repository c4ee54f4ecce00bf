import type { Answer, FileAnswer, StreamAnswer } from "../http/envelope.ts"

type AnyAnswer = Answer | FileAnswer | StreamAnswer

/**
 * The same answer where `API_BASE_URL` has a path, which a proxy takes off each request: what it says of addresses on
 * this service begins with that path, in `Location` and in the links of pages.
 */
export function belowPath(apiBaseUrl: string, answer: AnyAnswer): AnyAnswer {
  const path = new URL(apiBaseUrl).pathname.replace(/\/$/, "")
  if (path === "") return answer
  const { location, "content-type": type = "" } = answer.headers
  const headers = { ...answer.headers, ...(location?.startsWith("/") && { location: `${path}${location}` }) }
  const [, links] = linked.find(([kind]) => type.startsWith(kind)) ?? []
  if (!links || typeof answer.body !== "string") return { ...answer, headers } as AnyAnswer
  return { ...answer, headers, body: answer.body.replaceAll(links, `$1${path}/`) }
}

/** How addresses begin in texts of the service's own; what others wrote has no such quotation marks in HTML. */
const linked: [type: string, links: RegExp][] = [
  ["text/html", /((?:href|src|action)="|url\(")\/(?!\/)/g],
  ["text/css", /(url\(")\/(?!\/)/g],
  ["text/markdown", /(\]\()\/(?!\/)/g],
]
