import type { MiddlewareHandler } from "hono"

/**
 * Accepts only forms: somebody's webhook endpoint may point at this port, and its deliveries, whose content they
 * choose, are JSON and carry no foreign origin.
 */
export const takeForm: MiddlewareHandler = async (c, next) => {
  const [type = ""] = (c.req.header("content-type") ?? "").split(";")
  if (type.trim().toLowerCase() === "application/x-www-form-urlencoded") return await next()
  return c.text("Send the body as a form: application/x-www-form-urlencoded.\n", 415)
}
