import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import fc from "fast-check"
import { collections } from "../../src/db/schema.ts"
import type { World } from "../../src/engine/world.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { exportMetadata } from "../../src/operator/commands/metadata.ts"
import { updateCollection } from "../../src/resources/collections/service.ts"
import { drawToken } from "../../src/resources/metadata/picture.ts"
import { createMetadataRefresh } from "../../src/resources/metadata-refreshes/service.ts"
import type { CreateUnitBody } from "../../src/resources/units/model.ts"
import { updateUnit } from "../../src/resources/units/service.ts"
import { type Customer, createCustomer, type HttpService, startService } from "../harness/api.ts"
import { useBrowser } from "../harness/browser.ts"
import { engines } from "../harness/engines.ts"
import { activeCollection, createProduct, newUnit, pair, settle } from "../harness/services.ts"

const hash = `0x${"ef".repeat(32)}`

describe.each(engines)("on $name token metadata", (engine) => {
  let service: HttpService
  let customer: Customer
  const { newPage } = useBrowser()
  beforeAll(async () => {
    service = await startService(engine)
    customer = await createCustomer(service)
  })
  afterAll(() => service.close())

  async function issued(body: Omit<CreateUnitBody, "collection_id"> = {}) {
    const { behind } = service
    const collection = await activeCollection(behind, customer.caller)
    const unit = await newUnit(behind, customer.caller, collection, body)
    const { chip_id } = await pair(behind, customer.caller, { unit_id: unit.id, is_test: true })
    await settle(behind, unit.id, { serial: 7, transaction_hash: hash })
    const contract = `/metadata/31337/${collection.address.toLowerCase()}`
    return { unit, chip_id, collection, contract, path: `${contract}/7` }
  }
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${service.base_url}${path}`, { headers })
  const base = () => service.context.config.metadata_base_url

  test("is the public part of its unit, for everybody and from any origin", async () => {
    const { path } = await issued({
      name: "Jacket 1",
      description: "Waxed cotton.",
      image_url: "https://shop.example/1.png",
      metadata: { Year: 2026, Colour: "Moss", Limited: true },
    })
    const response = await get(path, { origin: "https://wallet.example" })
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("application/json")
    expect(response.headers.get("access-control-allow-origin")).toBe("https://wallet.example")
    expect(response.headers.get("cache-control")).toBe("public, max-age=60")
    expect(await response.json()).toEqual({
      name: "Jacket 1",
      description: "Waxed cotton.",
      image: "https://shop.example/1.png",
      external_url: `${base()}${path.slice("/metadata".length)}/page`,
      attributes: [
        { trait_type: "Colour", value: "Moss" },
        { trait_type: "Limited", value: true },
        { trait_type: "Year", value: 2026 },
      ],
    })
  })

  test("of a unit without public fields has the collection's name, the serial and a generated image", async () => {
    const { path } = await issued()
    const document = (await (await get(path)).json()) as { image: string }
    expect(document).toMatchObject({ name: "Autumn Winter #7", description: null, attributes: [] })
    expect(document.image).toBe(`${base()}${path.slice("/metadata".length)}/image.svg`)
    const picture = await get(`${path}/image.svg`)
    expect(picture.headers.get("content-type")).toBe("image/svg+xml; charset=utf-8")
    expect(await picture.text()).toContain("Autumn Winter #7")
  })

  test("of a contract is the public part of its collection", async () => {
    const { contract, collection } = await issued()
    const shown = {
      redirect_url: null,
      description: "Of 2026.",
      image_url: "https://shop.example/autumn.png",
    }
    await service.behind.turn((turn) => updateCollection(turn, customer.caller, collection.id, shown))
    expect(await (await get(contract)).json()).toEqual({
      name: "Autumn Winter",
      description: "Of 2026.",
      image: "https://shop.example/autumn.png",
      external_link: `${base()}${contract.slice("/metadata".length)}/page`,
    })
    expect((await get(`${contract}/image.svg`)).status).toBe(200)
  })

  test("has an HTML page", async () => {
    const { path, contract } = await issued({ name: "<b>Jacket</b>", metadata: { Colour: "Moss" } })
    for (const address of [`${path}/page`, `${contract}/page`]) {
      const response = await get(address)
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(await response.text()).not.toContain("<b>")
    }
    expect(await (await get(`${path}/page`)).text()).toContain(
      '<dt dir="auto">Colour</dt><dd dir="auto">Moss</dd>',
    )
  })

  test("has an HTML page that shows each text in its own direction", async () => {
    const hebrew = { name: "מעיל סתיו", description: "נארג ביד.", metadata: { צבע: "ירוק", Size: "M" } }
    const { page } = await newPage()
    await page.goto(`${service.base_url}${(await issued(hebrew)).path}/page`)
    const directions = await page.evaluate(
      `[...document.querySelectorAll("h1, .words, dt, dd")].map((each) => each.textContent + " " + getComputedStyle(each).direction)`,
    )
    expect(directions).toEqual([
      "מעיל סתיו rtl",
      "נארג ביד. rtl",
      ...["Size ltr", "M ltr"],
      ...["צבע rtl", "ירוק rtl"],
    ])
  })

  test("is not sent again to a client that has it until it changes", async () => {
    const { unit, path } = await issued({ name: "Before" })
    for (const address of [path, `${path}/image.svg`]) {
      const etag = String((await get(address)).headers.get("etag"))
      for (const held of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
        const kept = await get(address, { "if-none-match": held })
        expect([kept.status, kept.headers.get("etag"), await kept.text()]).toEqual([304, etag, ""])
        expect(kept.headers.get("cache-control")).toBe("public, max-age=60")
      }
      expect((await get(address, { "if-none-match": '"other"' })).status).toBe(200)
    }
    const etag = String((await get(path)).headers.get("etag"))
    await service.behind.turn((turn) => updateUnit(turn, customer.caller, unit.id, { name: "After" }))
    expect((await get(path, { "if-none-match": etag })).status).toBe(200)
  })

  test("is found by the contract address in any case, and HEAD equals GET without the body", async () => {
    const { path, collection } = await issued()
    const checksummed = `/metadata/31337/${collection.address}/7`
    expect(await (await get(checksummed)).text()).toBe(await (await get(path)).text())
    const head = await fetch(`${service.base_url}${path}`, { method: "HEAD" })
    expect([head.status, await head.text()]).toEqual([200, ""])
    expect(head.headers.get("etag")).toBe((await get(path)).headers.get("etag"))
  })

  test("is not found for an unissued token or at a URL that no contract returns", async () => {
    const { contract, collection } = await issued()
    const digits = contract.split("/").at(-1)
    for (const path of [
      ...[
        `${contract}/8`,
        `${contract}/0`,
        `${contract}/07`,
        `${contract}/7.0`,
        `${contract}/-7`,
        `${contract}/0x7`,
      ],
      ...[`${contract}/99999999999999999999`, `/metadata/1/${digits}/7`, `/metadata/031337/${digits}/7`],
      ...[`/metadata/31337/0x${"00".repeat(20)}`, "/metadata/31337/none", `${contract}/8/image.svg`],
    ]) {
      const response = await get(path, { origin: "https://wallet.example" })
      expect([path, response.status]).toEqual([path, 404])
      expect(response.headers.get("access-control-allow-origin")).toBe("https://wallet.example")
      expect(((await response.json()) as { error: { code: string } }).error.code).toBe("not_found.resource")
    }
    await service.behind.turn(({ tx }) =>
      tx.update(collections).set({ status: "failed" }).where(eq(collections.id, collection.id)),
    )
    expect((await get(contract)).status).toBe(404)
  })

  test("can be exported as files that equal the service's responses, and with --base do not depend on the service", async () => {
    const { collection, contract, path } = await issued({ name: "Jacket 1" })
    await service.behind.turn(({ tx }) =>
      tx.update(collections).set({ next_serial: 8 }).where(eq(collections.id, collection.id)),
    )
    const out = mkdtempSync(join(tmpdir(), "metadata-"))
    const fileOf = (name: string) => readFileSync(join(out, "31337", name), "utf8")
    const address = collection.address.toLowerCase()
    const run = async (...words: string[]) => {
      const given = ["--collection", collection.id, "--out", out, ...words]
      const world = { context: service.context } as unknown as World
      return await exportMetadata.plan(parseValues(exportMetadata, given))(world)
    }
    const before = process.umask(0o077)
    try {
      expect(await run()).toMatchObject({ document: { tokens: 1 } })
      // A web server that runs as another user must be able to read them.
      const modes = [address, `${address}/7`].map((name) => statSync(join(out, "31337", name)).mode & 0o777)
      expect(modes).toEqual([0o755, 0o644])
      expect(process.umask()).toBe(0o077)
      expect(fileOf(`${address}/7`)).toBe(await (await get(path)).text())
      expect(fileOf(`${address}.json`)).toBe(await (await get(contract)).text())
      expect(fileOf(`${address}/7.svg`)).toBe(await (await get(`${path}/image.svg`)).text())
      expect(fileOf(`${address}/index.html`)).toBe(fileOf(`${address}.json`))
      await run("--base", "ipfs://bafy/")
      expect(JSON.parse(fileOf(`${address}/7`)).image).toBe(`ipfs://bafy/31337/${address}/7.svg`)
      expect(JSON.parse(fileOf(`${address}/index.html`)).image).toBe(`ipfs://bafy/31337/${address}.svg`)
      for (const name of [`${address}/7`, `${address}.json`, `${address}/index.html`])
        expect(fileOf(name)).not.toContain(base())
      expect(() =>
        exportMetadata.plan(parseValues(exportMetadata, ["--collection", "x", "--out", out, "--base", "no"])),
      ).toThrow("ipfs://")
    } finally {
      process.umask(before)
      rmSync(out, { recursive: true })
    }
  })

  test("can be refreshed once a minute, and a clock that was set back delays that only briefly", async () => {
    const { behind } = service
    const { id } = await activeCollection(behind, customer.caller)
    const refresh = () => behind.turn((turn) => createMetadataRefresh(turn, customer.caller, id))
    const refused = () => expect(refresh()).rejects.toMatchObject({ code: "rate_limit.exceeded" })
    const anHour = 3_600_000
    await refresh()
    service.advance(59_999)
    await refused()
    service.advance(1)
    await refresh()
    // The clocks of several processes may differ by this much.
    service.advance(-60_000)
    await refused()
    service.advance(60_000 - anHour)
    await refresh()
    await refused()
    service.advance(anHour)
  })

  test("never shows private fields", async () => {
    const secret = fc.stringMatching(/^[A-Z]{12}$/).map((text) => `private-${text}`)
    const text = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
      .filter((each) => !/\p{C}/u.test(each))
    const { caller } = customer
    const product_id = await createProduct(service.behind, caller)
    await fc.assert(
      fc.asyncProperty(
        secret,
        fc.record({
          name: fc.option(text),
          description: fc.option(text),
          metadata: fc.option(fc.dictionary(text, text, { maxKeys: 4 })),
        }),
        async (hidden, shown) => {
          const { unit, chip_id, path, contract } = await issued({
            ...shown,
            external_id: `${hidden} id`,
            attributes: { [hidden]: hidden },
            redirect_url: `https://shop.example/${hidden}`,
            product_id,
          })
          for (const address of [path, `${path}/image.svg`, `${path}/page`, contract, `${contract}/page`]) {
            const said = await (await get(address)).text()
            for (const word of ["private-", chip_id, unit.id, product_id, caller.organization_id])
              expect(said.toLowerCase()).not.toContain(word.toLowerCase())
          }
          const document = (await (await get(path)).json()) as Record<string, unknown>
          expect(Object.keys(document).sort()).toEqual([
            "attributes",
            "description",
            "external_url",
            "image",
            "name",
          ])
          expect(document.description).toBe(shown.description)
        },
      ),
      { numRuns: 12 },
    )
  }, 60_000)
})

