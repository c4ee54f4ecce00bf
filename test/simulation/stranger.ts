import { routes } from "../../src/api/routes.ts"
import type { Route } from "../../src/http/route.ts"
import type { Clients } from "./clients.ts"
import { type Stream, streamOf } from "./streams.ts"

/** What a stranger has got hold of. */
type Loot = {
  tokens: (string | null)[]
  /** IDs, chip IDs and values that belong to others. */
  values: string[]
}

const requests = 6

/** Sends requests generated from the API's schemas, partly valid and partly invalid. */
export async function sendNonsense(clients: Clients, salt: number, loot: Loot): Promise<void> {
  const chance = streamOf(BigInt(salt), "stranger")
  for (let sent = 0; sent < requests; sent++) {
    const route = chance.pick(routes)
    await clients.askOnce({
      method: route.method,
      path: pathOf(route, chance, loot),
      token: chance.pick(loot.tokens),
      ...(chance.happens(0.3) && { idempotency_key: chance.pick(["a", "key-0", "ä", "x".repeat(300)]) }),
      ...(route.method !== "GET" && { body: bodyOf(route, chance, loot) }),
    })
  }
}

function pathOf({ path }: Route, chance: Stream, loot: Loot): string {
  const filled = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(valueFor(chance, loot))))
  return chance.happens(0.2) ? `${filled}?limit=${chance.pick(["0", "1e3", "-1", "5"])}&cursor=x` : filled
}

function bodyOf({ body }: Route, chance: Stream, loot: Loot): unknown {
  if (chance.happens(0.1)) return chance.pick(["{", "[]", "null", '{"__proto__":{}}', "\u0000"])
  const fields = Object.keys((body as { properties?: object } | null)?.properties ?? { name: 1 })
  return Object.fromEntries(
    fields.filter(() => chance.happens(0.7)).map((field) => [field, valueFor(chance, loot)]),
  )
}

function valueFor(chance: Stream, { values }: Loot): unknown {
  if (values.length > 0 && chance.happens(0.5)) return chance.pick(values)
  return chance.pick<unknown>([
    "",
    "x",
    "é".repeat(90),
    -1,
    1e21,
    true,
    null,
    [],
    {},
    "0".repeat(64),
    "../..",
    "%",
  ])
}
