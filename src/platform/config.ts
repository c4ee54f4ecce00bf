import { join, resolve } from "node:path"
import type { Hex } from "viem"
import { type ChainConfig, readChains } from "./chain-settings.ts"
import { ConfigError } from "./config-error.ts"
import { authorizerKey, type SignerKey, signerKeys } from "./key-settings.ts"
import type { Secret } from "./sealing.ts"
import { hasStrayEnds, strayEnds } from "./stray-ends.ts"

export type Config = {
  port: number
  host: string
  api_base_url: string
  docs_url: string
  /** The base of the metadata URLs in the contracts' `tokenURI`. */
  metadata_base_url: string
  data_dir: string
  /** `sqlite:<path>` or `postgres://…`. */
  database_url: string
  redis_url: string | null
  /** Where spans are sent by OTLP over HTTP, without the path `/v1/traces`; null for nowhere. */
  traces_url: string | null
  chains: ChainConfig[]
  /** One key serves all purposes. Of several, the first half claims and replaces chips, the rest deploys and issues. */
  signer_keys: SignerKey[]
  authorizer_key: Hex | null
  service_secret: Secret
  operator_port: number
  operator_host: string
  /** Required on the operator port; null only if that is reachable from this machine alone. */
  operator_token: string | null
  trusted_proxies: number
  rate_limits: RateLimitsConfig
  /** Days after which events and their delivery records are deleted. */
  events_kept_days: number
  /** How many concurrent fetches Bun allows this process. Bun reads the same variable. */
  fetches_at_once: number
  /** How many effects of one organization may wait for the chain. */
  open_work_limit: number
  log_level: LogLevel
}

/** A burst of `requests`, refilled evenly over `seconds`. */
export type RateLimit = { requests: number; seconds: number }

/**
 * The first three count requests per credential, publishable keys also per client. Failed credentials, tap redirects
 * and public metadata count per client, refused values per chip, stored responses per organization.
 */
type RateLimitsConfig = Record<keyof typeof rateLimitDefaults, RateLimit>

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent"

/** Reads the configuration from the environment. Throws `ConfigError`. */
export function loadConfig(environment: Environment): Config {
  const port = integerFrom(environment, "PORT", 3000, 0, 65_535)
  const host = hostFrom(environment, "HOST", "0.0.0.0")
  const operator_host = hostFrom(environment, "OPERATOR_HOST", "127.0.0.1")
  const data_dir = dataDirOf(environment)
  const api_base_url = apiBaseUrl(environment)
  return {
    port,
    host,
    api_base_url,
    docs_url: webAddress(environment, "DOCS_URL") ?? `${api_base_url}/docs`,
    metadata_base_url: metadataBaseUrl(environment),
    data_dir,
    database_url: databaseUrl(environment, data_dir),
    redis_url: redisUrl(environment),
    traces_url: tracesUrl(environment),
    chains: chainsFrom(environment),
    signer_keys: signerKeys(keyFrom(environment, "SIGNER_KEYS")),
    authorizer_key: authorizerKey(keyFrom(environment, "AUTHORIZER_KEY")),
    service_secret: serviceSecret(environment),
    operator_port: integerFrom(environment, "OPERATOR_PORT", 9090, 0, 65_535),
    operator_host,
    operator_token: operatorToken(environment, operator_host),
    trusted_proxies: integerFrom(environment, "TRUSTED_PROXIES", 0, 0, 10),
    rate_limits: rateLimits(environment),
    events_kept_days: integerFrom(environment, "EVENTS_KEPT_DAYS", 90, 1, 36_500),
    fetches_at_once: integerFrom(environment, "BUN_CONFIG_MAX_HTTP_REQUESTS", 256, 32, 65_535),
    open_work_limit: integerFrom(environment, "OPEN_WORK_LIMIT", 5_000, 1, 1_000_000),
    log_level: logLevel(environment),
  }
}

function apiBaseUrl(environment: Environment): string {
  const given = webAddress(environment, "API_BASE_URL")
  if (given) return given
  return baseUrl(hostFrom(environment, "HOST", "0.0.0.0"), integerFrom(environment, "PORT", 3000, 0, 65_535))
}

