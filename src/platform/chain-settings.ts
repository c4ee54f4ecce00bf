import { readFileSync } from "node:fs"
import { type Static, type TObject, Type } from "@sinclair/typebox"
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value"
import { type Address, getAddress, isAddress } from "viem"
import { ConfigError } from "./config-error.ts"

/** A chain in the file of `CHAINS`. Gas prices are in gwei, costs of transactions in the chain's coin. */
export type ChainConfig = Omit<Static<typeof chainSettings>, "reason" | "send_url" | "desk_address"> & {
  chain_id: number
  name: string
  factory_address: Address
  /** The desk contract, which joins work for several collections into one transaction; null without one. */
  desk_address: Address | null
  /** Where transactions are sent instead of `rpc_urls`, such as a private pool; null for `rpc_urls`. */
  send_url: string | null
  max_priority_fee_per_gas_gwei: number
}

const wording = (text: string) => ({ "x-message": text })
const blocks = (fallback: number) =>
  Type.Integer({ minimum: 1, default: fallback, ...wording("a whole number of blocks above 0") })
const amount = (options: { default?: number } = {}) =>
  Type.Number({ exclusiveMinimum: 0, ...options, ...wording("a number above 0") })
const webUrl = (text: string) => Type.String({ pattern: "^https?://\\S+$", ...wording(text) })
const someUrls = "a list of http or https URLs"

const chainSettings = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, ...wording("a string") })),
    /** A comment for people, since JSON has none. */
    reason: Type.Optional(Type.String(wording("a string"))),
    rpc_urls: Type.Array(webUrl(someUrls), { minItems: 1, ...wording(someUrls) }),
    send_url: Type.Optional(webUrl("an http or https URL")),
    factory_address: Type.String({
      pattern: "^0x[0-9a-fA-F]{40}$",
      ...wording("the address of the deployed factory"),
    }),
    desk_address: Type.Optional(
      Type.String({ pattern: "^0x[0-9a-fA-F]{40}$", ...wording("the address of the deployed desk") }),
    ),
    /** Batches of at least this many units store their chips as contract code: cheaper for many, dearer for few. */
    chips_as_code_from: Type.Integer({ minimum: 1, default: 11, ...wording("a whole number above 0") }),
    /** Blocks, including the transaction's own, after which the API's status changes. */
    confirmation_depth: blocks(12),
    /** Blocks after which a transaction is final, unless the chain's own `finalized` block decides. */
    finality_depth: blocks(65),
    /** Whether to ask for the chain's `finalized` block. */
    use_finalized_tag: Type.Boolean({ default: false, ...wording("true or false") }),
    block_time_seconds: amount({ default: 12 }),
    max_fee_per_gas_gwei: amount({ default: 500 }),
    /** The highest tip offered to a block's producer; at most `max_fee_per_gas_gwei`. */
    max_priority_fee_per_gas_gwei: Type.Optional(amount()),
    /**
     * The highest cost of one transaction, in the chain's coin. Most nodes do not accept one that costs more than 1.
     */
    max_transaction_cost: amount({ default: 0.9 }),
    coin_symbol: Type.String({
      pattern: "^\\S{1,12}$",
      default: "ETH",
      ...wording("a string of 1 to 12 characters"),
    }),
    coin_decimals: Type.Integer({
      minimum: 0,
      maximum: 36,
      default: 18,
      ...wording("a whole number from 0 to 36"),
    }),
    /** Blocks without a receipt after which the lowest pending nonce is sent again with higher fees. */
    bump_after_blocks: blocks(4),
    /** The most blocks per log query that the chain's providers accept. */
    log_range_blocks: blocks(2_000),
  },
  { additionalProperties: false },
)

const usualPriorityFeeGwei = 100

/** Reads the file of `CHAINS`, an object keyed by chain id. Throws `ConfigError`. */
export function readChains(path: string): ChainConfig[] {
  const document = readJson(path)
  if (!document || typeof document !== "object" || Array.isArray(document))
    throw new ConfigError(`CHAINS names ${path}, which must be an object with a key for each chain id`)
  return Object.entries(document).map(([id, settings]) => readChain(path, id, settings))
}

