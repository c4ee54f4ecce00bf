import type { Route } from "../http/route.ts"
import { ApiError } from "../platform/errors.ts"
import { pages } from "./pages.ts"
import { routes } from "./routes.ts"

/** A method, and what the paths of an operation or page look like. */
type Address = { method: string; pattern: RegExp }

/** The addresses of these routes and of all pages. */
export function addressesOf(mounted: readonly Route[]): Address[] {
  const opened = pages.map(({ path }) => ({ method: "GET", path }))
  return [...mounted, ...opened].map(({ method, path }) => ({ method, pattern: expressionOf(path) }))
}

/** Why a request finds no route. */
export function noRoute(addresses: readonly Address[], request: Request): ApiError {
  const isKnown = methodsAt(addresses, request).length > 0
  return new ApiError(isKnown ? "request.method_not_allowed" : "not_found.resource")
}

/** The methods of the request's path, each once. */
export function methodsAt(addresses: readonly Address[], request: Request): string[] {
  const path = pathOf(request)
  const methods = addresses.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
  return [...new Set(methods)]
}

const readableFromAnywhere = [...pages, ...routes].flatMap(({ path, is_readable_from_anywhere }) =>
  is_readable_from_anywhere ? [expressionOf(path)] : [],
)

/** Whether pages of any origin may read what is at the request's path. */
export function isReadableFromAnywhere(request: Request): boolean {
  const path = pathOf(request)
  return readableFromAnywhere.some((expression) => expression.test(path))
}

/** The path without the query, as it came. */
export function pathOf(request: Request): string {
  return request.url.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/, "")
}

function expressionOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`)
}
