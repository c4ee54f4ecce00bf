/** What the operator port answers at one path. */
export type OperatorPage = {
  /** `*` takes every method. */
  method: "GET" | "POST" | "*"
  /** Such as `/console/actors/{id}`; a last `*` stands for any rest. */
  path: string
  /** `probe` and `login` are answered without the token. */
  access: "token" | "probe" | "login"
  answer(visit: OperatorVisit): Response | Promise<Response>
}

export type OperatorVisit = { request: Request; url: URL; params: Record<string, string> }

/** A page as HTML. */
export function htmlAnswer(markup: string, status = 200): Response {
  return new Response(markup, { status, headers: { "content-type": "text/html; charset=utf-8" } })
}

export function textAnswer(text: string, status = 200): Response {
  return new Response(`${text}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } })
}

export function jsonAnswer(document: unknown): Response {
  return Response.json(document)
}

/** Leads the browser to another page, which it asks for with GET. */
export function seeOther(location: string, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 303, headers: { location, ...headers } })
}
