import type { Context } from "../context.ts"

/** An address for people, outside the API: it needs no credential and is no operation of the OpenAPI document. */
export type Page = {
  /** With `{name}` for each path parameter. */
  path: string
  open(
    context: Context,
    asked: { params: Record<string, string>; query: URLSearchParams },
  ): Promise<PageAnswer>
}

/** HTML, or a redirect when `headers` has a `location`; `headers` in lower case. */
export type PageAnswer = { status: number; headers: Record<string, string>; html: string | null }
