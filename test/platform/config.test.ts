import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import pg from "pg"
import { baseUrl, type Config, type Environment, loadConfig } from "../../src/platform/config.ts"
import { ConfigError } from "../../src/platform/config-error.ts"
import { neverRotated } from "../harness/secret.ts"

const SERVICE_SECRET = "4f1c9a7e2b8d6035f1c9a7e2b8d60354"
const key = `0x${"1a".repeat(32)}`
const otherKey = `0x${"2b".repeat(32)}`
const factory_address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
const awsKey = "aws-kms:arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
const gcpKey = "gcp-kms:projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"
const curveOrder = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "config-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Case = [variable: string, text: string, key: keyof Config, value: unknown]

describe("an unset variable", () => {
  const defaults: Omit<Config, "service_secret"> = {
    port: 3000,
    host: "0.0.0.0",
    api_base_url: "http://localhost:3000",
    docs_url: "http://localhost:3000/docs",
    metadata_base_url: "http://localhost:3000/metadata",
    data_dir: resolve("data"),
    database_url: `sqlite:${resolve("data")}/service.db`,
    redis_url: null,
    traces_url: null,
    chains: [],
    signer_keys: [],
    authorizer_key: null,
    operator_port: 9090,
    operator_host: "127.0.0.1",
    operator_token: null,
    trusted_proxies: 0,
    rate_limits: {
      api_key: { requests: 200, seconds: 2 },
      session_token: { requests: 20, seconds: 4 },
      publishable_key: { requests: 20, seconds: 4 },
      failed_credential: { requests: 10, seconds: 60 },
      refused_value: { requests: 10, seconds: 60 },
      tap_redirect: { requests: 100, seconds: 5 },
      metadata: { requests: 500, seconds: 10 },
      kept_answer: { requests: 360_000, seconds: 3600 },
    },
    events_kept_days: 90,
    fetches_at_once: 256,
    open_work_limit: 5_000,
    log_level: "info",
  }

  test("has its default", () => {
    expect(loadConfig({ SERVICE_SECRET })).toEqual({
      ...defaults,
      service_secret: neverRotated(SERVICE_SECRET),
    })
  })

  test("gives an API key enough stored responses for all requests within its rate limit", () => {
    const { api_key, kept_answer } = loadConfig({ SERVICE_SECRET }).rate_limits
    const asked = (api_key.requests / api_key.seconds) * kept_answer.seconds
    expect(kept_answer.requests).toBeGreaterThanOrEqual(asked)
  })

  test("is the same as an empty one", () => {
    const names = [
      ...["PORT", "HOST", "API_BASE_URL", "DOCS_URL", "DATA_DIR", "DATABASE_URL", "REDIS_URL", "CHAINS"],
      ...[
        "SIGNER_KEYS",
        "AUTHORIZER_KEY",
        "OPERATOR_PORT",
        "OPERATOR_HOST",
        "OPERATOR_TOKEN",
        "TRUSTED_PROXIES",
        "OPEN_WORK_LIMIT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "LOG_LEVEL",
      ],
      ...["RATE_LIMIT_API_KEY", "RATE_LIMIT_SESSION_TOKEN", "RATE_LIMIT_PUBLISHABLE_KEY"],
      ...["RATE_LIMIT_FAILED_CREDENTIALS", "RATE_LIMIT_REFUSED_VALUES"],
    ]
    const empty = Object.fromEntries(names.map((name) => [name, ""]))
    expect(loadConfig({ ...empty, SERVICE_SECRET })).toEqual(loadConfig({ SERVICE_SECRET }))
  })

  test("stops the start if it is SERVICE_SECRET, and says how to make one", () => {
    expect(complaintAbout({})).toBe(
      "SERVICE_SECRET needs at least 32 characters; make one with: openssl rand -hex 32",
    )
  })
})

