import { join } from "node:path"
import { createClient, dataOf, ServiceError } from "../../clients/typescript/client.ts"

export type Shop = { shop_url: string; stop(): Promise<void> }

/** What the shop's page may know, and the API key that stays on its server. */
export type ShopSettings = {
  api_base_url: string
  publishable_key: string
  api_key: string
  wallets: { address: string }[]
}

/**
 * A brand's shop for development: a page on an origin of its own, which a tap opens and which calls the API from the
 * browser. It listens on the port if that is free, else on any.
 */
export function startShop(settings: ShopSettings, port: number): Shop {
  const server = (port < 65_536 ? listen(settings, port) : null) ?? listen(settings, 0)
  if (!server) throw new Error("there is no free port for the shop page")
  return { shop_url: `http://localhost:${server.port}`, stop: () => server.stop(true) }
}

function listen(settings: ShopSettings, port: number): Bun.Server<undefined> | null {
  try {
    return Bun.serve({ hostname: "localhost", port, fetch: (request) => answer(settings, request) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return null
    throw error
  }
}

async function answer(settings: ShopSettings, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  const { api_base_url, publishable_key, wallets } = settings
  if (pathname === "/settings.json")
    return Response.json({ api_base_url, publishable_key, wallets: wallets.map(({ address }) => address) })
  if (pathname === "/tap") return await tapTestChip(settings)
  const file = files[pathname]
  if (!file) return new Response("There is no such page.", { status: 404 })
  return new Response(Bun.file(join(import.meta.dir, "shop", file)), {
    headers: {
      "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ${api_base_url}`,
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    },
  })
}

const files: Record<string, string> = {
  "/": "shop.html",
  "/shop.css": "shop.css",
  "/shop.js": "shop.js",
}

/** Does what a scan does: the newest test chip that is paired emits a value, and the browser opens the tap's page. */
async function tapTestChip({ api_base_url, api_key }: ShopSettings): Promise<Response> {
  const api = createClient({ base_url: api_base_url, token: api_key })
  try {
    const { chips } = await dataOf(api.GET("/v1/chips", { params: { query: { is_test: true } } }))
    const chip = chips.find(({ unit }) => unit)
    if (!chip)
      return new Response("There is no paired test chip yet: bun run demo makes some.", { status: 404 })
    const { chip_id, e } = await dataOf(
      api.POST("/v1/test-helpers/taps", { body: { chip_id: chip.chip_id } }),
    )
    const location = `/?${new URLSearchParams({ service_chip_id: chip_id, service_e: e })}`
    return new Response(null, { status: 302, headers: { location } })
  } catch (error) {
    if (error instanceof ServiceError) return new Response(error.message, { status: 502 })
    throw error
  }
}
