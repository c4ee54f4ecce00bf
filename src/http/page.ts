import type { TProperties } from "@sinclair/typebox"
import type { Context } from "../platform/context.ts"

/** A page for people, outside the API: needs no credential, and is in the OpenAPI document only if it is documented. */
export type Page = {
  /** With `{name}` for each path parameter. */
  path: string
  /** The client's rate limit bucket that it counts in, if any. */
  bucket?: "tap_redirect" | "metadata"
  /** Whether pages of any origin may read it, since it is the same for everybody. */
  is_readable_from_anywhere?: true
  documented?: PageDocumentation
  open(
    context: Context,
    asked: {
      params: Record<string, string>
      query: URLSearchParams
      accept: string
      accept_language: string
      if_none_match: string | null
    },
  ): Promise<PageAnswer>
}

/** A page that integrators rely on, as described in the OpenAPI document. */
export type DocumentedPage = Page & { documented: PageDocumentation }

type PageDocumentation = {
  /** A stable name, never changed. */
  operation: string
  summary: string
  description: string
  /** The last path segment of the resource that it belongs to. */
  resource: string
  params: TProperties
  /** All optional. */
  query: TProperties
  /** Responses by status; `location` describes the header of that name. */
  answers: Record<number, { description: string; location?: string; html?: string }>
}

/** A redirect if `headers` (lower case) have a `location`; otherwise HTML, or what their `content-type` says. */
export type PageAnswer = {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | null
}
