import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import { Hono, type HonoRequest, type MiddlewareHandler } from "hono"
import { getCookie, setCookie } from "hono/cookie"
import { createBuckets } from "../../http/buckets.ts"
import { networkOf } from "../../http/client-address.ts"
import { isLoopback } from "../../platform/config.ts"
import type { Context } from "../../platform/context.ts"
import { html } from "../../platform/html.ts"
import { shellPage } from "../console/shell.ts"
import { takeForm } from "../console/take-form.ts"

type Access = {
  /** Refuses pages of other sites and, if there is no token, other machines. */
  refuseStrangers: MiddlewareHandler
  /** Lets in whoever presents the token or has logged in with it; others are told how. */
  requireToken: MiddlewareHandler
  loginPages: Hono<{ Bindings: { peer: string } }>
}

/**
 * Who may use the operator port. With `OPERATOR_TOKEN`: whoever presents it as a bearer token, or has logged in with
 * it. Without: whoever is on this machine, except pages of other sites.
 */
export function createAccess(context: Context): Access {
  const { config, clock } = context
  const token = config.operator_token
  return {
    async refuseStrangers(c, next) {
      if (isFromAnotherSite(c.req)) return c.text("Requests from other sites are refused.\n", 403)
      if (token === null && !isAskedAsLoopback(c.req))
        return c.text(
          "Without OPERATOR_TOKEN these pages can be opened only from this machine, at localhost.\n",
          403,
        )
      return await next()
    },
    async requireToken(c, next) {
      if (token === null) return await next()
      const [, bearer] = /^Bearer (.+)$/i.exec(c.req.header("authorization") ?? "") ?? []
      const session = getCookie(c, "operator") ?? ""
      if (bearer ? isSame(bearer, token) : isOpen(session, token, clock())) return await next()
      if (c.req.method === "GET" && c.req.header("accept")?.includes("text/html"))
        return c.redirect("/login", 303)
      const challenge = { "www-authenticate": "Bearer" }
      return c.text("Send OPERATOR_TOKEN as a bearer token, or log in at /login.\n", 401, challenge)
    },
    loginPages: createLoginPages(context),
  }
}

function createLoginPages({ config, clock, steadyClock }: Context): Access["loginPages"] {
  const token = config.operator_token
  const wrongTokens = createBuckets(null, steadyClock)("wrong_token", mostWrongTokens)

  return new Hono<{ Bindings: { peer: string } }>()
    .get("/login", (c) => c.html(loginPage("")))
    .post("/login", takeForm, async (c) => {
      const given = new URLSearchParams(await c.req.text()).get("token") ?? ""
      if (token === null) return c.redirect("/console", 303)
      const client = networkOf(c.env.peer)
      const { is_exhausted, milliseconds_until_next } = await wrongTokens.look(client)
      if (is_exhausted) {
        const wait = Math.ceil(milliseconds_until_next / 1_000)
        c.header("retry-after", String(wait))
        return c.html(loginPage(`Too many wrong tokens: wait ${wait} seconds.`), 429)
      }
      if (!isSame(given.trim(), token)) {
        await wrongTokens.count(client)
        return c.html(loginPage("This is not the right token."), 403)
      }
      const until = String(clock().getTime() + sessionSeconds * 1000)
      const cookie = { path: "/", httpOnly: true, sameSite: "Strict", maxAge: sessionSeconds } as const
      setCookie(c, "operator", `${until}.${sealOf(token, until)}`, cookie)
      return c.redirect("/console", 303)
    })
}

const sessionSeconds = 12 * 3600
/** Per client; after that not even the right token is checked. */
const mostWrongTokens = { requests: 10, seconds: 60 }

function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}

/** Whether a cookie is from a login with this token and has not expired. */
function isOpen(session: string, token: string, now: Date): boolean {
  const [, until = "", seal = ""] = /^(\d{1,15})\.([0-9a-f]{64})$/.exec(session) ?? []
  return isSame(seal, sealOf(token, until)) && Number(until) > now.getTime()
}

function sealOf(token: string, until: string): string {
  return createHmac("sha256", token).update(`operator session until ${until}`).digest("hex")
}

/** Browsers name the page that sends a form; programs name none. */
function isFromAnotherSite(request: HonoRequest): boolean {
  if (request.method === "GET" || request.method === "HEAD") return false
  const origin = request.header("origin")
  if (origin === undefined) return request.header("sec-fetch-site") !== undefined
  return !URL.canParse(origin) || new URL(origin).host !== request.header("host")
}

/** A foreign name that resolves to this machine is refused: its pages could read these (DNS rebinding). */
function isAskedAsLoopback(request: HonoRequest): boolean {
  const host = request.header("host") ?? ""
  return isLoopback(host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"))
}

function loginPage(complaint: string): string {
  return shellPage(
    "Log in",
    html`<main id="main" class="login">
<h1>Log in</h1>
<form method="post" action="/login">
<label for="token">Operator token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
${complaint && html`<p role="alert" class="alert">${complaint}</p>`}
<button>Log in</button>
</form>
</main>`,
  )
}
