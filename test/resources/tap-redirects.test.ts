import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { and, eq } from "drizzle-orm"
import { chips, taps } from "../../src/db/schema.ts"
import { registry } from "../../src/platform/metrics.ts"
import { type Language, landingTexts } from "../../src/resources/taps/landing-texts.ts"
import {
  ask,
  type Customer,
  createCustomer,
  createVisitor,
  type HttpService,
  startService,
} from "../harness/api.ts"
import { createProduct, importedChip, setOrganization } from "../harness/services.ts"

let service: HttpService
let maker: Customer

const e = "0123456789abcdef0123456789ABCDEF"
const c = "0123456789abcdef"

beforeAll(async () => {
  service = await startService()
  maker = await createCustomer(service)
})
afterAll(() => service.close())

describe("the tap URL of a chip", () => {
  test("redirects to the most specific destination: unit, product, collection, organization", async () => {
    const { chip_id, unit_id, unit } = await tappable()
    const collection = (unit.collection as { id: string }).id
    const product_id = await createProduct(service.behind, maker.caller, "https://product.test/")
    const change = (path: string, body: object) =>
      ask(service, `PATCH ${path}` as "PATCH /", { as: maker.key, body })
    const leadsTo = async () => new URL((await open(`/t/${chip_id}`)).headers.get("location") ?? "").origin
    const tapSays = async () => {
      const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
      const tap = await ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id, e: body.e } })
      return new URL(String(tap.body.redirect_url)).origin
    }
    const steps: [step: () => Promise<unknown>, origin: string][] = [
      [
        () => setOrganization(service.behind, maker.caller, { default_redirect_url: "https://maker.test/" }),
        "https://maker.test",
      ],
      [
        () => change(`/v1/collections/${collection}`, { redirect_url: "https://collection.test/" }),
        "https://collection.test",
      ],
      [() => change(`/v1/units/${unit_id}`, { product_id }), "https://product.test"],
      [() => change(`/v1/units/${unit_id}`, { redirect_url: "https://unit.test/" }), "https://unit.test"],
      [() => change(`/v1/units/${unit_id}`, { redirect_url: null }), "https://product.test"],
    ]
    for (const [step, origin] of steps) {
      await step()
      expect([await leadsTo(), await tapSays()]).toEqual([origin, origin])
    }
    await setOrganization(service.behind, maker.caller, { default_redirect_url: null })
  })

  test("adds what the destination needs to verify the tap, replacing such parameters of the stored URL", async () => {
    const { chip_id } = await tappable(
      "https://unit.test/a?x=1&service_e=old&service_e=older&service_c=old#part",
    )
    const location = (await open(`/t/${chip_id.toLowerCase()}?e=${e}&c=${c}`)).headers.get("location")
    expect(location).toBe(
      `https://unit.test/a?x=1&service_chip_id=${chip_id}&service_e=${e.toUpperCase()}&service_c=${c.toUpperCase()}#part`,
    )
  })

  test("leaves other parameters of the stored URL byte for byte as they are", async () => {
    const { chip_id } = await tappable(
      "https://unit.test/?path=/a/b&flag&&q=a%20b+c&=&constructor=1&service%5Fe=old",
    )
    expect((await open(`/t/${chip_id}`)).headers.get("location")).toBe(
      `https://unit.test/?path=/a/b&flag&&q=a%20b+c&=&constructor=1&service_chip_id=${chip_id}`,
    )
  })

  test("takes no destination from the request, and no parameter that a tag cannot produce", async () => {
    const { chip_id } = await tappable("https://unit.test/?service_e=old")
    for (const query of [
      "",
      "?e=zz",
      `?e=${e}0`,
      "?e=https://evil.test&redirect_url=https://evil.test",
      "?c=1",
    ])
      expect((await open(`/t/${chip_id}${query}`)).headers.get("location")).toBe(
        `https://unit.test/?service_chip_id=${chip_id}`,
      )
  })

  test("is a 302 with Cache-Control: no-store and no referrer", async () => {
    const { chip_id } = await tappable("https://unit.test/")
    const { status, headers } = await open(`/t/${chip_id}?e=${e}`)
    expect(status).toBe(302)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("referrer-policy")).toBe("no-referrer")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
  })

  test("is counted as the operation that the OpenAPI document names", async () => {
    const { chip_id } = await tappable("https://unit.test/")
    await open(`/t/${chip_id}`)
    expect(await registry.metrics()).toMatch(
      /service_requests_total\{operation="getTapRedirect",status="302"\} \d/,
    )
  })

  test("consumes nothing: its value of e can still be sent as a tap", async () => {
    const { chip_id } = await tappable("https://unit.test/")
    const { body } = await ask(service, "POST /v1/test-helpers/taps", { as: maker.key, body: { chip_id } })
    const state = async () => {
      const { read } = service.context.db
      return [
        await read.select().from(chips).where(eq(chips.chip_id, chip_id)),
        await read
          .select()
          .from(taps)
          .where(and(eq(taps.chip_id, chip_id))),
      ]
    }
    const before = await state()
    for (const method of ["GET", "HEAD", "GET"]) await open(`/t/${chip_id}?e=${body.e}`, method)
    expect(await state()).toEqual(before)
    expect(
      (await ask(service, "POST /v1/taps", { as: maker.key, body: { chip_id, e: body.e } })).status,
    ).toBe(201)
  })

  test("of an unpaired chip redirects to the organization's default", async () => {
    const customer = await createCustomer(service, { default_redirect_url: "https://default.test/" })
    const { chip_id } = await importedChip(service.behind, customer.caller)
    expect((await open(`/t/${chip_id}`)).headers.get("location")).toStartWith("https://default.test/")
  })
})

