import { type Address, getAddress, isAddress } from "viem"
import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { roleFaults } from "../../engine/chain/check-roles.ts"
import { bitsOf, isRole, type Role, rolesIn } from "../../engine/chain/roles.ts"
import type { World } from "../../engine/world.ts"
import type { Context, KeyFault } from "../../platform/context.ts"
import {
  baseFault,
  type FactoryCall,
  freezeMetadataBase,
  mostOverlapHours,
  type PlainCall,
  plainCall,
  type Roles,
  readRoles,
  requireRoles,
  rolesOf,
  setAuthorizer,
  setMetadataBase,
  setRoles,
} from "../verbs/chain-roles.ts"
import { OperatorRefusal } from "../verbs/refusal.ts"
import { type Command, type Output, UsageError, type Values, wholeNumber } from "./command.ts"
import { fields, table } from "./text.ts"

export const chainRoleCommands: Command[] = [
  {
    name: "chain roles",
    does: "shows what the factory lets each key do, and what is missing",
    takes: "[--chain ID]",
    about: `Also prints the factory calls with which the admin gives each key the roles that this service needs. Nothing is sent: the
admin signs the calls, wherever its key is. Roles are of no use while the factory is paused. A metadata base that is not
METADATA_BASE_URL is named, too, unless it is ipfs://… or ar://…, or METADATA_BASE_URL is on this machine, as by default.`,
    options: { chain: false },
    plan(values) {
      const id = wholeNumber(values, "chain", 1)
      return async ({ chains, context }) => {
        const chain = chainOf(chains, id)
        const roles = await readRoles(chain)
        const ofBase = baseFault(roles, context.config.metadata_base_url)
        return shownRoles(roles, await roleFaults(chain), ofBase)
      }
    },
  },
  {
    name: "chain call",
    does: "prints a call of the factory for its admin to sign",
    takes: `ACT [--chain ID], where ACT is one of
    grant --account A --roles issue,claim,replace,deploy     revoke --account A [--roles …]
    set-authorizer --account A [--overlap-hours N]           set-metadata-base --url U
    freeze-metadata-base    pause    resume    announce-release    cancel-release`,
    about: `Nothing is sent: the admin signs the call, wherever its key is. The overlap is how long authorizations of the previous
authorizer stay valid: 24 hours by default, at most 168; 0, for a leaked key, ends them at once. The present authorizer can
be set again only to end the overlap sooner: a later end could make a leaked key valid again. The metadata base is one
setting for the collections of all brands: metadata that is not there cannot be read, and never can be once the base is
frozen. Seven days after announce-release holders can transfer the tokens of all collections without this service, for good.`,
    argument: "ACT",
    options: { chain: false, account: false, roles: false, "overlap-hours": false, url: false },
    plan(values) {
      const id = wholeNumber(values, "chain", 1)
      const make = callFor(values)
      refuseOthers(values)
      return async ({ chains, context }) => {
        const chain = chainOf(chains, id)
        await requireRoles(chain)
        return shownCall(await make(chain, context))
      }
    },
  },
]

type Make = (chain: ConnectedChain, context: Context) => Promise<FactoryCall> | FactoryCall

/** By the words of ACT. */
const plainCalls: Record<string, PlainCall> = {
  pause: "pause",
  resume: "resume",
  "announce-release": "announceRelease",
  "cancel-release": "cancelRelease",
}

/** By the words of ACT; the others take none. */
const optionsOf: Record<string, string[]> = {
  grant: ["account", "roles"],
  revoke: ["account", "roles"],
  "set-authorizer": ["account", "overlap-hours"],
  "set-metadata-base": ["url"],
}

/** Throws `UsageError` for an option that another act has: whoever gives it expects something else to happen. */
function refuseOthers(values: Values): void {
  const act = values.argument
  const own = Object.hasOwn(optionsOf, act) ? optionsOf[act] : []
  const other = Object.values(optionsOf)
    .flat()
    .find((name) => values.option(name) !== null && !own?.includes(name))
  if (other) throw new UsageError(`chain call ${act} does not take --${other}`)
}

