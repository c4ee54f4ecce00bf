import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import { isLoopback } from "../config.ts"
import { html, page } from "../console/html.ts"
import type { Context } from "../context.ts"
import { htmlAnswer, type OperatorPage, seeOther, textAnswer } from "./page.ts"

export type Access = {
  /** What to answer instead of the page; null lets the request in. */
  refuse(request: Request, access: OperatorPage["access"]): Response | null
  pages: OperatorPage[]
}

/**
 * Who may use the operator port. With `OPERATOR_TOKEN`: who presents it as a bearer token, or has logged in with it.
 * Without: whoever is on this machine, but no page of another site.
 */
export function createAccess({ config, clock }: Context): Access {
  const token = config.operator_token

  function refuse(request: Request, access: OperatorPage["access"]): Response | null {
    if (access === "probe") return null
    if (isFromAnotherSite(request)) return textAnswer("Another site may not do this.", 403)
    if (token === null)
      return isAskedAsLoopback(request)
        ? null
        : textAnswer("Without OPERATOR_TOKEN these pages are for this machine only, as localhost.", 403)
    if (access === "login" || holdsToken(request, token)) return null
    if (request.method === "GET" && request.headers.get("accept")?.includes("text/html"))
      return seeOther("/login")
    const headers = { "www-authenticate": "Bearer" }
    return new Response("Present OPERATOR_TOKEN as a bearer token, or log in at /login.\n", {
      status: 401,
      headers,
    })
  }

  function holdsToken(request: Request, expected: string): boolean {
    const [, bearer] = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "") ?? []
    if (bearer) return isSame(bearer, expected)
    const [, until = "", seal = ""] =
      /(?:^|; ?)operator=(\d{1,15})\.([0-9a-f]{64})(?:;|$)/.exec(request.headers.get("cookie") ?? "") ?? []
    return isSame(seal, sealOf(expected, until)) && Number(until) > clock().getTime()
  }

  async function logIn({ request }: { request: Request }): Promise<Response> {
    const given = new URLSearchParams(await request.text()).get("token") ?? ""
    if (token === null) return seeOther("/console")
    if (!isSame(given.trim(), token)) return htmlAnswer(loginPage("This is not the token."), 403)
    const until = String(clock().getTime() + sessionSeconds * 1000)
    const cookie = `operator=${until}.${sealOf(token, until)}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${sessionSeconds}`
    return seeOther("/console", { "set-cookie": cookie })
  }

  return {
    refuse,
    pages: [
      { method: "GET", path: "/login", access: "login", answer: () => htmlAnswer(loginPage("")) },
      { method: "POST", path: "/login", access: "login", answer: logIn },
    ],
  }
}

const sessionSeconds = 12 * 3600

function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}

function sealOf(token: string, until: string): string {
  return createHmac("sha256", token).update(`operator session until ${until}`).digest("hex")
}

/** Browsers name the page that sends a form; programs have none to name. */
function isFromAnotherSite(request: Request): boolean {
  if (request.method === "GET" || request.method === "HEAD") return false
  const origin = request.headers.get("origin")
  if (origin === null) return request.headers.has("sec-fetch-site")
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.get("host")
}

/** A name that somebody else's name server leads here is refused: its pages would read these. */
function isAskedAsLoopback(request: Request): boolean {
  const host = request.headers.get("host") ?? ""
  return isLoopback(host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"))
}

function loginPage(complaint: string): string {
  return page(
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
