import { join } from "node:path"
import { createClient, dataOf, type ServiceClient, ServiceError } from "../../clients/typescript/client.ts"
import { waitForCollection, waitForUnit } from "../../clients/typescript/wait-for.ts"
import { fontAt } from "../platform/look/fonts.ts"
import { icon, look } from "../platform/look/look.ts"
import { localChain } from "./local-chain.ts"
import { sendFromTestWallet } from "./test-wallet.ts"

type Shop = { shop_url: string; stop(): Promise<void> }

/** What the shop's page may know, and what stays on its server: the API key and the test wallets' keys. */
type ShopSettings = {
  api_base_url: string
  docs_url: string
  publishable_key: string
  api_key: string
  wallets: { address: string; private_key: string }[]
  chain: { id: number; rpc_url: string }
}

/**
 * A brand's shop for development: a page on its own origin, opened by a tap, that calls the API from the browser.
 * Listens on the port if it is free, else on any.
 */
export function startShop(settings: ShopSettings, port: number): Shop {
  const server = (port < 65_536 ? listen(settings, port) : null) ?? listen(settings, 0)
  if (!server) throw new Error("there is no free port for the shop page")
  return { shop_url: `http://localhost:${server.port}`, stop: () => server.stop(true) }
}

function listen(settings: ShopSettings, port: number): Bun.Server<undefined> | null {
  try {
    const fetch = (request: Request) => answer(settings, request)
    return Bun.serve({ hostname: "localhost", port, idleTimeout: 120, fetch })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return null
    throw error
  }
}

async function answer(settings: ShopSettings, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const { api_base_url, docs_url, publishable_key, wallets, chain } = settings
  if (pathname === "/settings.json") {
    const accounts = wallets.map(({ address }) => address)
    return Response.json({
      api_base_url,
      docs_url,
      publishable_key,
      chain: { name: localChain.name, ...chain },
      wallets: accounts,
    })
  }
  if (pathname === "/tap") return await tapTestChip(settings, search === "?new")
  if (pathname === "/wallet" && request.method === "POST") return await sendFromTestWallet(settings, request)
  if (pathname === "/look.css") return new Response(look, { headers: { "content-type": "text/css" } })
  if (pathname === "/icon.svg") return new Response(icon, { headers: { "content-type": "image/svg+xml" } })
  const font = fontAt(pathname)
  if (font) return font
  const file = files[pathname]
  if (!file) return new Response("There is no such page.", { status: 404 })
  return new Response(Bun.file(join(import.meta.dir, "shop", file)), {
    headers: {
      "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: https:; connect-src 'self' ${api_base_url}`,
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    },
  })
}

const files: Record<string, string> = {
  "/": "shop.html",
  "/shop.css": "shop.css",
  "/shop.js": "shop.js",
  "/service.js": "service.js",
  "/wallets.js": "wallets.js",
  "/words.js": "words.js",
  "/test-wallets.js": "test-wallets.js",
  "/jacket.svg": "jacket.svg",
}

/** Does what a scan does: a test chip emits a value, and the browser is sent to the tap's page. */
async function tapTestChip({ api_base_url, api_key }: ShopSettings, isNew: boolean): Promise<Response> {
  const api = createClient({ base_url: api_base_url, token: api_key })
  try {
    const chipId = (isNew ? null : await newestChip(api)) ?? (await taggedJacket(api))
    const { chip_id, e } = await dataOf(api.POST("/v1/test-helpers/taps", { body: { chip_id: chipId } }))
    const location = `/?${new URLSearchParams({ service_chip_id: chip_id, service_e: e })}`
    return new Response(null, { status: 302, headers: { location } })
  } catch (error) {
    if (error instanceof ServiceError) return new Response(error.message, { status: 502 })
    throw error
  }
}

async function newestChip(api: ServiceClient): Promise<string | null> {
  const { chips } = await dataOf(api.GET("/v1/chips", { params: { query: { is_test: true } } }))
  return chips.find(({ unit }) => unit)?.chip_id ?? null
}

const collectionName = "Autumn Jackets"

/** A new jacket of the shop's collection, tagged and issued, which takes the chain a few seconds. */
async function taggedJacket(api: ServiceClient): Promise<string> {
  const { collections } = await dataOf(api.GET("/v1/collections"))
  const known = collections.find(
    ({ name, contract }) => name === collectionName && contract.status !== "failed",
  )
  const { id: collection_id } =
    known ?? (await dataOf(api.POST("/v1/collections", { body: { name: collectionName } })))
  await waitForCollection(api, collection_id)
  const unit = await dataOf(api.POST("/v1/units", { body: { collection_id, name: "Moss Jacket" } }))
  const { chip_id } = await dataOf(api.POST("/v1/chips", { body: { unit_id: unit.id, is_test: true } }))
  await waitForUnit(api, unit.id)
  return chip_id
}
