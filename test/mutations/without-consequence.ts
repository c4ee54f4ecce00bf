import type { Fault } from "./faults.ts"

/**
 * Faults without an observable consequence, by file and kind, and by line if the file has others of the kind, with the
 * reason: something else does the same, or the case cannot occur.
 */
const known: { file: string; kind: string; on?: RegExp; why: string }[] = [
  {
    file: "contracts/ChipLedger.sol",
    kind: "one more",
    on: /CHIP_BITS = 40/,
    why: "a bit between two chips that nobody reads, and six of them still fit",
  },
  {
    file: "machines/authorization.ts",
    kind: "one more",
    on: /(chain_id|serial|authorization_nonce): 0,/,
    why: "it stands for an authorization where there is none, and nobody watches that",
  },
  {
    file: "machines/session-token.ts",
    kind: "one more",
    on: /ttl_seconds \?\? 0/,
    why: "no session starts without its length",
  },
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
    file: "src/engine/actors/lifecycles.ts",
    kind: "without: eq(chips.unit_id, given.unit_id)",
    why: "the chip that is replaced is its unit's until then",
  },
  {
    file: "src/engine/sun/file-content.ts",
    kind: "one more",
    on: /subarray\(0, 2\)/,
    why: "what follows the first two characters is not looked at",
  },
  {
    file: "src/engine/sun/file-content.ts",
    kind: "true for false",
    on: /createCipheriv/,
    why: "padding would follow at the end of what is encrypted, and nobody asks for that end",
  },
  {
    file: "src/engine/sun/virtual-chip.ts",
    kind: "true for false",
    on: /createCipheriv/,
    why: "padding would follow at the end of what is encrypted, and nobody asks for that end",
  },
  {
    file: "src/engine/sun/cmac.ts",
    kind: "<= for <",
    on: /lastBytes < BLOCK_BYTES|index < size/,
    why: "behind the end of a message is nothing to mix in, and behind that of a block no room",
  },
  {
    file: "src/engine/sun/cmac.ts",
    kind: "+ for -",
    on: /let index = BLOCK_BYTES - 1/,
    why: "behind the end of a block is nothing that could be carried",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "&& for ||",
    on: /counterRead === undefined/,
    why: "what is cut there has no room for the offset of its PICC data either",
  },
  {
    file: "src/engine/sun/diagnosis/judge-settings.ts",
    kind: "one more",
    on: /: { e: 0, enc: null, c: /,
    why: "the tag's own offsets take their places: only whether there is a MAC is looked at",
  },
  {
    file: "src/engine/sun/message.ts",
    kind: "one more",
    on: /picc\?\.counter \?\? 0/,
    why: "what does not open is refused, whatever MAC is made of it",
  },
  {
    file: "src/engine/sun/message.ts",
    kind: "<= for <",
    on: /index < half\.length/,
    why: "a buffer takes no byte behind its end",
  },
  {
    file: "src/engine/sun/diagnosis/judge-mac.ts",
    kind: "+ for -",
    on: /let start = end - 1/,
    why: "it only tries the empty text again",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "one more",
    on: / \? 0 : /,
    why: "the bit is set already, by ASCII",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "one more",
    on: /\[option = 0, low = 0/,
    why: "what has fewer bytes was refused, or ends before the options are looked at",
  },
  {
    file: "src/engine/sun/encoding/file-settings.ts",
    kind: "never: if (counterRead === undefined || reads === undefined)",
    why: "what is cut there has no room for the offset of its PICC data either",
  },
  {
    file: "src/engine/lanes/turns.ts",
    kind: "one more",
    on: /planningDepth = 1_600/,
    why: "one row more is read of what may wait",
  },
  {
    file: "src/engine/lanes/turns.ts",
    kind: "one more",
    on: /one\.id < other\.id/,
    why: "which one comes first is said by the sign, not by the number",
  },
  {
    file: "src/engine/lanes/turns.ts",
    kind: "<= for <",
    on: /one\.id < other\.id/,
    why: "no two effects have the same id",
  },
  {
    file: "src/engine/lanes/send-effects.ts",
    kind: "!== for ===",
    on: /room % lookUpAfter/,
    why: "who has come is seen as soon, only the database is asked more often",
  },
  {
    file: "src/engine/lanes/attempts.ts",
    kind: "one more",
    on: /difference < 0n \? -1/,
    why: "sorting asks whether one is the smaller, and not by how much",
  },
  {
    file: "src/engine/lanes/attempts.ts",
    kind: ">= for >",
    on: /difference > 0n \? 1 : 0/,
    why: "sorting asks whether one is the smaller, and leaves all others in their order",
  },
  {
    file: "src/engine/lanes/look.ts",
    kind: "never: if (news.length === 0)",
    why: "a database transaction in which nothing is asked changes nothing",
  },
  {
    file: "src/engine/lanes/leases.ts",
    kind: "left out: await assertLease(turn, lease)",
    why: "taking a nonce is refused by its own condition, too",
  },
  {
    file: "src/http/query.ts",
    kind: "one more",
    on: /start < 0/,
    why: "an address begins with its scheme, never with its query",
  },
  {
    file: "src/http/answer.ts",
    kind: "one more",
    on: /status === 204 && /,
    why: "an answer of 204 has no body that could be left out",
  },
  {
    file: "src/http/answer.ts",
    kind: "the other way round",
    on: /caseOf\(name\) === "upper"/,
    why: "an id is read in either case: it only matters that equal requests are written alike",
  },
  {
    file: "src/http/route.ts",
    kind: "true for false",
    on: /changes_origins: false/,
    why: "origins that nobody changed are only read again",
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

/** Why a surviving fault has no consequence, if that is known. */
export function whyHarmless(fault: Fault): string | null {
  const found = known.find(
    ({ file, kind, on }) => file === fault.file && kind === fault.kind && (!on || on.test(fault.on)),
  )
  return found?.why ?? null
}