describe("without a redirect", () => {
  test("the page is the same for a known chip, an unknown one, and a malformed chip ID", async () => {
    const { chip_id } = await createVisitor(service, maker)
    const shown = async (path: string) => {
      const { status, headers, text } = await open(path)
      return {
        status,
        headers: [...headers].filter(([name]) => !["x-request-id", "date"].includes(name)),
        text,
      }
    }
    const known = await shown(`/t/${chip_id}?e=${e}`)
    expect(known.status).toBe(200)
    for (const path of ["/t/00000000AA", "/t/00000000AA?e=x", "/t/nothing", "/t/%zz", "/t/a%00b"])
      expect(await shown(path)).toEqual(known)
  })

  test("the page is HTML that runs no script, loads nothing and cannot be framed", async () => {
    const { headers, text } = await open("/t/00000000AA")
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8")
    expect(headers.get("cache-control")).toBe("no-store")
    const policy = String(headers.get("content-security-policy"))
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? ""
    expect(policy).toContain(`'sha256-${createHash("sha256").update(style).digest("base64")}'`)
    expect(text).not.toMatch(/<script|<img|<link|style=|https?:/)
  })

  test.each<[asked: string, language: Language]>([
    ["de-CH,de;q=0.9,en;q=0.8", "de"],
    ["sv-SE,sv;q=0.9,fr-CA;q=0.5,en;q=0.4", "fr"],
    ["en;q=0.1, pt-BR", "pt"],
    ["zh-TW", "zh-Hant"],
    ["zh_TW", "zh-Hant"],
    ["zh-CN,zh;q=0.9", "zh-Hans"],
    ["de;q=0,ja;q=0.1", "ja"],
    ["AR-ae", "ar"],
    ["sr-Latn", "en"],
    ["*", "en"],
    ["!;q=x,,;;", "en"],
    ["", "en"],
  ])("the page is in the language that the phone prefers of those it has: %s", async (asked, language) => {
    const { headers, text } = await open("/t/00000000AA", "GET", { "accept-language": asked })
    expect([headers.get("content-language"), headers.get("vary")]).toEqual([
      language,
      "Accept-Language, Origin",
    ])
    expect(text).toContain(`<html lang="${language}">`)
    expect(text).toContain(`<h1>${landingTexts[language].title}</h1>`)
  })

  test("another method gets 405", async () => {
    const { status, headers } = await open("/t/00000000AA", "POST")
    expect([status, headers.get("allow")]).toEqual([405, "GET"])
  })
})

/** A chip whose unit has a redirect. */
async function tappable(redirect_url: string | null = null) {
  const visitor = await createVisitor(service, maker)
  const { body } = await ask(service, `PATCH /v1/units/${visitor.unit_id}`, {
    as: maker.key,
    body: { redirect_url },
  })
  return { ...visitor, unit: body }
}

async function open(path: string, method = "GET", headers: Record<string, string> = {}) {
  const response = await fetch(`${service.base_url}${path}`, { method, headers, redirect: "manual" })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