function callFor(values: Values): Make {
  const act = values.argument
  const plain = Object.hasOwn(plainCalls, act) ? plainCalls[act] : undefined
  if (plain) return (chain) => plainCall(chain, plain)
  if (act === "grant" || act === "revoke") return changeRoles(act, values)
  if (act === "set-authorizer") {
    const account = accountIn(values)
    const hours = wholeNumber(values, "overlap-hours", 0) ?? 24
    if (hours > mostOverlapHours)
      throw new UsageError(`--overlap-hours takes at most ${mostOverlapHours}, seven days`)
    return (chain, { clock }) => setAuthorizer(chain, account, hours === 0 ? null : inHours(clock(), hours))
  }
  if (act === "set-metadata-base") {
    const url = values.option("url")
    if (!url || !isMetadataBase(url))
      throw new UsageError(
        "chain call set-metadata-base needs --url, https://…, http://…, ipfs://… or ar://…, without user name, query, fragment or space, and without a slash at its end",
      )
    return (chain) => setMetadataBase(chain, url)
  }
  if (act === "freeze-metadata-base")
    return (chain, { config }) => freezeMetadataBase(chain, config.metadata_base_url)
  throw new UsageError(`chain call has no "${act}"; --help lists what there is`)
}

/** Returns whether wallets and explorers can read what is below a URL, which contracts append to it as it is. */
function isMetadataBase(url: string): boolean {
  return /^(https?|ipfs|ar):\/\/[^\s?#@]+$/.test(url) && URL.canParse(url) && !url.endsWith("/")
}

function changeRoles(act: "grant" | "revoke", values: Values): Make {
  const account = accountIn(values)
  const text = values.option("roles")
  if (text === null && act === "grant") throw new UsageError("chain call grant needs --roles")
  const named = bitsOf(text === null ? rolesIn(15) : text.split(",").map(roleIn))
  return async (chain) => {
    const present = await rolesOf(chain, account)
    return setRoles(chain, account, act === "grant" ? present | named : present & ~named)
  }
}

function accountIn(values: Values): Address {
  const account = values.option("account")
  if (account && isAddress(account)) return getAddress(account)
  throw new UsageError(`chain call ${values.argument} needs --account, an address`)
}

function roleIn(text: string): Role {
  if (isRole(text)) return text
  throw new UsageError(`"${text}" is not a role; the roles are issue, claim, replace and deploy`)
}

function inHours(now: Date, hours: number): Date {
  return new Date(now.getTime() + hours * 3_600_000)
}

function chainOf(chains: World["chains"], id: number | null): ConnectedChain {
  const chain = id === null ? [...chains.values()][0] : chains.get(id)
  if (chain && (id !== null || chains.size === 1)) return chain
  const known = [...chains.keys()].join(", ")
  if (known === "")
    throw new OperatorRefusal(
      "chain.not_configured",
      "CHAINS names no chain: set it as the processes of the service have it",
    )
  throw new OperatorRefusal(
    "chain.not_configured",
    id === null
      ? `CHAINS has the chains ${known}: name one with --chain`
      : `chain ${id} is not in CHAINS, which has ${known}`,
  )
}

function shownCall(call: FactoryCall): Output {
  return { document: call, text: fields(call) }
}

function shownRoles(roles: Roles, faults: KeyFault[], ofBase: string | null): Output {
  const { keys, calls, previous_authorizer: previous, ...rest } = roles
  const named = (bits: number | null) => (bits === null ? null : rolesIn(bits).join(", ") || "none")
  const parts = [
    fields({ ...rest, previous_authorizer: previous && `${previous.account} until ${previous.until}` }),
    table(keys, {
      KEY: "account",
      IS: "is",
      MAY: ({ roles }) => named(roles),
      NEEDS: ({ needed }) => named(needed),
    }),
    ...calls.map((call) => fields(call)),
    ...beyondRoles(roles, faults),
    ...(ofBase === null ? [] : [ofBase]),
  ]
  const isWell = faults.length === 0 && calls.length === 0 && ofBase === null
  const text = [...parts, ...(isWell ? ["nothing is missing"] : [])].join("\n\n")
  const key_faults = faults.map(({ text }) => text)
  return { document: { ...roles, key_faults, metadata_base_fault: ofBase }, text }
}

/** What keeps this service from working although its keys have their roles. */
function beyondRoles({ paused, chain_id }: Roles, faults: KeyFault[]): string[] {
  if (paused)
    return [
      `the factory is paused: no key can do anything until its admin sends this call: operator chain call resume --chain ${chain_id}`,
    ]
  return faults.filter(({ variable }) => variable !== "SIGNER_KEYS").map(({ text }) => text)
}
