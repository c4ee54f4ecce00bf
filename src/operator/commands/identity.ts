import { readFileSync } from "node:fs"
import type { IdentitySettings } from "../../db/schema.ts"
import { inTurn } from "../../platform/context.ts"
import { requireIdentitySettings } from "../../resources/identity-tokens/service.ts"
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
      const { issuer, audience, jwks_url } = settings
      return {
        document: { id, identity: settings },
        text: fields({ issuer, audience, keys: jwks_url ?? "the given public key" }),
      }
    }
  },
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
