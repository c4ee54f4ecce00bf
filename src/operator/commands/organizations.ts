import { readFileSync } from "node:fs"
import type { IdentitySettings, OrganizationRow } from "../../db/schema.ts"
import type { Turn } from "../../db/turn.ts"
import { inTurn } from "../../platform/context.ts"
import { presentApiKey } from "../../resources/api-keys/present.ts"
import { issueApiKey, listApiKeys, revokeApiKey } from "../../resources/api-keys/service.ts"
import { requireIdentitySettings } from "../../resources/identity-tokens/service.ts"
import { presentOrganization, presentQuotas } from "../../resources/organizations/present.ts"
import {
  createOrganization,
  listOrganizations,
  type Quotas,
  requireConfiguredChain,
  resumeOrganization,
  setIdentity,
  setQuotas,
  suspendOrganization,
  updateOrganization,
} from "../../resources/organizations/service.ts"
import { presentProduct } from "../../resources/products/present.ts"
import { createProduct, listProducts } from "../../resources/products/service.ts"
import { inAct } from "../verbs/acts.ts"
import { type Command, type Output, UsageError, type Values, wholeNumber, wholeNumberIn } from "./command.ts"
import { fields, table } from "./text.ts"

export const organizationCommands: Command[] = [
  {
    name: "organizations create",
    does: "creates an organization",
    takes: "--name N [--default-chain ID] [--allowed-chains ID,ID]",
    options: { name: true, "default-chain": false, "allowed-chains": false },
    plan(values) {
      const input = {
        name: values.required("name"),
        default_chain_id: wholeNumber(values, "default-chain", 1),
        allowed_chain_ids: chainIds(values.option("allowed-chains") ?? ""),
      }
      return async ({ context }) => {
        requireConfiguredChain(context.chains, input.default_chain_id)
        return shownOrganization(await inTurn(context, null, (turn) => createOrganization(turn, input)))
      }
    },
  },
  {
    name: "organizations update",
    does: "changes an organization's name or chains",
    takes: "ID [--name N] [--default-chain ID] [--allowed-chains ID,ID]",
    argument: "ID",
    options: { name: false, "default-chain": false, "allowed-chains": false },
    plan(values) {
      const name = values.option("name")
      const default_chain_id = wholeNumber(values, "default-chain", 1)
      const allowed = values.option("allowed-chains")
      const changes = {
        ...(name !== null && { name }),
        ...(default_chain_id !== null && { default_chain_id }),
        ...(allowed !== null && { allowed_chain_ids: chainIds(allowed) }),
      }
      if (Object.keys(changes).length === 0)
        throw new UsageError("organizations update needs --name, --default-chain or --allowed-chains")
      return async ({ context }) => {
        requireConfiguredChain(context.chains, default_chain_id)
        const change = (turn: Turn) => updateOrganization(turn, values.argument, changes)
        return shownOrganization(await inTurn(context, null, change))
      }
    },
  },
  {
    name: "organizations suspend",
    does: "suspends an organization: its credentials are refused",
    takes: "ID",
    about: `All its credentials get 403 auth.forbidden within 5 seconds. Work that is already in progress continues, taps are still
redirected, and events are still sent to its webhook endpoints.`,
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) =>
        shownOrganization(
          await inAct(context, { act: "suspend", subject: argument }, (turn) =>
            suspendOrganization(turn, argument),
          ),
        ),
  },
  {
    name: "organizations resume",
    does: "resumes a suspended organization",
    takes: "ID",
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) =>
        shownOrganization(
          await inAct(context, { act: "resume", subject: argument }, (turn) =>
            resumeOrganization(turn, argument),
          ),
        ),
  },
  {
    name: "organizations list",
    does: "lists all organizations, oldest first",
    takes: "",
    options: {},
    plan:
      () =>
      async ({ context }) => {
        const organizations = (await listOrganizations(context.db.read)).map(presentOrganization)
        return {
          document: { organizations },
          text: table(
            ["ID", "NAME", "DEFAULT CHAIN", "ALLOWED CHAINS", "CREATED", "SUSPENDED"],
            organizations.map((each) => [
              each.id,
              each.name,
              each.default_chain_id,
              each.allowed_chain_ids.join(", "),
              each.created_at,
              each.suspended_at,
            ]),
          ),
        }
      },
  },
  {
    name: "keys issue",
    does: "issues an API key, which is shown only once",
    takes: "--organization ID [--name N] [--expires TIME]  (such as 2027-01-31T00:00:00Z)",
    options: { organization: true, name: false, expires: false },
    plan(values) {
      const expires_at = timeIn(values, "expires")
      return async ({ context }) => {
        const organization_id = values.required("organization")
        const input = { organization_id, name: values.option("name"), expires_at }
        const { id, key, row } = await inTurn(context, null, (turn) => issueApiKey(turn, input))
        return {
          document: { ...presentApiKey(row), key },
          text: `${fields({ id, key })}\n\nKeep the key now: it is not stored and cannot be shown again.`,
        }
      }
    },
  },
  {
    name: "keys list",
    does: "lists an organization's API keys, without the keys themselves",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const keys = (await listApiKeys(context.db.read, values.required("organization"))).map(presentApiKey)
        return {
          document: { keys },
          text: table(
            ["ID", "NAME", "KEY", "CREATED", "EXPIRES", "REVOKED"],
            keys.map((key) => [key.id, key.name, key.hint, key.created_at, key.expires_at, key.revoked_at]),
          ),
        }
      },
  },
  {
    name: "keys revoke",
    does: "revokes an API key, within 5 seconds",
    takes: "ID",
    argument: "ID",
    options: {},
    plan:
      ({ argument }) =>
      async ({ context }) => {
        const key = presentApiKey(
          await inAct(context, { act: "revoke key", subject: argument }, (turn) =>
            revokeApiKey(turn, argument),
          ),
        )
        return { document: key, text: `key ${key.id} (${key.hint}) was revoked at ${key.revoked_at}` }
      },
  },
  {
    name: "products create",
    does: "creates a product, which units refer to by product_id",
    takes: "--organization ID --name N [--external-id X] [--redirect-url U]",
    options: { organization: true, name: true, "external-id": false, "redirect-url": false },
    plan:
      (values) =>
      async ({ context }) => {
        const input = {
          organization_id: values.required("organization"),
          name: values.required("name"),
          external_id: values.option("external-id"),
          redirect_url: values.option("redirect-url"),
        }
        const product = presentProduct(await inTurn(context, null, (turn) => createProduct(turn, input)))
        const { organization_id: _organization_id, created_at: _created_at, ...shown } = product
        return { document: product, text: fields(shown) }
      },
  },
  {
    name: "products list",
    does: "lists an organization's products",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const products = (await listProducts(context.db.read, values.required("organization"))).map(
          presentProduct,
        )
        return {
          document: { products },
          text: table(
            ["ID", "EXTERNAL ID", "NAME", "REDIRECT", "CREATED"],
            products.map((each) => [
              each.id,
              each.external_id,
              each.name,
              each.redirect_url,
              each.created_at,
            ]),
          ),
        }
      },
  },
  {
    name: "quotas set",
    does: "sets an organization's quotas",
    takes:
      "--organization ID [--units N] [--collections N] [--chips N] [--taps-per-month N]  (N or unlimited)",
    options: { organization: true, units: false, collections: false, chips: false, "taps-per-month": false },
    plan(values) {
      const quotas: Quotas = {
        ...quota(values, "units", "quota_units"),
        ...quota(values, "collections", "quota_collections"),
        ...quota(values, "chips", "quota_chips"),
        ...quota(values, "taps-per-month", "quota_taps_per_month"),
      }
      if (Object.keys(quotas).length === 0)
        throw new UsageError("quotas set needs --units, --collections, --chips or --taps-per-month")
      return async ({ context }) => {
        const organization = await inTurn(context, null, (turn) =>
          setQuotas(turn, values.required("organization"), quotas),
        )
        const set = presentQuotas(organization)
        const shown = Object.entries(set).map(([name, limit]) => [name, limit ?? "unlimited"])
        return { document: { id: organization.id, quotas: set }, text: fields(Object.fromEntries(shown)) }
      }
    },
  },
  {
    name: "identity set",
    does: "registers the sign-in that issues an organization's identity tokens",
    takes: "--organization ID --issuer I --audience A (--jwks-url U | --public-key-file F)",
    options: {
      organization: true,
      issuer: true,
      audience: true,
      "jwks-url": false,
      "public-key-file": false,
    },
    plan(values) {
      const identity = identityFrom(values)
      return async ({ context }) => {
        const organization = await inTurn(context, null, (turn) =>
          setIdentity(turn, values.required("organization"), identity),
        )
        return {
          document: { id: organization.id, identity },
          text: fields({
            issuer: identity.issuer,
            audience: identity.audience,
            keys: identity.jwks_url ?? "the given public key",
          }),
        }
      }
    },
  },
]

