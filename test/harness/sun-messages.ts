import { verifySun } from "../../src/engine/sun/message.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { referenceCounter } from "./sun-reference.ts"

/** How many messages both verifiers accepted and rejected, and the first one on which they differ. */
export type Judgement = { accepted: number; refused: number; difference: string | null }

/**
 * Judges `count` random messages with the service's verifier and the reference: half of them valid, the others with a
 * bit, key, tag byte or UID changed. The same `seed` gives the same messages.
 */
export function judgeMessages(count: number, seed: number): Judgement {
  const random = randomOf(seed)
  const judgement: Judgement = { accepted: 0, refused: 0, difference: null }
  for (let number = 0; number < count; number++) {
    const { chip, message, input } = drawn(random)
    const ours = verifySun(chip, message, input)?.counter ?? null
    const text = input.replaceAll("{e}", message.e)
    const theirs = referenceCounter(chip, message, text)
    if (ours === null) judgement.refused++
    else judgement.accepted++
    if (ours === theirs) continue
    judgement.difference = `message ${number} of seed ${seed}: ${ours} here, ${theirs} by the reference`
    return judgement
  }
  return judgement
}

type Random = { bytes(size: number): Buffer; below(limit: number): number }

function drawn(random: Random) {
  const chip = { uid: random.bytes(7), metaKey: random.bytes(16), fileKey: random.bytes(16) }
  const counter =
    [random.below(0x1000000), 255, 256, 66_051, 0xffffff, 0][random.below(12)] ?? random.below(512)
  const emitted = emitSun(chip, counter, random.bytes(5))
  const message = { e: emitted.e, c: random.below(3) === 0 ? undefined : emitted.c }
  const input = ""
  switch (random.below(10)) {
    case 0:
      return { chip, input, message: { ...message, e: flipped(message.e, random.below(128)) } }
    case 1:
      return { chip, input, message: { ...message, c: flipped(emitted.c, random.below(64)) } }
    case 2:
      return { chip: { ...chip, fileKey: random.bytes(16) }, input, message }
    case 3:
      return { chip: { ...chip, uid: random.bytes(7) }, input, message }
    case 4:
      return { chip, input: "{e}&c=", message }
    default:
      return { chip, input, message }
  }
}

/** xorshift32 (Marsaglia 2003): enough for drawing messages, and the same on every machine. */
function randomOf(seed: number): Random {
  let state = seed | 0 || 1
  const next = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
  return {
    bytes: (size) => Buffer.from(Array.from({ length: size }, () => next() & 0xff)),
    below: (limit) => next() % limit,
  }
}

function flipped(value: string, bit: number): string {
  const bytes = Buffer.from(value, "hex")
  bytes[bit >> 3] = bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7))
  return bytes.toString("hex").toUpperCase()
}
