/** An option as `createClient` takes it. A function is called before each attempt. */
export type Option = string | (() => string | Promise<string>)

/** An option of `createClient` that no retry puts right. */
export class WrongOption extends Error {
  override name = "WrongOption"
}

/** The base URL, without slashes at its end. Throws `WrongOption` if it is not http or https. */
export async function baseUrlOf(option: Option): Promise<string> {
  const url = await told(option)
  // In a page, a path leads to the page's own origin.
  const isPath = url.startsWith("/") && "location" in globalThis
  if (isPath || /^https?:\/\/[^/]/i.test(url)) return url.replace(/\/+$/, "")
  throw new WrongOption(
    "base_url is missing or does not begin with http:// or https://: give the URL of the API",
  )
}

/** Throws `WrongOption` if there is no token. */
export async function tokenOf(option: Option): Promise<string> {
  const token = await told(option)
  if (token !== "") return token
  throw new WrongOption("token is missing: give an API key, a session token or a publishable key")
}

/** Both often come from an environment, which may lack them or end them with a line break. */
async function told(option: Option | null | undefined): Promise<string> {
  const value: unknown = typeof option === "function" ? await option() : option
  return typeof value === "string" ? value.trim() : ""
}