function shownOrganization(organization: OrganizationRow): Output {
  const document = presentOrganization(organization)
  const { id, name, suspended_at } = document
  const text = fields({
    id,
    name,
    "default chain": document.default_chain_id,
    "allowed chains": document.allowed_chain_ids.join(", "),
    ...(suspended_at && { suspended: suspended_at }),
  })
  return { document, text }
}

function chainIds(text: string): number[] {
  if (text === "") return []
  return text.split(",").map((each) => wholeNumberIn(each.trim(), "allowed-chains", 1))
}

/** An option as a time in UTC; null if it was not given. Throws `UsageError`. */
function timeIn(values: Values, name: string): Date | null {
  const text = values.option(name)
  if (text === null) return null
  const form = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?$/
  const time = new Date(text)
  if (form.test(text) && !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text.slice(0, 10)))
    return time
  throw new UsageError(`--${name} takes a day or time in UTC such as 2027-01-31T00:00:00Z, not "${text}"`)
}

/** A quota option under its column's name, if given; null is unlimited. */
function quota<Column extends keyof Quotas>(
  values: Values,
  name: string,
  column: Column,
): Partial<Record<Column, number | null>> {
  const text = values.option(name)
  if (text === null) return {}
  const limit = text === "unlimited" ? null : wholeNumberIn(text, name, 0)
  return { [column]: limit } as Partial<Record<Column, number | null>>
}

function identityFrom(values: Values): IdentitySettings {
  const jwks_url = values.option("jwks-url") ?? undefined
  const file = values.option("public-key-file")
  if ((jwks_url === undefined) === (file === null))
    throw new UsageError("identity set needs one of --jwks-url and --public-key-file")
  return requireIdentitySettings({
    issuer: values.required("issuer"),
    audience: values.required("audience"),
    jwks_url,
    public_key: file === null ? undefined : readFileSync(file, "utf8").trim(),
  })
}
