import type { TProperties } from "@sinclair/typebox"
import type { Context } from "../platform/context.ts"

/**
 * An address for people, outside the API: it needs no credential, and is in the OpenAPI document only if it says so.
 */
export type Page = {
  /** With `{name}` for each path parameter. */
  path: string
  /** Which of the client's buckets it counts in, if it is limited. */
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

/** A page that others build on, as the OpenAPI document describes it. */
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
  /** Its answers by status; `location` describes the header of that name. */
  answers: Record<number, { description: string; location?: string; html?: string }>
}

/** A redirect if `headers`, in lower case, have a `location`; else HTML, or what their `content-type` says. */
export type PageAnswer = {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | null
}
