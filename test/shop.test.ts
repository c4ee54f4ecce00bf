import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { createClient, dataOf, type ServiceClient } from "../clients/typescript/client.ts"
import { startShop } from "../src/dev/shop.ts"
import { type DevService, startDev } from "../src/dev.ts"
import { startBrowser } from "./browser.ts"

const folder = mkdtempSync(join(tmpdir(), "service api "))
const quiet = { PORT: "0", DEV_CHAIN_PORT: "0", OPERATOR_PORT: "0", LOG_LEVEL: "error" }
const environment = { ...process.env, ...quiet, DATA_DIR: folder }
let browser: Browser
let dev: { service: DevService; stop(): Promise<void> }
let api: ServiceClient
let chipId: string

beforeAll(async () => {
  const quiet = { DATA_DIR: folder, PORT: "0", DEV_CHAIN_PORT: "0", OPERATOR_PORT: "0", LOG_LEVEL: "error" }
  const [startedBrowser, started] = await Promise.all([
    startBrowser(),
    startDev({ ...process.env, ...quiet }),
  ])
  browser = startedBrowser
  dev = started
  api = createClient({ base_url: dev.service.base_url, token: dev.service.api_key })
  chipId = await issuedChip()
}, 60_000)
afterAll(async () => {
  await browser.close()
  await dev.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("the shop's page, on an origin of its own", () => {
  test("shows the tapped unit, reads the exposed headers and claims the unit to a wallet", async () => {
    const page = await openTap(dev.service.shop_url)
    await sees(page, "#status", "This jacket is genuine.")
    expect(await page.textContent("#unit-name")).toBe("Jacket 1")
    expect(await page.textContent("#serial")).toBe("1")
    expect(await page.textContent("#chip")).toBe(chipId)
    expect(await page.textContent("#request-id")).toMatch(/^req_[0-9a-f-]{36}$/)
    expect(await page.textContent("#remaining")).toMatch(/^\d+$/)

    const [wallet] = dev.service.wallets
    await page.fill("#recipient", wallet?.address ?? "")
    await page.keyboard.press("Enter")
    await sees(page, "#claim-status", `It is yours: ${wallet?.address}`)
    await page.context().close()
  }, 60_000)

  test("says that a value was used before when the page is opened again", async () => {
    const page = await openTap(dev.service.shop_url)
    await sees(page, "#status", "This jacket is genuine.")
    await page.reload()
    await sees(page, "#status", "The value of e, or a later one, was used before. (chip.already_scanned)")
    await page.context().close()
  })

  test("taps a test chip for those who have no hardware", async () => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(dev.service.shop_url)
    await sees(page, "#status", "Tap the chip in your jacket to see it here.")
    await page.click("text=Tap a test chip")
    await sees(page, "#status", "This jacket is genuine.")
    await page.context().close()
  })
})

describe("the same page on an origin that the organization has not registered", () => {
  test("is refused by the browser, and nothing is recorded", async () => {
    const foreign = startShop({ ...dev.service, api_base_url: dev.service.base_url }, 0)
    const before = await recordedTaps()
    const page = await openTap(foreign.shop_url)
    await sees(page, "#status", "The browser may not read the service from this page. (browser.refused)")
    expect(await recordedTaps()).toBe(before)
    await page.context().close()
    await foreign.stop()
  })

  test("is refused by the service too, and nothing is recorded", async () => {
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

test("a shop's page that comes back on another port is registered in place of the old one", async () => {
  const listed = async () => (await dataOf(api.GET("/v1/settings/cors-origins"))).cors_origins
  const before = dev.service.shop_url
  expect(await listed()).toEqual([before])
  await dev.stop()
  dev = await startDev(environment)
  api = createClient({ base_url: dev.service.base_url, token: dev.service.api_key })
  expect(dev.service.shop_url).not.toBe(before)
  expect(await listed()).toEqual([dev.service.shop_url])
}, 60_000)

/** A test chip whose unit is issued. */
async function issuedChip(): Promise<string> {
  const { id: collection_id } = await dataOf(
    api.POST("/v1/collections", { body: { name: "Autumn Jackets" } }),
  )
  const collection = { params: { path: { collection_id } } }
  await until(
    async () => (await dataOf(api.GET("/v1/collections/{collection_id}", collection))).contract.status,
  )
  const { id: unit_id } = await dataOf(api.POST("/v1/units", { body: { collection_id, name: "Jacket 1" } }))
  const { chip_id } = await dataOf(api.POST("/v1/chips", { body: { unit_id, is_test: true } }))
  const unit = { params: { path: { unit_id } } }
  await until(async () => (await dataOf(api.GET("/v1/units/{unit_id}", unit))).collection?.token.status)
  return chip_id
}

async function until(statusOf: () => Promise<string | undefined>): Promise<void> {
  while ((await statusOf()) !== "active") await Bun.sleep(200)
}

/** The shop's page as a fresh tap of the chip opens it. */
async function openTap(shopUrl: string): Promise<Page> {
  const { chip_id, e } = await dataOf(api.POST("/v1/test-helpers/taps", { body: { chip_id: chipId } }))
  const page = await (await browser.newContext()).newPage()
  await page.goto(`${shopUrl}/?${new URLSearchParams({ service_chip_id: chip_id, service_e: e })}`)
  return page
}

async function sees(page: Page, selector: string, text: string): Promise<void> {
  const asked = page.locator(selector).filter({ hasText: text })
  await asked.waitFor({ timeout: 30_000 })
}

async function recordedTaps(): Promise<number> {
  const query = { is_test: true, limit: 100 } as const
  return (await dataOf(api.GET("/v1/taps", { params: { query } }))).taps.length
}
