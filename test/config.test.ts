import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { baseUrl, type Config, ConfigError, type Environment, loadConfig } from "../src/config.ts"

const SERVICE_SECRET = "4f1c9a7e2b8d6035f1c9a7e2b8d60354"
const key = `0x${"1a".repeat(32)}`
const otherKey = `0x${"2b".repeat(32)}`
const factory_address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
const curveOrder = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "config-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Case = [variable: string, text: string, key: keyof Config, value: unknown]

describe("a variable that is not set", () => {
  const defaults: Omit<Config, "service_secret"> = {
    port: 3000,
    host: "0.0.0.0",
    api_base_url: "http://localhost:3000",
    docs_url: "http://localhost:3000/docs",
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
    },
    log_level: "info",
  }

  test("has its default", () => {
    expect(loadConfig({ SERVICE_SECRET })).toEqual({ ...defaults, service_secret: SERVICE_SECRET })
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
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "LOG_LEVEL",
      ],
      ...["RATE_LIMIT_API_KEY", "RATE_LIMIT_SESSION_TOKEN", "RATE_LIMIT_PUBLISHABLE_KEY"],
      ...["RATE_LIMIT_FAILED_CREDENTIALS", "RATE_LIMIT_REFUSED_VALUES"],
    ]
    const empty = Object.fromEntries(names.map((name) => [name, ""]))
    expect(loadConfig({ ...empty, SERVICE_SECRET })).toEqual(loadConfig({ SERVICE_SECRET }))
  })

  test("stops the start when it is SERVICE_SECRET, and says how to make one", () => {
    expect(complaintAbout({})).toBe(
      "SERVICE_SECRET needs at least 32 characters; make one with: openssl rand -hex 32",
    )
  })
})