describe("a valid value is accepted:", () => {
  const cases: Case[] = [
    ["PORT", "0", "port", 0],
    ["PORT", "65535", "port", 65_535],
    ["HOST", "::", "host", "::"],
    ["HOST", "api.example.com", "host", "api.example.com"],
    ["API_BASE_URL", "https://api.example.com", "api_base_url", "https://api.example.com"],
    ["API_BASE_URL", "https://api.example.com/service//", "api_base_url", "https://api.example.com/service"],
    ["API_BASE_URL", "https://api.example.com", "docs_url", "https://api.example.com/docs"],
    ["API_BASE_URL", "https://api.example.com", "metadata_base_url", "https://api.example.com/metadata"],
    ["METADATA_BASE_URL", "https://tokens.example.com/", "metadata_base_url", "https://tokens.example.com"],
    ["DOCS_URL", "https://docs.example.com/", "docs_url", "https://docs.example.com"],
    ["DATA_DIR", "/srv/service", "data_dir", "/srv/service"],
    ["DATA_DIR", "/srv/service", "database_url", "sqlite:/srv/service/service.db"],
    ["DATA_DIR", "elsewhere", "data_dir", resolve("elsewhere")],
    ["DATABASE_URL", "sqlite:other.db", "database_url", "sqlite:other.db"],
    ["DATABASE_URL", "postgres://u:p@db:5432/service", "database_url", "postgres://u:p@db:5432/service"],
    [
      "DATABASE_URL",
      "postgres://u:50%off@db:5432/service",
      "database_url",
      "postgres://u:50%off@db:5432/service",
    ],
    ["DATABASE_URL", "postgresql://u@/s?host=/run", "database_url", "postgresql://u@/s?host=/run"],
    [
      "DATABASE_URL",
      "postgres://u:p@db/s?sslmode=no-verify",
      "database_url",
      "postgres://u:p@db/s?sslmode=no-verify",
    ],
    ["REDIS_URL", "redis://localhost:6379", "redis_url", "redis://localhost:6379"],
    ["REDIS_URL", "rediss://cache:6379/12?family=6", "redis_url", "rediss://cache:6379/12?family=6"],
    ["REDIS_URL", "rediss://u:p@cache:6380/1", "redis_url", "rediss://u:p@cache:6380/1"],
    ["REDIS_URL", "redis://:50%25off@cache:6379", "redis_url", "redis://:50%25off@cache:6379"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/", "traces_url", "http://localhost:4318"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key=Basic%20a=b, x = y,", "traces_url", null],
    ["SIGNER_KEYS", key, "signer_keys", [key]],
    ["SIGNER_KEYS", ` ${key} , ${otherKey},`, "signer_keys", [key, otherKey]],
    ["SIGNER_KEYS", `${awsKey},${key},${gcpKey}`, "signer_keys", [awsKey, key, gcpKey]],
    ["SIGNER_KEYS", "aws-kms:alias/issuing", "signer_keys", ["aws-kms:alias/issuing"]],
    ["AUTHORIZER_KEY", key, "authorizer_key", key],
    ["OPERATOR_PORT", "9191", "operator_port", 9191],
    ["OPERATOR_HOST", "127.0.0.2", "operator_host", "127.0.0.2"],
    ["OPERATOR_TOKEN", SERVICE_SECRET, "operator_token", SERVICE_SECRET],
    ["TRUSTED_PROXIES", "10", "trusted_proxies", 10],
    ["OPEN_WORK_LIMIT", "1", "open_work_limit", 1],
    [
      "SERVICE_SECRET_PREVIOUS",
      `${SERVICE_SECRET}, before`,
      "service_secret",
      { current: SERVICE_SECRET, previous: `${SERVICE_SECRET}, before` },
    ],
    ["LOG_LEVEL", "silent", "log_level", "silent"],
    ["RATE_LIMIT_API_KEY", "1000/1", "rate_limits", limitsWith("api_key", 1000, 1)],
    ["RATE_LIMIT_SESSION_TOKEN", "1/60", "rate_limits", limitsWith("session_token", 1, 60)],
    ["RATE_LIMIT_PUBLISHABLE_KEY", "50/10", "rate_limits", limitsWith("publishable_key", 50, 10)],
    ["RATE_LIMIT_FAILED_CREDENTIALS", "5/3600", "rate_limits", limitsWith("failed_credential", 5, 3600)],
    ["RATE_LIMIT_REFUSED_VALUES", "3/60", "rate_limits", limitsWith("refused_value", 3, 60)],
    ["RATE_LIMIT_TAP_REDIRECTS", "3/60", "rate_limits", limitsWith("tap_redirect", 3, 60)],
    ["RATE_LIMIT_METADATA", "3/60", "rate_limits", limitsWith("metadata", 3, 60)],
    ["RATE_LIMIT_KEPT_ANSWERS", "3/60", "rate_limits", limitsWith("kept_answer", 3, 60)],
  ]
  for (const [variable, text, name, value] of cases)
    test(`${variable}=${shown(text)} makes ${name} ${shown(JSON.stringify(value))}`, () => {
      const config: Record<string, unknown> = loadConfig({ SERVICE_SECRET, [variable]: text })
      expect(config[name]).toEqual(value)
    })
})

describe("an invalid value stops the start with one line that names the variable:", () => {
  const cases: [variable: string, text: string][] = [
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "3000.5"],
    ["PORT", "0x10"],
    ["PORT", "1e3"],
    ["PORT", " 3000"],
    ["PORT", "http\n3000"],
    ["HOST", "http://localhost"],
    ["HOST", "[::1]"],
    ["HOST", "two words"],
    ["API_BASE_URL", "api.example.com"],
    ["API_BASE_URL", "ftp://api.example.com"],
    ["API_BASE_URL", "https://api.example.com?x=1"],
    ["API_BASE_URL", "https://api.example.com#top"],
    ["API_BASE_URL", "https://api.example.com:99999"],
    ["DOCS_URL", "https:// docs.example.com"],
    ["DATABASE_URL", "service.db"],
    ["DATABASE_URL", "sqlite:"],
    ["DATABASE_URL", "mysql://db/service"],
    ["DATABASE_URL", "postgres://db:99999/service"],
    ["REDIS_URL", "localhost:6379"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key="],
    ["OTEL_EXPORTER_OTLP_HEADERS", "=hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api key=hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key=50%off"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key=hunter2;x"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key: hunter2"],
    ["REDIS_URL", "redis://localhost:99999"],
    ["REDIS_URL", "redis://localhost/staging"],
    ["REDIS_URL", "redis://localhost//2"],
    ["REDIS_URL", "redis://localhost/3x"],
    ["REDIS_URL", "redis://:50%off@localhost:6379"],
    ["DATABASE_URL", "sqlite::memory:"],
    ["DATABASE_URL", "postgres://u:50%ffoff@db:5432/service"],
    ["CHAINS", "/nowhere/chains.json"],
    ["SIGNER_KEYS", "0x12"],
    ["SIGNER_KEYS", `0x${"0".repeat(64)}`],
    ["SIGNER_KEYS", curveOrder],
    ["SIGNER_KEYS", `${key},${key.toUpperCase().replace("X", "x")}`],
    ["SIGNER_KEYS", "aws-kms:"],
    ["SIGNER_KEYS", "aws-kms:arn:aws:s3:::bucket/key"],
    ["SIGNER_KEYS", "gcp-kms:projects/p/locations/l/keyRings/r/cryptoKeys/k"],
    ["SIGNER_KEYS", "azure-kms:key"],
    ["SIGNER_KEYS", `${awsKey},${awsKey}`],
    ["AUTHORIZER_KEY", "1a".repeat(32)],
    ["AUTHORIZER_KEY", `0x${"0".repeat(64)}`],
    ["SERVICE_SECRET", "0".repeat(64)],
    ["SERVICE_SECRET", "short"],
    ["SERVICE_SECRET_PREVIOUS", "short"],
    ["SERVICE_SECRET_PREVIOUS", SERVICE_SECRET],
    ["OPERATOR_PORT", "ninety"],
    ["OPERATOR_HOST", "a/b"],
    ["OPERATOR_TOKEN", "f3a9c1d7e5b80246"],
    ["OPERATOR_TOKEN", "ab".repeat(16)],
    ["TRUSTED_PROXIES", "11"],
    ["OPEN_WORK_LIMIT", "0"],
    ["BUN_CONFIG_MAX_HTTP_REQUESTS", "0"],
    ["BUN_CONFIG_MAX_HTTP_REQUESTS", "65536"],
    ["TRUSTED_PROXIES", "yes"],
    ["RATE_LIMIT_API_KEY", "100"],
    ["RATE_LIMIT_SESSION_TOKEN", "0/1"],
    ["RATE_LIMIT_PUBLISHABLE_KEY", "5/0.5"],
    ["RATE_LIMIT_FAILED_CREDENTIALS", "-1/60"],
    ["RATE_LIMIT_REFUSED_VALUES", "10/60\n"],
    ["LOG_LEVEL", "loud"],
    ["LOG_LEVEL", "INFO\n"],
  ]
  for (const [variable, text] of cases)
    test(`${variable}=${shown(text)}`, () => {
      const complaint = complaintAbout({ SERVICE_SECRET, [variable]: text })
      expect(complaint).toStartWith(variable)
      expect(complaint).not.toContain("\n")
    })
})

test("quotation marks and white space around a value, which nobody sees, are named", () => {
  const values = {
    API_BASE_URL: "https://api.example.com",
    DATA_DIR: "/srv/service",
    DATABASE_URL: "postgres://u:p@db:5432/service",
    REDIS_URL: "redis://cache:6379",
    CHAINS: "/srv/chains.json",
    OPERATOR_TOKEN: SERVICE_SECRET,
  }
  for (const [variable, value] of Object.entries(values))
    for (const text of [
      `"${value}"`,
      `'${value}'`,
      ` ${value}`,
      `${value}\n`,
      `${value}\r`,
      `\uFEFF${value}`,
    ])
      expect(complaintAbout({ SERVICE_SECRET, [variable]: text })).toStartWith(
        `${variable} begins or ends with a quotation mark, a space or a line break`,
      )
})

test("a key may end with the line break of its file, but has no quotation marks", () => {
  for (const variable of ["SIGNER_KEYS", "AUTHORIZER_KEY"]) {
    expect(() => loadConfig({ SERVICE_SECRET, [variable]: `${key}\r\n` })).not.toThrow()
    expect(complaintAbout({ SERVICE_SECRET, [variable]: `"${key}"` })).toStartWith(
      `${variable} begins or ends with a quotation mark`,
    )
  }
})

test("a password character that ends the host part of a URL is named, with its escaped form", () => {
  for (const password of ["a#b", "a/b", "a?b", "a b", "12#b", "12/b", "12?b", "50%ffoff"])
    for (const [variable, scheme] of [
      ["DATABASE_URL", "postgres"],
      ["REDIS_URL", "redis"],
    ]) {
      const complaint = complaintAbout({
        SERVICE_SECRET,
        [`${variable}`]: `${scheme}://user:${password}@db:5432/1`,
      })
      expect(complaint).toStartWith(`${variable} takes`)
      expect(complaint).toContain("% # / ? and spaces in a password written as %25 %23 %2F %3F and %20")
    }
})

test("an operator port reachable by others requires OPERATOR_TOKEN", () => {
  for (const OPERATOR_HOST of ["0.0.0.0", "::", "10.0.0.1", "127.example.com"]) {
    expect(complaintAbout({ SERVICE_SECRET, OPERATOR_HOST })).toStartWith("OPERATOR_TOKEN is needed")
    const OPERATOR_TOKEN = SERVICE_SECRET
    expect(loadConfig({ SERVICE_SECRET, OPERATOR_HOST, OPERATOR_TOKEN }).operator_host).toBe(OPERATOR_HOST)
  }
})

describe("an invalid secret is not in the text:", () => {
  const cases: [variable: string, text: string, secret: string][] = [
    ["SERVICE_SECRET", "hunter2-hunter2", "hunter2"],
    ["SERVICE_SECRET", "ababababababababababababababababababab", "abab"],
    ["OPERATOR_TOKEN", "hunter2-hunter2", "hunter2"],
    ["SIGNER_KEYS", `${key},0xdeadbeef`, "deadbeef"],
    ["SIGNER_KEYS", `${key},${key}`, "1a1a"],
    ["AUTHORIZER_KEY", "0xdeadbeef", "deadbeef"],
    ["DATABASE_URL", "postgres://u:hunter2@db:99999/service", "hunter2"],
    ["DATABASE_URL", "mysql://u:hunter2@db/service", "hunter2"],
    ["REDIS_URL", "redis://:hunter2@cache:99999", "hunter2"],
    ["API_BASE_URL", "https://u:hunter2@api.example.com", "hunter2"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "https://u:hunter2@collector:4318", "hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "api-key hunter2", "hunter2"],
    ["DOCS_URL", "https://u:hunter2@docs.example.com", "hunter2"],
  ]
  for (const [variable, text, secret] of cases)
    test(`${variable} with ${secret}`, () => {
      expect(complaintAbout({ SERVICE_SECRET, [variable]: text })).not.toContain(secret)
    })
})

describe("the CHAINS file", () => {
  test("gets defaults for what a chain omits", () => {
    const CHAINS = write({ "8453": { rpc_urls: ["https://rpc.example.com"], factory_address } })
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toEqual([
      {
        chain_id: 8453,
        name: "chain 8453",
        rpc_urls: ["https://rpc.example.com"],
        factory_address,
        desk_address: null,
        chips_as_code_from: 11,
        confirmation_depth: 12,
        finality_depth: 65,
        block_time_seconds: 12,
        max_fee_per_gas_gwei: 500,
        max_priority_fee_per_gas_gwei: 100,
        max_transaction_cost: 0.9,
        coin_symbol: "ETH",
        coin_decimals: 18,
        send_url: null,
        use_finalized_tag: false,
        bump_after_blocks: 4,
        log_range_blocks: 2_000,
      },
    ])
  })

  test("may begin with the byte order mark of an editor on Windows", () => {
    const CHAINS = write({})
    writeFileSync(CHAINS, "\uFEFF{}")
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toEqual([])
  })

  test("is used as written", () => {
    const chain = {
      name: "base",
      rpc_urls: ["https://one.example.com", "http://localhost:8545"],
      factory_address,
      desk_address: "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
      chips_as_code_from: 21,
      confirmation_depth: 1,
      finality_depth: 1,
      block_time_seconds: 0.25,
      max_fee_per_gas_gwei: 0.5,
      max_priority_fee_per_gas_gwei: 0.01,
      max_transaction_cost: 0.05,
      coin_symbol: "POL",
      coin_decimals: 18,
      send_url: "https://private.example.com",
      use_finalized_tag: true,
      bump_after_blocks: 20,
      log_range_blocks: 10_000,
    }
    const CHAINS = write({ "1": chain })
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toEqual([
      { chain_id: 1, ...chain, factory_address, desk_address: "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512" },
    ])
  })

  test("offers block producers no more than the gas price limit if it sets no tip limit", () => {
    const CHAINS = write({ "1": { ...good, max_fee_per_gas_gwei: 7 } })
    const [chain] = loadConfig({ SERVICE_SECRET, CHAINS }).chains
    expect(chain?.max_priority_fee_per_gas_gwei).toBe(7)
  })

  test("reports what is wrong with which key", () => {
    const complaints: [settings: object, end: string][] = [
      [{ bump_after_blocks: "4" }, "needs bump_after_blocks, a whole number of blocks above 0"],
      [{ block_time_seconds: -1 }, "needs block_time_seconds, a number above 0"],
      [{ rpc_urls: [7] }, "needs rpc_urls, a list of http or https URLs"],
      [{ rpc_urls: undefined }, "needs rpc_urls, a list of http or https URLs"],
      [{ factory_address: "0x12" }, "needs factory_address, the address of the deployed factory"],
      [{ desk_address: "none" }, "needs desk_address, the address of the deployed desk"],
      [{ chips_as_code_from: 0 }, "needs chips_as_code_from, a whole number above 0"],
      [{ use_finalized_tag: "yes" }, "needs use_finalized_tag, true or false"],
      [{ coin_symbol: "" }, "needs coin_symbol, a string of 1 to 12 characters"],
      [{ rpc_url: "https://rpc.example.com" }, "has an unknown key rpc_url"],
    ]
    for (const [settings, end] of complaints)
      expect(complaintAbout({ SERVICE_SECRET, CHAINS: write({ "1": { ...good, ...settings } }) })).toEndWith(
        end,
      )
  })

  const good = { rpc_urls: ["https://rpc.example.com"], factory_address }
  const wrong: [what: string, document: unknown][] = [
    ["an array", [good]],
    ["null", null],
    ["a chain id that is a name", { base: good }],
    ["a chain id with a leading zero", { "01": good }],
    ["a chain that is not an object", { "1": "https://rpc.example.com" }],
    ["an unknown key", { "1": { ...good, rpc_url: "https://rpc.example.com" } }],
    ["no RPC URL", { "1": { ...good, rpc_urls: [] } }],
    ["an RPC URL with another scheme", { "1": { ...good, rpc_urls: ["ws://rpc.example.com"] } }],
    ["an invalid RPC URL", { "1": { ...good, rpc_urls: ["https://rpc.example.com:99999"] } }],
    ["no factory", { "1": { rpc_urls: good.rpc_urls } }],
    [
      "a factory address with a wrong checksum",
      { "1": { ...good, factory_address: factory_address.replace("Fb", "FB") } },
    ],
    ["a depth of zero", { "1": { ...good, confirmation_depth: 0 } }],
    ["half a block of logs", { "1": { ...good, log_range_blocks: 0.5 } }],
    ["half a block of depth", { "1": { ...good, confirmation_depth: 1.5 } }],
    ["a depth that is a string", { "1": { ...good, finality_depth: "65" } }],
    [
      "a finality depth below the confirmation depth",
      { "1": { ...good, confirmation_depth: 10, finality_depth: 9 } },
    ],
    ["a name that is not a string", { "1": { ...good, name: {} } }],
    ["a private pool that is not a URL", { "1": { ...good, send_url: "https://pool.example.com:99999" } }],
    ["a private pool URL with another scheme", { "1": { ...good, send_url: "ws://pool.example.com" } }],
    [
      "a tip limit above the price limit",
      { "1": { ...good, max_fee_per_gas_gwei: 1, max_priority_fee_per_gas_gwei: 2 } },
    ],
    ["a spending limit of zero", { "1": { ...good, max_transaction_cost: 0 } }],
    ["half a decimal place", { "1": { ...good, coin_decimals: 1.5 } }],
  ]
  for (const [what, document] of wrong)
    test(`stops the start with ${what}`, () => {
      const complaint = complaintAbout({ SERVICE_SECRET, CHAINS: write(document) })
      expect(complaint).toStartWith("CHAINS")
      expect(complaint).not.toContain("\n")
    })

  test("that is not JSON stops the start without quoting its content", () => {
    const CHAINS = join(folder, "broken.json")
    writeFileSync(CHAINS, '{ "1": { "rpc_urls": [hunter2, "https://rpc.example.com/v2/hunter2"] } }')
    expect(complaintAbout({ SERVICE_SECRET, CHAINS })).toBe(
      `CHAINS names ${CHAINS}, which is not JSON in UTF-8`,
    )
  })

  test("with a chain, or a setting of one, twice stops the start, because only the last would count", () => {
    const CHAINS = join(folder, "twice.json")
    const good = JSON.stringify({ rpc_urls: ["https://rpc.example.com/{"], factory_address })
    writeFileSync(CHAINS, `{ "1": ${good}, "8453": ${good} }`)
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toHaveLength(2)
    for (const [text, key] of [
      [`{ "1": ${good}, "8453": ${good}, "1" : ${good} }`, "1"],
      [`{ "1": ${good.slice(0, -1)}, "rpc_urls": ["https://other.example.com"] } }`, "rpc_urls"],
    ] as const) {
      writeFileSync(CHAINS, text)
      expect(complaintAbout({ SERVICE_SECRET, CHAINS })).toBe(
        `CHAINS names ${CHAINS}, which has the key ${key} twice in one object`,
      )
    }
  })

  let written = 0
  function write(document: unknown): string {
    const path = join(folder, `chains-${++written}.json`)
    writeFileSync(path, JSON.stringify(document))
    return path
  }
})

test("a server on all interfaces is printed as localhost, and one on an IPv6 address in brackets", () => {
  expect(baseUrl("0.0.0.0", 3000)).toBe("http://localhost:3000")
  expect(baseUrl("::", 3000)).toBe("http://localhost:3000")
  expect(baseUrl("::1", 3000)).toBe("http://[::1]:3000")
  expect(baseUrl("10.0.0.1", 80)).toBe("http://10.0.0.1:80")
})

test.each(["prefer", "require", "verify-ca"])(
  "sslmode=%s is taken as verify-full, as the driver takes it, but without its warning",
  (mode) => {
    const DATABASE_URL = `postgres://u:p@db/s?sslmode=${mode}&application_name=api`
    const { database_url } = loadConfig({ SERVICE_SECRET, DATABASE_URL })
    expect(database_url).toBe("postgres://u:p@db/s?sslmode=verify-full&application_name=api")
    const warn = spyOn(process, "emitWarning")
    expect(() => new pg.Client(database_url)).not.toThrow()
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  },
)

test("sslmode keeps the meaning that it has for libpq where the URL asks for that", () => {
  const DATABASE_URL = "postgres://u:p@db/s?sslmode=require&uselibpqcompat=true"
  expect(loadConfig({ SERVICE_SECRET, DATABASE_URL }).database_url).toBe(DATABASE_URL)
})

/** The rate limits if one variable is set. */
function limitsWith(name: keyof Config["rate_limits"], requests: number, seconds: number) {
  return { ...loadConfig({ SERVICE_SECRET }).rate_limits, [name]: { requests, seconds } }
}

/** What the failed start prints. */
function complaintAbout(environment: Environment): string {
  try {
    loadConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error("the configuration was taken")
}

function shown(text: string): string {
  return text.length > 48 ? `${text.slice(0, 12)}… (${text.length} characters)` : JSON.stringify(text)
}
