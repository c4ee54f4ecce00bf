import { readFileSync } from "node:fs"
import type { IdentitySettings } from "../../db/schema.ts"
import { inTurn } from "../../platform/context.ts"
import { counted } from "../../platform/counted.ts"
import { Unavailable } from "../../platform/unavailable.ts"
import { countKeysAt, requireIdentitySettings } from "../../resources/identity-tokens/service.ts"
import { setIdentity } from "../../resources/organizations/service.ts"
import { type Command, UsageError, type Values } from "./command.ts"
import { fields } from "./text.ts"

export const identity: Command = {
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
    const settings = settingsIn(values)
    return async ({ context }) => {
      const { id } = await inTurn(context, null, (turn) =>
        setIdentity(turn, values.required("organization"), settings),
      )
      const { issuer, audience } = settings
      const found = await findKeys(settings, context.clock())
      return {
        document: { id, identity: settings, ...found },
        text: fields({ issuer, audience, keys: textOf(settings, found) }),
      }
    }
  },
}

/** The keys that identity tokens can be verified with now; if there are none, why. */
type Found = { keys_found: number; failure: string | null }

/** Fetches the keys once: the address may be mistyped. */
async function findKeys({ jwks_url }: IdentitySettings, now: Date): Promise<Found> {
  if (jwks_url === undefined) return { keys_found: 1, failure: null }
  try {
    return { keys_found: await countKeysAt(jwks_url, now), failure: null }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    return { keys_found: 0, failure: error.message }
  }
}

function textOf({ jwks_url }: IdentitySettings, { keys_found, failure }: Found): string {
  if (jwks_url === undefined) return "the given public key"
  if (failure === null) return `${jwks_url}, ${counted(keys_found, "key", "keys")} there now`
  return `${jwks_url}, but ${failure}: until they can, requests with an identity token are answered with 503`
}

function settingsIn(values: Values): IdentitySettings {
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