describe("a good value is taken:", () => {
  const cases: Case[] = [
    ["PORT", "0", "port", 0],
    ["PORT", "65535", "port", 65_535],
    ["HOST", "::", "host", "::"],
    ["HOST", "api.example.com", "host", "api.example.com"],
    ["API_BASE_URL", "https://api.example.com", "api_base_url", "https://api.example.com"],
    ["API_BASE_URL", "https://api.example.com/service//", "api_base_url", "https://api.example.com/service"],
    ["API_BASE_URL", "https://api.example.com", "docs_url", "https://api.example.com/docs"],
    ["DOCS_URL", "https://docs.example.com/", "docs_url", "https://docs.example.com"],
    ["DATA_DIR", "/srv/service", "data_dir", "/srv/service"],
    ["DATA_DIR", "/srv/service", "database_url", "sqlite:/srv/service/service.db"],
    ["DATA_DIR", "elsewhere", "data_dir", resolve("elsewhere")],
    ["DATABASE_URL", "sqlite:other.db", "database_url", "sqlite:other.db"],
    ["DATABASE_URL", "postgres://u:p@db:5432/service", "database_url", "postgres://u:p@db:5432/service"],
    ["DATABASE_URL", "postgresql://u@/s?host=/run", "database_url", "postgresql://u@/s?host=/run"],
    ["REDIS_URL", "redis://localhost:6379", "redis_url", "redis://localhost:6379"],
    ["REDIS_URL", "rediss://u:p@cache:6380/1", "redis_url", "rediss://u:p@cache:6380/1"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/", "traces_url", "http://localhost:4318"],
    ["SIGNER_KEYS", key, "signer_keys", [key]],
    ["SIGNER_KEYS", ` ${key} , ${otherKey},`, "signer_keys", [key, otherKey]],
    ["AUTHORIZER_KEY", key, "authorizer_key", key],
    ["OPERATOR_PORT", "9191", "operator_port", 9191],
    ["OPERATOR_HOST", "127.0.0.2", "operator_host", "127.0.0.2"],
    ["OPERATOR_TOKEN", SERVICE_SECRET, "operator_token", SERVICE_SECRET],
    ["TRUSTED_PROXIES", "10", "trusted_proxies", 10],
    ["LOG_LEVEL", "silent", "log_level", "silent"],
    ["RATE_LIMIT_API_KEY", "1000/1", "rate_limits", limitsWith("api_key", 1000, 1)],
    ["RATE_LIMIT_SESSION_TOKEN", "1/60", "rate_limits", limitsWith("session_token", 1, 60)],
    ["RATE_LIMIT_PUBLISHABLE_KEY", "50/10", "rate_limits", limitsWith("publishable_key", 50, 10)],
    ["RATE_LIMIT_FAILED_CREDENTIALS", "5/3600", "rate_limits", limitsWith("failed_credential", 5, 3600)],
    ["RATE_LIMIT_REFUSED_VALUES", "3/60", "rate_limits", limitsWith("refused_value", 3, 60)],
  ]
  for (const [variable, text, name, value] of cases)
    test(`${variable}=${shown(text)} makes ${name} ${shown(JSON.stringify(value))}`, () => {
      const config: Record<string, unknown> = loadConfig({ SERVICE_SECRET, [variable]: text })
      expect(config[name]).toEqual(value)
    })
})

describe("a wrong value stops the start with one line that names the variable:", () => {
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
    ["REDIS_URL", "redis://localhost:99999"],
    ["CHAINS", "/nowhere/chains.json"],
    ["SIGNER_KEYS", "0x12"],
    ["SIGNER_KEYS", `0x${"0".repeat(64)}`],
    ["SIGNER_KEYS", curveOrder],
    ["SIGNER_KEYS", `${key},${key.toUpperCase().replace("X", "x")}`],
    ["AUTHORIZER_KEY", "1a".repeat(32)],
    ["AUTHORIZER_KEY", `0x${"0".repeat(64)}`],
    ["SERVICE_SECRET", "0".repeat(64)],
    ["SERVICE_SECRET", "short"],
    ["OPERATOR_PORT", "ninety"],
    ["OPERATOR_HOST", "a/b"],
    ["OPERATOR_TOKEN", "f3a9c1d7e5b80246"],
    ["OPERATOR_TOKEN", "ab".repeat(16)],
    ["TRUSTED_PROXIES", "11"],
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

test("an operator port that others can reach needs OPERATOR_TOKEN", () => {
  for (const OPERATOR_HOST of ["0.0.0.0", "::", "10.0.0.1", "127.example.com"]) {
    expect(complaintAbout({ SERVICE_SECRET, OPERATOR_HOST })).toStartWith("OPERATOR_TOKEN is needed")
    const OPERATOR_TOKEN = SERVICE_SECRET
    expect(loadConfig({ SERVICE_SECRET, OPERATOR_HOST, OPERATOR_TOKEN }).operator_host).toBe(OPERATOR_HOST)
  }
})

describe("a wrong value that is a secret is not in the text:", () => {
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
    ["DOCS_URL", "https://u:hunter2@docs.example.com", "hunter2"],
  ]
  for (const [variable, text, secret] of cases)
    test(`${variable} with ${secret}`, () => {
      expect(complaintAbout({ SERVICE_SECRET, [variable]: text })).not.toContain(secret)
    })
})

describe("the file of CHAINS", () => {
  test("gives each chain what it leaves out", () => {
    const CHAINS = write({ "8453": { rpc_urls: ["https://rpc.example.com"], factory_address } })
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toEqual([
      {
        chain_id: 8453,
        name: "chain 8453",
        rpc_urls: ["https://rpc.example.com"],
        factory_address,
        confirmation_depth: 12,
        finality_depth: 65,
        block_time_seconds: 12,
        max_fee_per_gas_gwei: 500,
        bump_after_blocks: 4,
        log_range_blocks: 2_000,
      },
    ])
  })

  test("is taken as it is written", () => {
    const chain = {
      name: "base",
      rpc_urls: ["https://one.example.com", "http://localhost:8545"],
      factory_address,
      confirmation_depth: 1,
      finality_depth: 1,
      block_time_seconds: 0.25,
      max_fee_per_gas_gwei: 0.5,
      bump_after_blocks: 20,
      log_range_blocks: 10_000,
    }
    const CHAINS = write({ "1": chain })
    expect(loadConfig({ SERVICE_SECRET, CHAINS }).chains).toEqual([
      { chain_id: 1, ...chain, factory_address },
    ])
  })

  const good = { rpc_urls: ["https://rpc.example.com"], factory_address }
  const wrong: [what: string, document: unknown][] = [
    ["a list", [good]],
    ["null", null],
    ["a chain id that is a name", { base: good }],
    ["a chain id with a leading zero", { "01": good }],
    ["a chain that is no object", { "1": "https://rpc.example.com" }],
    ["an unknown key", { "1": { ...good, rpc_url: "https://rpc.example.com" } }],
    ["no RPC address", { "1": { ...good, rpc_urls: [] } }],
    ["an RPC address of another kind", { "1": { ...good, rpc_urls: ["ws://rpc.example.com"] } }],
    ["an RPC address that is none", { "1": { ...good, rpc_urls: ["https://rpc.example.com:99999"] } }],
    ["no factory", { "1": { rpc_urls: good.rpc_urls } }],
    [
      "a factory with a wrong checksum",
      { "1": { ...good, factory_address: factory_address.replace("Fb", "FB") } },
    ],
    ["a depth of zero", { "1": { ...good, confirmation_depth: 0 } }],
    ["half a block of logs", { "1": { ...good, log_range_blocks: 0.5 } }],
    ["half a block of depth", { "1": { ...good, confirmation_depth: 1.5 } }],
    ["a depth that is a text", { "1": { ...good, finality_depth: "65" } }],
    ["finality before confirmation", { "1": { ...good, confirmation_depth: 10, finality_depth: 9 } }],
    ["a name that is no text", { "1": { ...good, name: {} } }],
  ]
  for (const [what, document] of wrong)
    test(`stops the start with ${what}`, () => {
      const complaint = complaintAbout({ SERVICE_SECRET, CHAINS: write(document) })
      expect(complaint).toStartWith("CHAINS")
      expect(complaint).not.toContain("\n")
    })

  test("that is not JSON stops the start without a word of what it holds", () => {
    const CHAINS = join(folder, "broken.json")
    writeFileSync(CHAINS, '{ "1": { "rpc_urls": [hunter2, "https://rpc.example.com/v2/hunter2"] } }')
    expect(complaintAbout({ SERVICE_SECRET, CHAINS })).toBe(`CHAINS names ${CHAINS}, which is not JSON`)
  })

  let written = 0
  function write(document: unknown): string {
    const path = join(folder, `chains-${++written}.json`)
    writeFileSync(path, JSON.stringify(document))
    return path
  }
})

test("a server on all interfaces is shown as localhost, one on an IPv6 address in brackets", () => {
  expect(baseUrl("0.0.0.0", 3000)).toBe("http://localhost:3000")
  expect(baseUrl("::", 3000)).toBe("http://localhost:3000")
  expect(baseUrl("::1", 3000)).toBe("http://[::1]:3000")
  expect(baseUrl("10.0.0.1", 80)).toBe("http://10.0.0.1:80")
})

/** The limits where one variable is set. */
function limitsWith(name: keyof Config["rate_limits"], requests: number, seconds: number) {
  return { ...loadConfig({ SERVICE_SECRET }).rate_limits, [name]: { requests, seconds } }
}

/** What the start says when it stops. */
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
