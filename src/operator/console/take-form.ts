import type { MiddlewareHandler } from "hono"

/**
 * Takes what a form sends and refuses everything else: somebody's webhook endpoint may lead to this port, and what it is
 * sent, in words that are theirs, comes as JSON and names no page of another site.
 */
export const takeForm: MiddlewareHandler = async (c, next) => {
  const [type = ""] = (c.req.header("content-type") ?? "").split(";")
  if (type.trim().toLowerCase() === "application/x-www-form-urlencoded") return await next()
  return c.text("Send a form: application/x-www-form-urlencoded.\n", 415)
}
