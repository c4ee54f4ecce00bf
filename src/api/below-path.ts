import type { Answer, FileAnswer, StreamAnswer } from "../http/envelope.ts"

type AnyAnswer = Answer | FileAnswer | StreamAnswer

/**
 * Adapts responses to an `API_BASE_URL` with a path, which a proxy takes off each request: the URLs in `Location` and in
 * the links of pages begin with that path. Without a path every response stays as it is.
 */
export function createBelowPath(apiBaseUrl: string): (answer: AnyAnswer) => AnyAnswer {
  const path = new URL(apiBaseUrl).pathname.replace(/\/$/, "")
  if (path === "") return (answer) => answer
  return (answer) => {
    const { location, "content-type": type = "" } = answer.headers
    const headers = {
      ...answer.headers,
      ...(location?.startsWith("/") && { location: `${path}${location}` }),
    }
    const [, links] = linked.find(([kind]) => type.startsWith(kind)) ?? []
    if (!links || typeof answer.body !== "string") return { ...answer, headers } as AnyAnswer
    return { ...answer, headers, body: answer.body.replaceAll(links, (_link, before) => `${before}${path}/`) }
  }
}

/** How links begin in the service's own texts; what others wrote has no such quotation marks in HTML. */
const linked: [type: string, links: RegExp][] = [
  ["text/html", /((?:href|src|action)="|url\(")\/(?!\/)/g],
  ["text/css", /(url\(")\/(?!\/)/g],
  ["text/markdown", /(\]\()\/(?!\/)/g],
]
