import type { Fault } from "./faults.ts"

/**
 * Faults that nobody can see, by file and kind, with the reason: something else does the same, or the case cannot arise.
 */
const known: { file: string; kind: string; why: string }[] = [
  {
    file: "machines/authorization.ts",
    kind: "one more",
    why: "it stands for an authorization where there is none, and nobody watches that",
  },
  { file: "machines/session-token.ts", kind: "one more", why: "no session starts without its length" },
  {
    file: "src/engine/actors/rows.ts",
    kind: 'without: eq(effects.status, "open")',
    why: "whoever closes the effect asks again whether it is open",
  },
  {
    file: "src/engine/actors/rows.ts",
    kind: "without: eq(effects.invoke_id, given.invoke_id)",
    why: "no machine has two effects at once",
  },
  {
    file: "src/engine/actors/lifecycles.ts",
    kind: "without: eq(chips.reserved_for, seen_for)",
    why: "the chip of a replacement is reserved for it until it ends",
  },
  {
    file: "src/engine/sun/file-content.ts",
    kind: "one more",
    why: "what follows the first two characters is not looked at",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "one more",
    why: "the bit is set already, by ASCII",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "never: if (counterRead === undefined || reads === undefined)",
    why: "what is cut there has no room for the offset of its PICC data either",
  },
  {
    file: "src/http/query.ts",
    kind: "one more",
    why: "an address begins with its scheme, never with its query",
  },
  {
    file: "src/http/envelope.ts",
    kind: "left out: room -= messages.length",
    why: "what checks several fields stops at as many messages itself",
  },
  {
    file: "src/http/list.ts",
    kind: "true for false",
    why: "what a list answers is made here, with these fields",
  },
  {
    file: "src/http/idempotency.ts",
    kind: "never: if (!answer)",
    why: "a key and its answer are committed together, so no row without one is seen",
  },
]

/** Why a fault that survived changes nothing, where that is known. */
export function whyHarmless({ file, kind }: Fault): string | null {
  return known.find((each) => each.file === file && each.kind === kind)?.why ?? null
}
