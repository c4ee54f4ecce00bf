import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { createClient, dataOf, type ServiceClient } from "../../clients/typescript/client.ts"
import { waitForUnit } from "../../clients/typescript/wait-for.ts"
import { type Jwks, verifyReceipt } from "../../clients/verify-receipt/verify-receipt.ts"
import { withDevEnvironment } from "../../src/dev/environment.ts"
import { startShop } from "../../src/dev/shop.ts"
import type { DevService } from "../../src/dev/start.ts"
import { makeTag } from "../../src/dev/tags/make-tag.ts"
import { readAddress } from "../../src/dev/tags/software-tag.ts"
import { rolesOf } from "../../src/engine/sun/key-schemes.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { icon } from "../../src/platform/look/look.ts"
import { flawsOf, useBrowser } from "../harness/browser.ts"
import { startDevHere } from "../harness/dev-service.ts"

const folder = mkdtempSync(join(tmpdir(), "service api "))
const quiet = { PORT: "0", DEV_CHAIN_PORT: "0", OPERATOR_PORT: "0", LOG_LEVEL: "error" }
const environment = { ...process.env, ...quiet, DATA_DIR: folder }
const { newPage } = useBrowser()
let dev: { service: DevService; stop(): Promise<void> }
let api: ServiceClient
let chipId: string

beforeAll(async () => {
  dev = await startDevHere(environment)
  api = createClient({ base_url: dev.service.base_url, token: dev.service.api_key })
  const { headers } = await fetch(`${dev.service.shop_url}/tap`, { redirect: "manual" })
  chipId =
    new URL(String(headers.get("location")), dev.service.shop_url).searchParams.get("service_chip_id") ?? ""
}, 60_000)
afterAll(async () => {
  await dev.stop()
  rmSync(folder, { recursive: true, force: true })
})

test("the first tap on a new service finds a jacket created for it", async () => {
  const { is_test, unit } = await dataOf(
    api.GET("/v1/chips/{chip_id}", { params: { path: { chip_id: chipId } } }),
  )
  expect([is_test, unit?.name, unit?.collection?.token.status]).toEqual([true, "Moss Jacket", "active"])
})

test("no page that a developer visits can send requests to the local chain, by any method", async () => {
  const ask = async (method: string, headers: Record<string, string>) => {
    const body = method === "POST" ? '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}' : null
    const { status, headers: said } = await fetch(dev.service.chain.rpc_url, { method, headers, body })
    return [status, said.get("access-control-allow-origin")]
  }
  const json = { "content-type": "application/json" }
  expect(await ask("POST", json)).toEqual([200, null])
  expect(await ask("POST", { ...json, origin: "chrome-extension://a-wallet" })).toEqual([200, null])
  for (const origin of ["https://elsewhere.example", "http://localhost:5173", "null"]) {
    const asked = {
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type",
    }
    expect(await ask("OPTIONS", { ...asked, origin })).toEqual([403, null])
    expect(await ask("POST", { ...json, origin })).toEqual([403, null])
    expect(await ask("POST", { "content-type": "text/plain", origin })).toEqual([403, null])
    const upgrade = { upgrade: "websocket", connection: "upgrade", "sec-websocket-version": "13" }
    expect(await ask("GET", { ...upgrade, "sec-websocket-key": btoa("0123456789abcdef"), origin })).toEqual([
      403,
      null,
    ])
  }
})