/** Returns `METADATA_BASE_URL`, by default a path below the API's own URL. Throws `ConfigError`. */
export function metadataBaseUrl(environment: Environment): string {
  return webAddress(environment, "METADATA_BASE_URL") ?? `${apiBaseUrl(environment)}/metadata`
}

export type Environment = Record<string, string | undefined>

/** The variables this process was started with. Nothing else reads `process.env`. */
export const processEnvironment: Environment = process.env

/** Returns the folder where an embedded service keeps its files. Throws `ConfigError`. */
export function dataDirOf(environment: Environment): string {
  return resolve(textFrom(environment, "DATA_DIR") || "./data")
}

/** Returns the URL of a server that has no other configured. A server on all interfaces is called `localhost`. */
export function baseUrl(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`
}

/** Reads a whole number from a variable. Throws `ConfigError`. */
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

/** Reads a text that errors do not quote, so that they must say what cannot be seen. Throws `ConfigError`. */
function textFrom(environment: Environment, name: string): string {
  return withoutStrayEnds(name, environment[name] ?? "")
}

/** Reads keys, whose file often ends with a line break. Throws `ConfigError`. */
function keyFrom(environment: Environment, name: string): string {
  return withoutStrayEnds(name, environment[name]?.trim() ?? "")
}

function withoutStrayEnds(name: string, text: string): string {
  if (hasStrayEnds(text)) throw new ConfigError(`${name} ${strayEnds}`)
  return text
}

function chainsFrom(environment: Environment): ChainConfig[] {
  const path = textFrom(environment, "CHAINS")
  return path ? readChains(path) : []
}

/** Reads an optional URL. Errors do not quote it, since it may contain a password. Throws `ConfigError`. */
function webAddress(environment: Environment, name: string): string | null {
  const text = textFrom(environment, name)
  if (!text) return null
  if (!/^https?:\/\/[^\s?#@]+$/.test(text) || !URL.canParse(text))
    throw new ConfigError(`${name} takes an http or https URL without user name, query or fragment`)
  return text.replace(/\/+$/, "")
}

/** The collector's client reads the headers itself, and leaves out without a word what it cannot read. */
function tracesUrl(environment: Environment): string | null {
  const headers = (environment.OTEL_EXPORTER_OTLP_HEADERS ?? "")
    .split(",")
    .filter((each) => each.trim() !== "")
  if (headers.every((each) => namedHeader.test(each) && isPercentEncoded(each)))
    return webAddress(environment, "OTEL_EXPORTER_OTLP_ENDPOINT")
  throw new ConfigError(
    "OTEL_EXPORTER_OTLP_HEADERS takes name=value,name=value, with % , and ; in a value as %25 %2C and %3B",
  )
}

/** A name as RFC 9110 has it, section 5.1, and a value up to the ";" where that client ends it. */
const namedHeader = /^\s*[\w!#$&'*+.^`|~-]+\s*=\s*[!-:<-~][ -:<-~]*$/

function databaseUrl(environment: Environment, dataDir: string): string {
  const text = textFrom(environment, "DATABASE_URL") || `sqlite:${join(dataDir, "service.db")}`
  // Every connection would have an in-memory database of its own.
  if (/^sqlite:.+/.test(text) && text !== "sqlite::memory:") return text
  // An empty host means a Unix socket to node-postgres: postgres://user@/database?host=/folder. If any % is not a valid
  // escape, node-postgres takes all of them literally.
  const isReadable = /%(?![0-9a-f]{2})/i.test(text) || isPercentEncoded(text)
  const isPostgres = /^postgres(ql)?:\/\/\S+$/.test(text) && URL.canParse(text.replace("@/", "@localhost/"))
  if (isPostgres && isReadable && !endsInPassword(text)) return withStrictTls(text)
  throw new ConfigError(
    `DATABASE_URL takes sqlite:<path> or postgres://user:password@host/database, ${signsOfPasswords}`,
  )
}

