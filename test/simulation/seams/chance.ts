import { createRequire } from "node:module"
import { currentProcess, served } from "../scheduler.ts"

// Randomness follows from the seed, the process, the instant and the count within the instant, so that what libraries
// cache from one history to the next shifts nothing. Cryptography itself is real, except for the generated keys.

const require = createRequire(import.meta.url)
const nodeCrypto = require("node:crypto") as Record<string, unknown>
const { createECDH, createPrivateKey } = require("node:crypto") as typeof import("node:crypto")
const realBytes = (nodeCrypto.randomBytes as (size: number) => Buffer).bind(nodeCrypto)

function drawWord(): number {
  const simulation = served()
  if (!simulation) return realBytes(4).readUInt32LE(0)
  const process = currentProcess() ?? simulation.outside
  if (process.drawn.at !== simulation.now) process.drawn = { at: simulation.now, count: 0 }
  const text = `${process.name} ${simulation.now} ${process.drawn.count++}`
  return Number(BigInt(Bun.hash(text, simulation.seed)) & 0xffff_ffffn)
}

function fill<T extends ArrayBufferView>(view: T): T {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  for (let index = 0; index < bytes.length; index += 4) {
    const word = drawWord()
    for (let byte = 0; byte < 4 && index + byte < bytes.length; byte++)
      bytes[index + byte] = (word >>> (8 * byte)) & 0xff
  }
  return view
}

function drawBytes(size: number): Buffer {
  return fill(Buffer.alloc(size))
}

/** A UUID of RFC 9562 with this version; the other bits are kept. */
function uuidText(bytes: Buffer, version: number): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | (version << 4)
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}

const drawUuid = () => uuidText(drawBytes(16), 4) as ReturnType<typeof crypto.randomUUID>

/** A P-256 key, the only kind that the service generates. */
function drawKeyPair() {
  const ecdh = createECDH("prime256v1")
  const scalar = drawBytes(32)
  ecdh.setPrivateKey(scalar)
  const text = (bytes: Buffer) => bytes.toString("base64url")
  const point = ecdh.getPublicKey()
  const key = {
    kty: "EC",
    crv: "P-256",
    x: text(point.subarray(1, 33)),
    y: text(point.subarray(33)),
    d: text(scalar),
  }
  return { privateKey: createPrivateKey({ format: "jwk", key }) }
}

Math.random = () => drawWord() / 2 ** 32
Object.assign(crypto, { getRandomValues: fill, randomUUID: drawUuid })
Object.assign(nodeCrypto, {
  randomBytes: drawBytes,
  randomUUID: drawUuid,
  randomFillSync: fill,
  generateKeyPairSync: drawKeyPair,
  randomInt: (least: number, most: number) => least + Math.floor(Math.random() * (most - least)),
})

// Work on other threads: nothing continues until it is done.
const subtle = crypto.subtle as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>
for (const name of ["sign", "verify", "digest", "importKey", "deriveBits", "encrypt", "decrypt"]) {
  const native = subtle[name]?.bind(crypto.subtle)
  if (!native) continue
  subtle[name] = async (...given) => {
    const simulation = served()
    if (!simulation) return await native(...given)
    simulation.busy += 1
    try {
      return await native(...given)
    } finally {
      simulation.busy -= 1
    }
  }
}

/**
 * The next UUIDv7 of a process, with its sequence by method 2 of RFC 9562, section 6.2. The runtime keeps time and
 * sequence for the whole process, which all processes of a history would share.
 */
function nextId(): string {
  const last = currentProcess()?.last_id ?? served()?.outside.last_id
  const bytes = drawBytes(16)
  const now = Date.now()
  if (!last) throw new Error("an id is made outside of every history")
  if (now > last.milliseconds)
    Object.assign(last, { milliseconds: now, sequence: bytes.readUInt32BE(6) >>> 1 })
  else last.sequence += 1
  bytes.writeUIntBE(last.milliseconds, 0, 6)
  bytes.writeUInt16BE((last.sequence >>> 20) & 0x0fff, 6)
  bytes.writeUInt16BE((last.sequence >>> 6) & 0x3fff, 8)
  bytes[10] = ((last.sequence & 0x3f) << 2) | ((bytes[10] ?? 0) & 0x03)
  return uuidText(bytes, 7)
}
Object.assign(Bun, { randomUUIDv7: nextId })
