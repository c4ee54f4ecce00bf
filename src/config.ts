import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { type Address, getAddress, type Hex, isAddress } from "viem"

export type Config = {
  port: number
  host: string
  api_base_url: string
  docs_url: string
  data_dir: string
  /** `sqlite:<path>` or `postgres://…`. */
  database_url: string
  redis_url: string | null
  /** Where spans are sent by OTLP over HTTP, without the path `/v1/traces`; null where nobody asks for them. */
  traces_url: string | null
  chains: ChainConfig[]
  /** One key serves all purposes; of several the first is for claims and chip replacements, the others issue. */
  signer_keys: Hex[]
  authorizer_key: Hex | null
  service_secret: string
  operator_port: number
  operator_host: string
  /** Asked for on the operator port; null only where nobody but this machine reaches it. */
  operator_token: string | null
  trusted_proxies: number
  rate_limits: RateLimitsConfig
  log_level: LogLevel
}

/** So many in a window of so many seconds, which begins with the first of them. */
export type RateLimit = { requests: number; seconds: number }

/** The first three are of requests with such a credential; failed credentials per address, refused values per chip. */
export type RateLimitsConfig = Record<keyof typeof rateLimitDefaults, RateLimit>

export type ChainConfig = {
  chain_id: number
  name: string
  rpc_urls: string[]
  factory_address: Address
  /** Blocks, the one that holds the transaction included, after which the API's status moves. */
  confirmation_depth: number
  /** Blocks after which nobody looks at the transaction again. */
  finality_depth: number
  block_time_seconds: number
  max_fee_per_gas_gwei: number
  /** Blocks without a receipt after which the lowest open nonce is sent again with higher fees. */
  bump_after_blocks: number
  /** The most blocks whose logs are asked for at once: what the chain's providers take. */
  log_range_blocks: number
}

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent"

/** A setting that stops the start: one line that names the variable, what is wrong and what it takes. */
export class ConfigError extends Error {
  override name = "ConfigError"
}

/** Reads the configuration from the environment, the only place that does. Throws `ConfigError`. */
export function loadConfig(environment: Environment): Config {
  const port = integerFrom(environment, "PORT", 3000, 0, 65_535)
  const host = hostFrom(environment, "HOST", "0.0.0.0")
  const operator_host = hostFrom(environment, "OPERATOR_HOST", "127.0.0.1")
  const data_dir = dataDirOf(environment)
  const api_base_url = webAddress(environment, "API_BASE_URL") ?? baseUrl(host, port)
  return {
    port,
    host,
    api_base_url,
    docs_url: webAddress(environment, "DOCS_URL") ?? `${api_base_url}/docs`,
    data_dir,
    database_url: databaseUrl(environment, data_dir),
    redis_url: redisUrl(environment),
    traces_url: webAddress(environment, "OTEL_EXPORTER_OTLP_ENDPOINT"),
    chains: chains(environment),
    signer_keys: signerKeys(environment),
    authorizer_key: authorizerKey(environment),
    service_secret: serviceSecret(environment),
    operator_port: integerFrom(environment, "OPERATOR_PORT", 9090, 0, 65_535),
    operator_host,
    operator_token: operatorToken(environment, operator_host),
    trusted_proxies: integerFrom(environment, "TRUSTED_PROXIES", 0, 0, 10),
    rate_limits: rateLimits(environment),
    log_level: logLevel(environment),
  }
}

export type Environment = Record<string, string | undefined>

/** The variables this process was started with. */
export const processEnvironment: Environment = process.env

/** Where an embedded service keeps its files. */
export function dataDirOf(environment: Environment): string {
  return resolve(environment.DATA_DIR || "./data")
}

