import { describe, expect, test } from "bun:test"
import { verifySun } from "../../src/engine/sun/message.ts"
import { emitSun } from "../../src/engine/sun/virtual-chip.ts"
import { judgeMessages } from "../harness/sun-messages.ts"
import { referenceCmac, referenceCounter } from "../harness/sun-reference.ts"
import vectors from "./vectors/ntag424.json"

/** `bun run bench sun` compares a million. */
const messages = 20_000
const seed = 424

describe("an independent verifier, written from the data sheet alone", () => {
  test("computes the published MACs", () => {
    const whole = [...Buffer.from(vectors.rfc4493.message, "hex")]
    for (const { length, mac } of vectors.rfc4493.cases)
      expect(
        Buffer.from(referenceCmac(Buffer.from(vectors.rfc4493.key, "hex"), whole.slice(0, length)))
          .toString("hex")
          .toUpperCase(),
      ).toBe(mac)
  })

  test("decrypts the published messages", () => {
    for (const row of vectors.sun) {
      if (row.expect !== "valid") continue
      const chip = chipOf(row)
      expect(referenceCounter(chip, { e: row.e, c: row.c }, row.macInputAscii ?? "")).toBe(
        row.counter as number,
      )
    }
  })

  test(`judges ${messages} random messages of seed ${seed} as the service does`, () => {
    const { accepted, refused, difference } = judgeMessages(messages, seed)
    expect(difference).toBeNull()
    expect(accepted).toBeGreaterThan(messages / 3)
    expect(refused).toBeGreaterThan(messages / 4)
  })

  test("reads the counter in the same byte order where orders differ", () => {
    const chip = {
      uid: Buffer.from("04112233445566", "hex"),
      metaKey: Buffer.alloc(16, 1),
      fileKey: Buffer.alloc(16, 2),
    }
    for (const counter of [0, 1, 255, 256, 65_280, 66_051, 0x030201, 0xff0000, 0xffffff]) {
      const message = emitSun(chip, counter)
      expect(referenceCounter(chip, message, "")).toBe(counter)
      expect(verifySun(chip, message)).toEqual({ counter })
    }
  })
})

function chipOf(row: { uid?: string | null; metaKey: string; fileKey: string }) {
  return {
    uid: Buffer.from(row.uid ?? "", "hex"),
    metaKey: Buffer.from(row.metaKey, "hex"),
    fileKey: Buffer.from(row.fileKey, "hex"),
  }
}