/** Reads JSON. Errors do not quote the text, which may contain a URL with an access key. Throws `ConfigError`. */
function readJson(path: string): unknown {
  let text: string
  try {
    // Editors on Windows write a byte order mark.
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "")
  } catch (error) {
    throw new ConfigError(`CHAINS names ${path}, which cannot be read: ${(error as Error).message}`)
  }
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw new ConfigError(`CHAINS names ${path}, which is not JSON in UTF-8`)
  }
  const repeated = repeatedKey(text)
  if (repeated === null) return document
  throw new ConfigError(`CHAINS names ${path}, which has the key ${repeated} twice in one object`)
}

/** Returns a key that an object in valid JSON has twice, of which `JSON.parse` keeps the last; null if there is none. */
function repeatedKey(json: string): string | null {
  const open: Set<string>[] = []
  for (const [token, text, colon] of json.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g)) {
    const keys = open.at(-1)
    if (token === "{" || token === "[") open.push(new Set())
    else if (token === "}" || token === "]") open.pop()
    else if (text !== undefined && colon !== undefined) {
      const key = JSON.parse(text) as string
      if (keys?.has(key)) return key
      keys?.add(key)
    }
  }
  return null
}

function readChain(path: string, id: string, given: unknown): ChainConfig {
  const wrong = (what: string) => new ConfigError(`CHAINS: chain ${id} in ${path} ${what}`)
  if (!/^[1-9]\d{0,14}$/.test(id)) throw wrong("has a key that is not a chain id")
  const { reason: _forPeople, ...settings } = parse(chainSettings, given, wrong)
  const { rpc_urls, send_url = null, factory_address, desk_address, max_fee_per_gas_gwei } = settings
  if (!rpc_urls.every((url) => URL.canParse(url))) throw wrong(`needs rpc_urls, ${someUrls}`)
  if (send_url !== null && !URL.canParse(send_url)) throw wrong("needs send_url, an http or https URL")
  if (!isAddress(factory_address)) throw wrong("needs a factory_address with the right checksum")
  if (desk_address !== undefined && !isAddress(desk_address))
    throw wrong("needs a desk_address with the right checksum")
  if (settings.finality_depth < settings.confirmation_depth)
    throw wrong("needs a finality_depth that is not below its confirmation_depth")
  const max_priority_fee_per_gas_gwei =
    settings.max_priority_fee_per_gas_gwei ?? Math.min(usualPriorityFeeGwei, max_fee_per_gas_gwei)
  if (max_priority_fee_per_gas_gwei > max_fee_per_gas_gwei)
    throw wrong("needs a max_priority_fee_per_gas_gwei that is not above its max_fee_per_gas_gwei")
  return {
    ...settings,
    chain_id: Number(id),
    name: settings.name ?? `chain ${id}`,
    factory_address: getAddress(factory_address),
    desk_address: desk_address === undefined ? null : getAddress(desk_address),
    send_url,
    max_priority_fee_per_gas_gwei,
  }
}

/** Returns the settings with defaults filled in. Throws for the first fault. */
function parse<Schema extends TObject>(
  schema: Schema,
  given: unknown,
  wrong: (what: string) => ConfigError,
): Static<Schema> {
  if (!given || typeof given !== "object" || Array.isArray(given)) throw wrong("is not an object")
  const settings = Value.Default(schema, structuredClone(given))
  const fault = Value.Errors(schema, settings).First()
  if (fault) throw wrong(faultOf(fault))
  return settings as Static<Schema>
}

function faultOf({ type, path, schema }: ValueError): string {
  const [, key = ""] = path.split("/")
  if (type === ValueErrorType.ObjectAdditionalProperties) return `has an unknown key ${key}`
  return `needs ${key}, ${schema["x-message"]}`
}