/** The address callers use when nothing else is configured; a server on all interfaces is reached as localhost. */
export function baseUrl(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`
}

/** A whole number among the variables. Throws `ConfigError`. */
export function integerFrom(
  environment: Environment,
  name: string,
  fallback: number,
  least: number,
  most: number,
): number {
  const text = environment[name]
  if (text === undefined || text === "") return fallback
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most)
    throw new ConfigError(
      `${name} takes a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`,
    )
  return value
}

function hostFrom(environment: Environment, name: string, fallback: string): string {
  const text = environment[name] || fallback
  if (/^[\w.:-]+$/.test(text)) return text
  throw new ConfigError(
    `${name} takes a host name or an IP address without brackets, not ${JSON.stringify(text)}`,
  )
}

/** Not quoted when it is wrong: it may hold a password. */
function webAddress(environment: Environment, name: string): string | null {
  const text = environment[name]
  if (!text) return null
  if (!/^https?:\/\/[^\s?#@]+$/.test(text) || !URL.canParse(text))
    throw new ConfigError(`${name} takes an http or https address without user name, query or fragment`)
  return text.replace(/\/+$/, "")
}

function databaseUrl(environment: Environment, dataDir: string): string {
  const text = environment.DATABASE_URL || `sqlite:${join(dataDir, "service.db")}`
  if (/^sqlite:.+/.test(text)) return text
  // An empty host is how node-postgres is told of a Unix socket: postgres://user@/database?host=/folder.
  if (/^postgres(ql)?:\/\/\S+$/.test(text) && URL.canParse(text.replace("@/", "@localhost/"))) return text
  throw new ConfigError("DATABASE_URL takes sqlite:<path> or postgres://user:password@host/database")
}

function redisUrl(environment: Environment): string | null {
  const text = environment.REDIS_URL
  if (!text) return null
  if (!/^rediss?:\/\/\S+$/.test(text) || !URL.canParse(text))
    throw new ConfigError("REDIS_URL takes redis://host:port or rediss://…")
  return text
}

function chains(environment: Environment): ChainConfig[] {
  const path = environment.CHAINS
  if (!path) return []
  const document = readJson(path)
  if (!document || typeof document !== "object" || Array.isArray(document))
    throw new ConfigError(`CHAINS names ${path}, which must be an object with a key for each chain id`)
  return Object.entries(document).map(([id, settings]) => chain(path, id, settings))
}

/** What is wrong in the text is not quoted: it may be an address with an access key. */
function readJson(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    throw new ConfigError(`CHAINS names ${path}, which cannot be read: ${(error as Error).message}`)
  }
  try {
    return JSON.parse(text)
  } catch {
    throw new ConfigError(`CHAINS names ${path}, which is not JSON`)
  }
}

function chain(path: string, id: string, settings: unknown): ChainConfig {
  const wrong = (what: string) => new ConfigError(`CHAINS: chain ${id} in ${path} ${what}`)
  if (!/^[1-9]\d{0,14}$/.test(id)) throw wrong("has a key that is not a chain id")
  if (!settings || typeof settings !== "object") throw wrong("is not an object")
  const given = settings as Record<string, unknown>
  // `reason` is for people: JSON has no comments.
  const known = ["name", "reason", "rpc_urls", "factory_address", ...Object.keys(chainNumbers)]
  const unknown = Object.keys(given).find((key) => !known.includes(key))
  if (unknown) throw wrong(`has an unknown key ${unknown}`)
  const urls = given.rpc_urls
  if (!Array.isArray(urls) || urls.length === 0 || !urls.every(isRpcUrl))
    throw wrong("needs rpc_urls, a list of http or https addresses")
  const factory = String(given.factory_address ?? "")
  if (!isAddress(factory)) throw wrong("needs factory_address, the address of the deployed factory")
  const numbers = Object.entries(chainNumbers).map(([key, fallback]) => {
    const value = given[key] ?? fallback
    if (typeof value !== "number" || !(value > 0) || value === Number.POSITIVE_INFINITY)
      throw wrong(`needs ${key}, a number above 0`)
    if (countsBlocks.includes(key) && !Number.isSafeInteger(value))
      throw wrong(`needs ${key}, a whole number`)
    return [key, value]
  })
  const settled = Object.fromEntries(numbers) as typeof chainNumbers
  if (settled.finality_depth < settled.confirmation_depth)
    throw wrong("needs a finality_depth that is not below its confirmation_depth")
  const name = given.name ?? `chain ${id}`
  if (typeof name !== "string") throw wrong("needs a name that is a text")
  return {
    chain_id: Number(id),
    name,
    rpc_urls: urls.map(String),
    factory_address: getAddress(factory),
    ...settled,
  }
}

function isRpcUrl(url: unknown): boolean {
  return typeof url === "string" && /^https?:\/\/\S+$/.test(url) && URL.canParse(url)
}

const countsBlocks = ["confirmation_depth", "finality_depth", "bump_after_blocks", "log_range_blocks"]

const chainNumbers = {
  confirmation_depth: 12,
  finality_depth: 65,
  block_time_seconds: 12,
  max_fee_per_gas_gwei: 500,
  bump_after_blocks: 4,
  log_range_blocks: 2_000,
}

/** The order of secp256k1 (SEC 2, section 2.4.1): a private key is above 0 and below it. */
const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

function isPrivateKey(text: string): text is Hex {
  return /^0x[0-9a-fA-F]{64}$/.test(text) && BigInt(text) > 0n && BigInt(text) < curveOrder
}

function signerKeys(environment: Environment): Hex[] {
  const texts = (environment.SIGNER_KEYS || "").split(",").map((text) => text.trim())
  const keys: Hex[] = []
  for (const [index, text] of texts.filter((text) => text !== "").entries()) {
    if (!isPrivateKey(text))
      throw new ConfigError(
        `SIGNER_KEYS: key number ${index + 1} is not 0x and the 64 digits of a private key`,
      )
    if (keys.some((key) => BigInt(key) === BigInt(text)))
      throw new ConfigError(`SIGNER_KEYS: key number ${index + 1} is there already; every lane needs its own`)
    keys.push(text)
  }
  return keys
}

function authorizerKey(environment: Environment): Hex | null {
  const key = environment.AUTHORIZER_KEY
  if (!key) return null
  if (!isPrivateKey(key)) throw new ConfigError("AUTHORIZER_KEY is not 0x and the 64 digits of a private key")
  return key
}

function serviceSecret(environment: Environment): string {
  const secret = environment.SERVICE_SECRET ?? ""
  if (secret.length < 32)
    throw new ConfigError("SERVICE_SECRET needs at least 32 characters; make one with: openssl rand -hex 32")
  if (new Set(secret).size < 8)
    throw new ConfigError("SERVICE_SECRET repeats a few characters; make one with: openssl rand -hex 32")
  return secret
}

function operatorToken(environment: Environment, operatorHost: string): string | null {
  const token = environment.OPERATOR_TOKEN
  if (!token && isLoopback(operatorHost)) return null
  if (!token)
    throw new ConfigError(
      "OPERATOR_TOKEN is needed where OPERATOR_HOST is not 127.0.0.1; make one with: openssl rand -hex 32",
    )
  if (/^[\x21-\x7e]{32,}$/.test(token) && new Set(token).size >= 8) return token
  throw new ConfigError(
    "OPERATOR_TOKEN needs at least 32 characters, none of them a space; make one with: openssl rand -hex 32",
  )
}

/** Whether a host name or address leads to this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
}

/** 200 in 2 seconds is 100 a second with bursts of 200. */
const rateLimitDefaults = {
  api_key: { variable: "RATE_LIMIT_API_KEY", text: "200/2" },
  session_token: { variable: "RATE_LIMIT_SESSION_TOKEN", text: "20/4" },
  publishable_key: { variable: "RATE_LIMIT_PUBLISHABLE_KEY", text: "20/4" },
  failed_credential: { variable: "RATE_LIMIT_FAILED_CREDENTIALS", text: "10/60" },
  refused_value: { variable: "RATE_LIMIT_REFUSED_VALUES", text: "10/60" },
}

function rateLimits(environment: Environment): RateLimitsConfig {
  const limits = Object.entries(rateLimitDefaults).map(([name, { variable, text }]) => [
    name,
    rateLimit(variable, environment[variable] || text),
  ])
  return Object.fromEntries(limits) as RateLimitsConfig
}

function rateLimit(variable: string, text: string): RateLimit {
  const parts = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/.exec(text)
  if (parts) return { requests: Number(parts[1]), seconds: Number(parts[2]) }
  throw new ConfigError(`${variable} takes requests and seconds such as 200/2, not ${JSON.stringify(text)}`)
}

function logLevel(environment: Environment): LogLevel {
  const text = environment.LOG_LEVEL || "info"
  if (["debug", "info", "warn", "error", "silent"].includes(text)) return text as LogLevel
  throw new ConfigError(`LOG_LEVEL takes debug, info, warn, error or silent, not ${JSON.stringify(text)}`)
}