describe("the shop's page, on an origin of its own", () => {
  test("leads from a tap to a claim and on to a friend by keyboard alone, accessibly in words and looks", async () => {
    const shop = await newPage({ width: 390 })
    const { page } = shop
    const [wallet, friend] = dev.service.wallets
    const flaws: string[] = []
    await page.goto(dev.service.shop_url)
    await sees(page, "#status", "Hold your phone to the tag in your jacket to see it here.")
    flaws.push(...(await flawsOf(shop, "shop-ready")))

    await press(page, "Tap the jacket")
    await sees(page, "#status", "✓ This jacket is genuine.")
    expect(await page.textContent("#unit-name")).toBe("Moss Jacket")
    expect(await page.textContent("#serial")).toBe("1")
    expect(await page.textContent("#chip")).toBe(chipId)
    expect(await page.textContent("#request-id")).toMatch(/^req_[0-9a-f-]{36}$/)
    expect(await page.textContent("#remaining")).toMatch(/^\d+$/)
    const receipt = new URL((await page.getAttribute("#receipt", "href")) ?? "").hash.slice(
      "#receipt=".length,
    )
    const jwks = (await (await fetch(`${dev.service.base_url}/.well-known/jwks.json`)).json()) as Jwks
    const { serial } = await verifyReceipt(receipt, jwks, dev.service.base_url)
    expect(serial).toBe(1)
    flaws.push(...(await flawsOf(shop, "shop-genuine")))

    await press(page, "Claim this jacket")
    await sees(page, "#recipient-wrong", "This is not a wallet address")
    expect(await page.evaluate("document.activeElement.id")).toBe("recipient")
    expect(await page.getAttribute("#recipient", "aria-invalid")).toBe("true")
    flaws.push(...(await flawsOf(shop, "shop-wrong-address")))

    await press(page, "Connect Test wallet")
    await sees(page, "#outcome", "Test wallet is connected")
    expect(await page.inputValue("#recipient")).toBe(wallet?.address ?? "")
    await press(page, "Claim this jacket")
    await sees(page, "#outcome", "On its way to the chain")
    flaws.push(...(await flawsOf(shop, "shop-claiming")))
    await sees(page, "#ownership", "It is yours")
    expect(await page.textContent("#owner")).toBe(wallet?.address ?? "")
    flaws.push(...(await flawsOf(shop, "shop-claimed")))

    await press(page, "Hand it on to somebody else")
    await press(page, "Connect Friend's wallet")
    await tabTo(page, "friend")
    await page.keyboard.type(friend?.address ?? "")
    await page.keyboard.press("Enter")
    await sees(page, "#outcome", "Connect the wallet that owns the jacket first.")
    flaws.push(...(await flawsOf(shop, "shop-transfer")))
    await press(page, "Connect Test wallet")
    await tabTo(page, "friend")
    await page.keyboard.press("Enter")
    await sees(page, "#outcome", "Handed on")
    expect(await page.textContent("#owner")).toBe(friend?.address ?? "")
    expect(await page.textContent("#transaction")).toMatch(/^0x[0-9a-f]{64}$/)
    flaws.push(...(await flawsOf(shop, "shop-handed-on")))

    await press(page, "Tap the jacket")
    await sees(page, "#ownership", "It has an owner")
    expect(await page.textContent("#owner")).toBe(friend?.address ?? "")
    expect(await page.locator("#claim").isVisible()).toBe(false)
    flaws.push(...(await flawsOf(shop, "shop-not-yours")))
    await press(page, "Hand it on to somebody else")
    await press(page, "Connect Friend's wallet")
    await sees(page, "#ownership", "It is yours")

    expect(flaws).toEqual([])
    expect(shop.complaints).toEqual([expect.stringContaining("400 (Bad Request)")])
    const own = [dev.service.shop_url, dev.service.base_url, "data:"]
    expect(shop.requested.filter((url) => !own.some((each) => url.startsWith(each)))).toEqual([])
  }, 90_000)

  test("unpacks a new jacket, and continues with its tap after a reload, but not elsewhere", async () => {
    const { page } = await newPage()
    await page.goto(`${dev.service.shop_url}/tap?new`)
    await sees(page, "#status", "This jacket is genuine.")
    expect(await page.textContent("#chip")).not.toBe(chipId)
    await page.reload()
    await sees(page, "#status", "This jacket is genuine.")
    const elsewhere = (await newPage()).page
    await elsewhere.goto(page.url())
    await sees(elsewhere, "#status", "This tap was already used.")
  }, 60_000)

  test("shows the unit's image, or the shop's own if it cannot be loaded", async () => {
    const { headers } = await fetch(`${dev.service.shop_url}/tap`, { redirect: "manual" })
    const tapped = new URL(String(headers.get("location")), dev.service.shop_url).searchParams
    const chip_id = tapped.get("service_chip_id") ?? ""
    const { unit } = await dataOf(api.GET("/v1/chips/{chip_id}", { params: { path: { chip_id } } }))
    const params = { path: { unit_id: unit?.id ?? "" } }
    const picture = (image_url: string | null) =>
      dataOf(api.PATCH("/v1/units/{unit_id}", { params, body: { image_url } }))

    const shop = await newPage()
    const { page } = shop
    await page.route("https://brand.example/**", async (route) => {
      if (route.request().url().endsWith("gone.svg")) await route.abort()
      else await route.fulfill({ body: icon, contentType: "image/svg+xml" })
    })
    await picture("https://brand.example/moss.svg")
    await page.goto(`${dev.service.shop_url}/tap`)
    await page.locator('#picture[src="https://brand.example/moss.svg"][alt="Moss Jacket"]').waitFor()
    expect(await page.evaluate("document.getElementById('picture').naturalWidth")).toBeGreaterThan(0)
    expect(await flawsOf(shop, "shop-picture")).toEqual([])
    const { contract, token } = unit?.collection ?? {}
    const place = `${contract?.chain_id}/${contract?.address}/${token?.serial}`
    await page.goto(`${dev.service.base_url}/metadata/${place}/page`)
    expect(await page.textContent("h1")).toBe("Moss Jacket")
    expect(await flawsOf(shop, "token")).toEqual([])
    expect(shop.complaints).toEqual([])

    await picture("https://brand.example/gone.svg")
    const failed = page.waitForEvent("requestfailed")
    await page.goto(`${dev.service.shop_url}/tap`)
    expect((await failed).url()).toBe("https://brand.example/gone.svg")
    await sees(page, "#status", "This jacket is genuine.")
    expect(await page.getAttribute("#picture", "src")).toBe("/jacket.svg")
    await picture(null)
  }, 60_000)

  test("recognizes a genuine tag with tamper detection by all parameters of its URL", async () => {
    const tag = makeTag(`${dev.service.base_url}/t/{chip_id}`, { mac: true, tamper: true })
    const file = join(folder, "tags.csv")
    const keys = [tag.keys[rolesOf.explicit.meta_read], tag.keys[rolesOf.explicit.file_read]]
    const row = [tag.chip_id, tag.uid, ...keys, true, true].join()
    writeFileSync(file, `chip_id,uid,meta_key,file_key,mac,tamper\n${row}\n`)
    const command = ["chips", "import", "--organization", dev.service.organization_id, "--file", file]
    const operator = Bun.spawn([process.execPath, "src/operator.ts", ...command], {
      cwd: join(import.meta.dir, "../.."),
      env: environment,
      stdout: "ignore",
    })
    expect(await operator.exited).toBe(0)

    const { collections } = await dataOf(api.GET("/v1/collections"))
    const redirect_url = dev.service.shop_url
    const body = { collection_id: collections[0]?.id ?? "", name: "Sealed Jacket", redirect_url }
    const { id: unit_id } = await dataOf(api.POST("/v1/units", { body }))
    const read = Object.fromEntries(new URL(readAddress(tag, 1)).searchParams) as { e: string; c: string }
    await dataOf(api.POST("/v1/chips", { body: { unit_id, chip_id: tag.chip_id, ...read } }))
    await waitForUnit(api, unit_id)

    const { page } = await newPage()
    await page.goto(readAddress(tag, 2))
    await sees(page, "#status", "This jacket is genuine.")
    expect(await page.textContent("#unit-name")).toBe("Sealed Jacket")
  }, 60_000)

  test("warns about an unknown tag", async () => {
    const shop = await newPage()
    const query = new URLSearchParams({ service_chip_id: "04A1B2C3D4", service_e: "0".repeat(32) })
    await shop.page.goto(`${dev.service.shop_url}/?${query}`)
    await sees(shop.page, "#status", "Be careful: it may be a copy.")
    expect(await shop.page.textContent("h1")).toBe("Not verified")
    expect(await flawsOf(shop, "shop-not-verified")).toEqual([])
  }, 30_000)
})