/** Replaces the TLS modes that node-postgres takes as `verify-full`, but only after a warning of eight lines. */
function withStrictTls(url: string): string {
  if (/[?&]uselibpqcompat=true(&|$)/.test(url)) return url
  return url.replace(/([?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/, "$1verify-full")
}

function redisUrl(environment: Environment): string | null {
  const text = textFrom(environment, "REDIS_URL")
  if (!text) return null
  const isRedis = /^rediss?:\/\/\S+$/.test(text) && URL.canParse(text)
  // The client would take any other path for database 0, which others may use.
  const isNumbered = isRedis && /^\/?\d*$/.test(new URL(text).pathname)
  if (isNumbered && isPercentEncoded(text) && !endsInPassword(text)) return text
  throw new ConfigError(
    `REDIS_URL takes redis://host:port, redis://host:port/2 for database 2, or rediss://…, ${signsOfPasswords}`,
  )
}

const signsOfPasswords = "with % # / ? and spaces in a password written as %25 %23 %2F %3F and %20"

/** Returns whether a character in the password ends the authority, so that user and password parse as host and port. */
function endsInPassword(text: string): boolean {
  return /^\w+:\/\/[^@/?#]*([/#][^@?]*|\?[^@=]*)@/.test(text)
}

/** Returns whether every % starts a valid escape, without which the URL cannot be decoded. */
function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function serviceSecret(environment: Environment): Secret {
  const current = secretIn(environment, "SERVICE_SECRET")
  if (!environment.SERVICE_SECRET_PREVIOUS) return { current, previous: null }
  const previous = secretIn(environment, "SERVICE_SECRET_PREVIOUS")
  if (previous !== current) return { current, previous }
  throw new ConfigError("SERVICE_SECRET_PREVIOUS is the same as SERVICE_SECRET: set it to the previous one")
}

function secretIn(environment: Environment, name: string): string {
  const secret = environment[name] ?? ""
  const advice = "make one with: openssl rand -hex 32"
  if (secret.length < 32) throw new ConfigError(`${name} needs at least 32 characters; ${advice}`)
  if (new Set(secret).size < 8) throw new ConfigError(`${name} repeats a few characters; ${advice}`)
  return secret
}

function operatorToken(environment: Environment, operatorHost: string): string | null {
  const token = textFrom(environment, "OPERATOR_TOKEN")
  if (!token && isLoopback(operatorHost)) return null
  if (!token)
    throw new ConfigError(
      "OPERATOR_TOKEN is needed because OPERATOR_HOST is not 127.0.0.1; make one with: openssl rand -hex 32",
    )
  if (/^[\x21-\x7e]{32,}$/.test(token) && new Set(token).size >= 8) return token
  throw new ConfigError(
    "OPERATOR_TOKEN needs at least 32 characters, none of them a space; make one with: openssl rand -hex 32",
  )
}

/** Returns whether a host name or IP address refers to this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Returns whether only this machine reaches the API, as when the service is being tried out. */
export function isOnThisMachine({ api_base_url }: Pick<Config, "api_base_url">): boolean {
  return isUrlOfThisMachine(api_base_url)
}

export function isUrlOfThisMachine(url: string): boolean {
  return isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ""))
}

/** "200/2" allows bursts of 200 and 100 a second. An API key may store as many responses as it may send requests. */
const rateLimitDefaults = {
  api_key: { variable: "RATE_LIMIT_API_KEY", text: "200/2" },
  session_token: { variable: "RATE_LIMIT_SESSION_TOKEN", text: "20/4" },
  publishable_key: { variable: "RATE_LIMIT_PUBLISHABLE_KEY", text: "20/4" },
  failed_credential: { variable: "RATE_LIMIT_FAILED_CREDENTIALS", text: "10/60" },
  refused_value: { variable: "RATE_LIMIT_REFUSED_VALUES", text: "10/60" },
  tap_redirect: { variable: "RATE_LIMIT_TAP_REDIRECTS", text: "100/5" },
  metadata: { variable: "RATE_LIMIT_METADATA", text: "500/10" },
  kept_answer: { variable: "RATE_LIMIT_KEPT_ANSWERS", text: "360000/3600" },
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