describe("a generated image", () => {
  const collection = {
    ...{ name: "Autumn", symbol: "A", description: null, image_url: null },
    ...{ chain_id: 1, address: "0x5FbDB2315678afecb367f032d93F642f64180aa3" },
  }
  const token = { name: "Jacket", description: null, image_url: null, metadata: null, serial: 1, collection }
  const linesOf = (svg: string) => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, line]) => line ?? "")

  test("is the same each time, and different for each token", () => {
    const drawn = Array.from({ length: 50 }, (_, index) => drawToken({ ...token, serial: index + 1 }))
    const [first] = drawn
    expect(drawToken(token)).toBe(String(first))
    const withoutWords = drawn.map((each) => each.replaceAll(/<text.*<\/text>/g, ""))
    expect(new Set(withoutWords).size).toBe(50)
  })

  test("is well-formed whatever the unit's name, and no name becomes markup", () => {
    const anything = fc.string({ unit: "binary", minLength: 1, maxLength: 300 })
    const hostile = fc.constantFrom(
      "</text><script>alert(1)</script>",
      '"><img onerror=x>',
      "]]>",
      "&lt;",
      "\u202eevil",
      "\ufffe\uffff",
    )
    fc.assert(
      fc.property(fc.oneof(anything, hostile), (name) => {
        const svg = drawToken({ ...token, name, collection: { ...collection, name } })
        const words = svg.replaceAll(
          /<(\/?)(svg|defs|linearGradient|stop|rect|g|path|circle|text)\b[^<>]*>/g,
          "",
        )
        expect(words).not.toMatch(/[<>]|&(?!(amp|lt|gt|quot|#39);)/)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what XML 1.0 does not allow
        expect(svg).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/)
      }),
      { numRuns: 300 },
    )
  })

  test("has room for every name: long ones are truncated", () => {
    const svg = drawToken({ ...token, name: `${"Wintermantel ".repeat(30)}` })
    const titles = linesOf(svg).slice(0, -2)
    expect(titles).toHaveLength(2)
    for (const title of titles) expect(title.length).toBeLessThanOrEqual(27)
    expect(titles[1]).toEndWith("…")
  })

  test("has room for names in capitals, which are wider than other letters", () => {
    const name = "LIMITED WINTER COLLECTION 2026 MENSWEAR"
    const svg = drawToken({ ...token, name, collection: { ...collection, name } })
    expect(linesOf(svg)).toEqual([
      "LIMITED WINTER",
      "COLLECTION 2026 MENSWE…",
      "LIMITED WINTER COLLECTION 2026 …",
      "№ 1",
    ])
  })

  test("has readable words without a style sheet, which MetaMask on phones ignores", () => {
    const svg = drawToken({ ...token, name: `Women's 12" Boot` })
    expect(svg).not.toMatch(/<style|class=|style=/)
    // Nor does it decode entities.
    expect(linesOf(svg)[0]).toBe(`Women's 12" Boot`)
    expect(svg).toMatch(/<g font-family="[^"]+" fill="#ffffff">\s*<text/)
    const words = [...svg.matchAll(/<text ([^>]*)>/g)].map(([, attributes]) => attributes)
    expect(words).toHaveLength(3)
    for (const each of words) expect(each).toMatch(/font-size="(50|34)"/)
    expect(words.at(-1)).toContain('text-anchor="end"')
  })
})
