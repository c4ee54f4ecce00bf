import { afterAll, beforeAll, expect, test } from "bun:test"
import { createApp } from "../../src/api/app.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { createCustomer, type HttpService, startService } from "../harness/api.ts"

// A service behind a proxy that strips the path of API_BASE_URL from each request and forwards nothing else.

let service: HttpService
let app: ReturnType<typeof createApp>
let proxy: Bun.Server<undefined>
let base: string

beforeAll(async () => {
  service = await startService()
  const port = await freePort()
  proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (!pathname.startsWith("/chips/")) return new Response("not the service", { status: 404 })
      const { method, headers, body } = request
      const address = `http://127.0.0.1:${port}${pathname.slice("/chips".length)}${search}`
      return fetch(address, { method, headers, body, redirect: "manual" })
    },
  })
  base = `http://127.0.0.1:${proxy.port}/chips`
  const config = { ...service.context.config, api_base_url: base, docs_url: `${base}/docs` }
  app = createApp({ ...service.context, config }).listen({ hostname: "127.0.0.1", port })
})
afterAll(async () => {
  await app.stop(true)
  await proxy.stop(true)
  await service.close()
})

test("a created resource is at its Location, also when the response is replayed", async () => {
  const { key } = await createCustomer(service)
  const make = () =>
    fetch(`${base}/v1/collections`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "idempotency-key": "once",
      },
      body: JSON.stringify({ name: "Jackets" }),
    })
  for (const made of [await make(), await make()]) {
    const { id } = (await made.json()) as { id: string }
    const address = new URL(made.headers.get("location") ?? "", made.url)
    const read = await fetch(address, { headers: { authorization: `Bearer ${key}` } })
    expect(address.href).toBe(`${base}/v1/collections/${id}`)
    expect(await read.json()).toMatchObject({ id })
  }
})

const pages = [
  "/",
  "/docs",
  "/docs/search?q=claim",
  "/docs/verify-receipt",
  "/nothing",
  "/docs/style.css",
  "/docs.md",
]

test.each(pages)("every link in %s leads to this service", async (page) => {
  const response = await fetch(`${base}${page}`, { headers: { accept: "text/html" } })
  const text = await response.text()
  const links = [...text.matchAll(/(?:(?:href|src|action)="|url\("|\]\()(\/[^")#]*)/g)].map(
    ([, link = ""]) => link,
  )
  expect(links.length).toBeGreaterThan(0)
  for (const link of new Set(links)) {
    const { status } = await fetch(new URL(link, response.url))
    expect(`${link} ${status}`).toBe(`${link} 200`)
  }
})

test("a page's script sends its search to this service", async () => {
  const script = await (await fetch(`${base}/docs/script.js`)).text()
  const [, address] = /fetch\(new URL\(`(\w+)\?.+`, import\.meta\.url\)\)/.exec(script) ?? []
  expect(await (await fetch(`${base}/docs/${address}?q=claim`)).text()).toContain('id="results"')
})
