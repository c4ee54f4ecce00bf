import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadConfig } from "../../src/platform/config.ts"
import { checkedAddresses } from "../../src/platform/public-address.ts"
import { checkedUrl } from "../../src/resources/webhook-endpoints/address.ts"
import { sendWebhook } from "../../workers/webhooks/send.ts"

const SERVICE_SECRET = "a secret of tests that is long enough"
const publicService = loadConfig({ SERVICE_SECRET, API_BASE_URL: "https://api.brand.test" })
const localService = loadConfig({ SERVICE_SECRET, API_BASE_URL: "http://localhost:3000" })

const nowhere = async () => {
  throw new Error("no name is known here")
}
const always =
  (...addresses: string[]) =>
  async () =>
    addresses

/** Hosts that resolve to a private network, to this machine or to nothing, in every notation. */
const hosts = [
  ...[
    "127.0.0.1",
    "127.0.0.1.",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "10.1",
    "①⑨②.168.0.1",
    "%31%32%37.0.0.1",
  ],
  // As a single number, in hexadecimal, octal and mixed notation.
  ...["2130706433", "3232235521", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "0300.0250.0.1"],
  ...["0xc0.0250.1.1", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"],
  ...["100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.0.170", "192.0.2.1", "198.18.0.1", "198.51.100.1"],
  ...["203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]"],
  // IPv4-mapped, IPv4-translated and IPv4-compatible addresses, NAT64, 6to4 and Teredo, whatever they embed.
  ...["[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::ffff:0:127.0.0.1]", "[::7f00:1]", "[::127.0.0.1]"],
  ...[
    "[64:ff9b::7f00:1]",
    "[64:ff9b::808:808]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:808:808::1]",
  ],
  ...["[2001::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]"],
  // Link-local, site-local, unique local, multicast, documentation and unspecified addresses.
  ...["[fe80::1]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[ff0e::1]", "[2001:db8::1]"],
  ...[
    "[2001:2::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[100::1]",
    "[1000::1]",
    "[4000::1]",
  ],
]

describe("the URL of a webhook endpoint", () => {
  test.each(hosts)("https://%s/ is rejected", async (host) => {
    await expect(checkedUrl(publicService, `https://${host}/`, nowhere)).rejects.toMatchObject({
      code: "validation.failed",
    })
  })

  test.each(["10.0.0.7", "127.0.0.1", "::1", "::ffff:192.168.0.1", "169.254.169.254", "fd00::1"])(
    "is rejected if its name resolves to %s, whatever else it resolves to",
    async (address) => {
      for (const resolve of [always(address), always("93.184.216.34", address)])
        await expect(checkedUrl(publicService, "https://hook.test/", resolve)).rejects.toMatchObject({
          code: "validation.failed",
        })
    },
  )

  test.each([
    "http://hook.test/",
    "http://localhost/",
    "ftp://hook.test/",
    "https://user:pw@hook.test/",
    "https://hook.test\\@localhost/",
    "https://hook.test/ x",
    "//hook.test/",
    "https://hook.test/#part",
  ])("%s is rejected", async (url) => {
    await expect(checkedUrl(publicService, url, always("93.184.216.34"))).rejects.toMatchObject({
      code: "validation.failed",
    })
  })

  test("is accepted if it is reachable from the Internet or its name does not resolve yet", async () => {
    for (const host of ["93.184.216.34", "[2606:4700::1111]", "[2001:4860:4860::8888]", "hook.test"])
      expect(await checkedUrl(publicService, `https://${host}/in`, nowhere)).toBe(`https://${host}/in`)
  })

  test("may name this machine if the service runs there, too, but never a private network", async () => {
    for (const url of ["http://localhost:9/", "http://127.0.0.1:9/", "http://[::1]:9/"])
      expect(await checkedUrl(localService, url, always("127.0.0.1"))).toBe(url)
    for (const url of ["http://10.0.0.1/", "https://10.0.0.1/", "http://hook.test/"])
      await expect(checkedUrl(localService, url, always("10.0.0.1"))).rejects.toMatchObject({
        code: "validation.failed",
      })
  })

  test("may never name this machine with https, which is for Internet addresses only", async () => {
    for (const url of ["https://localhost/", "https://127.0.0.1/", "https://[::1]/", "https://0x7f000001/"])
      await expect(checkedUrl(localService, url, always("127.0.0.1"))).rejects.toMatchObject({
        code: "validation.failed",
      })
  })

  test("is rejected if its name resolves to this machine, even if the service runs there", async () => {
    for (const url of ["https://hook.test/", "https://localhost.hook.test/", "https://127.0.0.1.hook.test/"])
      for (const address of ["127.0.0.1", "::1"])
        await expect(checkedUrl(localService, url, always(address))).rejects.toMatchObject({
          code: "validation.failed",
        })
  })
})

describe("a delivery attempt", () => {
  const message = { event_id: "x", body: "{}", secrets: ["whsec_AAAA"], at: new Date(0) }
  const usual = { allowLoopback: false, resolve: nowhere, patience_milliseconds: 2_000 }
  let server: Bun.Server<undefined>
  let seen: { host: string | null; path: string }[] = []
  beforeAll(() => {
    server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 30,
      async fetch(request) {
        const { pathname } = new URL(request.url)
        seen.push({ host: request.headers.get("host"), path: pathname })
        if (pathname === "/redirect") return Response.redirect(`http://127.0.0.1:${server.port}/inside`, 307)
        if (pathname === "/never") await Bun.sleep(20_000)
        if (pathname === "/endless")
          return new Response(
            new ReadableStream({
              async pull(controller) {
                controller.enqueue(new Uint8Array(8_192))
                await Bun.sleep(1)
              },
            }),
          )
        return new Response("taken")
      },
    })
  })
  afterAll(() => server.stop(true))

  test("sends nothing if the name now resolves to a private address", async () => {
    seen = []
    for (const address of ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.1"]) {
      const url = `http://hook.test:${server.port}/`
      const answer = await sendWebhook({ ...message, url }, { ...usual, resolve: always(address) })
      expect(answer).toMatchObject({ response_status: null, error: expect.stringContaining("not routable") })
    }
    expect(seen).toEqual([])
  })

  test("connects to the IP address that was checked, even if the name resolves to another a moment later", async () => {
    seen = []
    let asked = 0
    // A second lookup would return an address where nothing listens.
    const resolve = async () => [asked++ === 0 ? "127.0.0.1" : "127.0.0.2"]
    const url = `http://rebound.test:${server.port}/in?x=1`
    const answer = await sendWebhook({ ...message, url }, { ...usual, allowLoopback: true, resolve })
    expect(answer).toMatchObject({ response_status: 200, error: null })
    expect(asked).toBe(1)
    expect(seen).toEqual([{ host: `rebound.test:${server.port}`, path: "/in" }])
  })

  test("tries the other address family if nothing listens at the first address, and reports the error if both fail", async () => {
    const local = { ...usual, allowLoopback: true }
    const to = (port: number | undefined) => ({ ...message, url: `http://hook.test:${port}/both` })
    seen = []
    const both = { ...local, resolve: always("::1", "127.0.0.1") }
    expect(await sendWebhook(to(server.port), both)).toMatchObject({ response_status: 200, error: null })
    expect(seen).toEqual([{ host: `hook.test:${server.port}`, path: "/both" }])
    expect(await sendWebhook(to(1), both)).toMatchObject({
      response_status: null,
      error: expect.stringMatching(/^the connection failed \(E/),
    })
  })

  test("tries no other address of the name once the event may have been sent", async () => {
    for (const said of ["", "HTTP/1.1 200"]) {
      let connections = 0
      const breaking = Bun.listen({
        hostname: "127.0.0.1",
        port: 0,
        socket: {
          open: () => void connections++,
          data(socket) {
            socket.write(said)
            socket.end()
          },
        },
      })
      const url = `http://hook.test:${breaking.port}/`
      const twice = always("127.0.0.1", "::ffff:127.0.0.1")
      const answer = await sendWebhook({ ...message, url }, { ...usual, allowLoopback: true, resolve: twice })
      expect([answer.response_status, connections]).toEqual([null, 1])
      breaking.stop(true)
    }
  })

  test("follows no redirect, times out, and does not read an endless response to its end", async () => {
    seen = []
    const to = (path: string) => ({ ...message, url: `http://127.0.0.1:${server.port}${path}` })
    const local = { ...usual, allowLoopback: true, patience_milliseconds: 1_000 }
    expect(await sendWebhook(to("/redirect"), local)).toMatchObject({ response_status: 307 })
    expect((await sendWebhook(to("/never"), local)).error).toMatch(/no response within 1 second/)
    expect(await sendWebhook(to("/endless"), local)).toMatchObject({ response_status: 200, error: null })
    expect(seen.map(({ path }) => path)).toEqual(["/redirect", "/never", "/endless"])
  })

  test("has the status that arrived in time as its result, whatever happens to the body", async () => {
    const bodies: [how: string, rest: string, after: "stays silent" | "breaks off"][] = [
      ["content-length: 100", "a part of it", "stays silent"],
      ["content-length: 100", "", "stays silent"],
      ["content-length: 100", "a part of it", "breaks off"],
      ["transfer-encoding: chunked", "6\r\na part\r\n", "breaks off"],
      ["transfer-encoding: chunked", "no length\r\n", "breaks off"],
    ]
    for (const [how, rest, after] of bodies)
      for (const status of [200, 503]) {
        const raw = Bun.listen({
          hostname: "127.0.0.1",
          port: 0,
          socket: {
            data(socket) {
              socket.write(`HTTP/1.1 ${status} X\r\n${how}\r\n\r\n${rest}`)
              if (after === "breaks off") socket.end()
            },
          },
        })
        const url = `http://127.0.0.1:${raw.port}/`
        const reach = { ...usual, allowLoopback: true, patience_milliseconds: 500 }
        expect([how, after, await sendWebhook({ ...message, url }, reach)]).toMatchObject([
          how,
          after,
          { response_status: status, error: status === 503 ? "responded with status 503" : null },
        ])
        raw.stop(true)
      }
  })

  test("verifies the certificate for the name, not for the IP address", async () => {
    const folder = mkdtempSync(join(tmpdir(), "webhooks-"))
    const { key, cert } = makeCertificate(folder, "hook.test")
    let requests = 0
    const secure = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: Bun.file(key), cert: Bun.file(cert) },
      fetch: () => {
        requests++
        return new Response()
      },
    })
    const url = `https://hook.test:${secure.port}/`
    const answer = await sendWebhook(
      { ...message, url },
      { ...usual, allowLoopback: true, resolve: always("127.0.0.1") },
    )
    // The certificate is self-signed and not trusted.
    expect(answer).toMatchObject({ response_status: null, error: expect.stringContaining("certificate") })
    expect(requests).toBe(0)
    await secure.stop(true)
    rmSync(folder, { recursive: true })
  })

  test("reuses a connection, but never one that was opened for another name", async () => {
    const folder = mkdtempSync(join(tmpdir(), "webhooks-"))
    for (const name of ["a.test", "b.test"]) makeCertificate(folder, name)
    const authorities = join(folder, "authorities.pem")
    await Bun.write(
      authorities,
      await Bun.$`cat ${join(folder, "a.test.crt")} ${join(folder, "b.test.crt")}`.text(),
    )
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "two-names.ts"), folder], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: authorities },
      stderr: "inherit",
    })
    // Each request: the connection's number, the server name it was opened for, and the Host header.
    expect(JSON.parse(await child.stdout.text())).toEqual([
      [1, "a.test", "a.test"],
      [1, "a.test", "a.test"],
      [2, "b.test", "b.test"],
      [1, "a.test", "a.test"],
      [2, "b.test", "b.test"],
    ])
    rmSync(folder, { recursive: true })
  })

  test("is not delayed by names whose name servers do not respond", async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "silent-names.ts")], {
      stderr: "inherit",
    })
    expect(JSON.parse(await child.stdout.text())).toEqual({
      addresses: ["93.184.216.34", "2606:4700::1111"],
      given_up: 0,
    })
  }, 30_000)

  test("accepts the addresses of a name only if every one of them is allowed", async () => {
    const both = always("93.184.216.34", "2606:4700::1111")
    expect(await checkedAddresses("hook.test", { allowLoopback: false, resolve: both })).toHaveLength(2)
    await expect(checkedAddresses("hook.test", { allowLoopback: false, resolve: always() })).rejects.toThrow(
      "no address",
    )
  })
})

/** Makes a self-signed certificate for a name. */
function makeCertificate(folder: string, name: string): { key: string; cert: string } {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)]
  const asked = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
  const named = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`]
  const made = Bun.spawnSync(["openssl", "req", "-x509", ...asked, ...named, "-keyout", key, "-out", cert])
  expect(made.exitCode).toBe(0)
  return { key, cert }
}