test("the test wallet sends only for its own page", async () => {
  const send = (type: string) =>
    fetch(`${dev.service.shop_url}/wallet`, { method: "POST", headers: { "content-type": type }, body: "{}" })
  expect((await send("text/plain")).status).toBe(415)
  expect((await send("application/json")).status).toBe(400)
})

describe("the same page on an unregistered origin", () => {
  test("is blocked by the browser, and nothing is recorded", async () => {
    const api_base_url = dev.service.base_url
    const foreign = startShop({ ...dev.service, api_base_url, docs_url: `${api_base_url}/docs` }, 0)
    const before = await recordedTaps()
    const { page } = await newPage()
    await page.goto(`${foreign.shop_url}/tap`)
    await sees(page, "#status", "We cannot reach the service from this page.")
    expect(await recordedTaps()).toBe(before)
    await foreign.stop()
  })

  test("is rejected by the service, too, and nothing is recorded", async () => {
    const before = await recordedTaps()
    const { chip_id, e } = await dataOf(api.POST("/v1/test-helpers/taps", { body: { chip_id: chipId } }))
    const response = await fetch(`${dev.service.base_url}/v1/taps`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${dev.service.publishable_key}`,
        "content-type": "application/json",
        origin: "https://elsewhere.example",
      },
      body: JSON.stringify({ chip_id, e }),
    })
    expect(response.status).toBe(403)
    expect(response.headers.get("access-control-allow-origin")).toBeNull()
    expect(await recordedTaps()).toBe(before)
  })
})

test("a shop page that returns on another port is registered in place of the old one", async () => {
  const listed = async () => (await dataOf(api.GET("/v1/settings/cors-origins"))).cors_origins
  const before = dev.service.shop_url
  expect(await listed()).toEqual([before])
  await dev.stop()
  dev = await startDevHere(environment)
  api = createClient({ base_url: dev.service.base_url, token: dev.service.api_key })
  expect(dev.service.shop_url).not.toBe(before)
  expect(await listed()).toEqual([dev.service.shop_url])
}, 60_000)

test("a service whose dev.json was deleted to wait for the next one keeps its organization and key", async () => {
  const { organization_id, api_key } = dev.service
  await dev.stop()
  rmSync(join(folder, "dev.json"))
  dev = await startDevHere(environment)
  api = createClient({ base_url: dev.service.base_url, token: dev.service.api_key })
  expect(dev.service).toMatchObject({ organization_id, api_key })
  expect((await dataOf(api.GET("/v1/settings/cors-origins"))).cors_origins).toEqual([dev.service.shop_url])
}, 60_000)

test("a command that has only the folder finds the service", () => {
  const { base_url } = dev.service
  const { api_base_url, docs_url, metadata_base_url } = loadConfig(withDevEnvironment({ DATA_DIR: folder }))
  expect({ api_base_url, docs_url, metadata_base_url }).toEqual({
    api_base_url: base_url,
    docs_url: `${base_url}/docs`,
    metadata_base_url: `${base_url}/metadata`,
  })
})

/** Presses Tab until the element with this text or ID has the focus. */
async function tabTo(page: Page, named: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab")
    const { id, text } = (await page.evaluate(
      "({ id: document.activeElement.id, text: document.activeElement.textContent.trim() })",
    )) as { id: string; text: string }
    if (id === named || text === named) return
  }
  throw new Error(`the keyboard does not lead to ${named}`)
}

async function press(page: Page, named: string): Promise<void> {
  await tabTo(page, named)
  await page.keyboard.press("Enter")
}

async function sees(page: Page, selector: string, text: string): Promise<void> {
  const asked = page.locator(selector).filter({ hasText: text })
  await asked.waitFor({ timeout: 30_000 })
}

async function recordedTaps(): Promise<number> {
  const query = { is_test: true, limit: 100 } as const
  return (await dataOf(api.GET("/v1/taps", { params: { query } }))).taps.length
}
