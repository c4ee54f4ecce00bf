import type { TProperties } from "@sinclair/typebox"
import type { Context } from "../platform/context.ts"

/** An address for people, outside the API: it needs no credential, and is in the OpenAPI document only where it says so. */
export type Page = {
  /** With `{name}` for each path parameter. */
  path: string
  /** Which of each client's buckets it counts in, where it may be opened only so often. */
  bucket?: "tap_redirect" | "metadata"
  /** Whether pages of any origin may read it: it is the same for everybody. */
  is_readable_from_anywhere?: true
  open(
    context: Context,
    asked: {
      params: Record<string, string>
      query: URLSearchParams
      accept: string
      if_none_match: string | null
    },
  ): Promise<PageAnswer>
}

/** A page that others build on, as the OpenAPI document tells of it. */
export type DocumentedPage = Page & { documented: PageDocumentation }

type PageDocumentation = {
  /** Its stable name, never renamed in place. */
  operation: string
  summary: string
  description: string
  /** The last part of the path of the resource that it belongs to. */
  resource: string
  params: TProperties
  /** All of them optional. */
  query: TProperties
  /** What it answers by status; `location` says what the header of that name holds. */
  answers: Record<number, { description: string; location?: string; html?: string }>
}

/** A redirect when `headers`, in lower case, have a `location`; else HTML, or whatever their `content-type` says. */
export type PageAnswer = {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | null
}
