import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Decrypter, generateX25519Identity, identityToRecipient } from "age-encryption"
import { type ManifestLine, manifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import {
  parseRecipients,
  RecipientError,
  writeManifest,
} from "../../src/engine/sun/encoding/write-manifest.ts"
import { keySourceOf } from "../../src/engine/sun/key-schemes.ts"

const folder = mkdtempSync(join(tmpdir(), "manifest-"))
afterAll(() => rmSync(folder, { recursive: true }))

const source = keySourceOf("an10922", Buffer.alloc(16, 7), 1)
const mirrors = { mac: true, tamper: false }

describe("a manifest file", () => {
  test("has one JSON line for each chip, in order, and is readable by its owner only", async () => {
    const path = join(folder, "plain.jsonl")
    await writeManifest(path, lines(1_000))
    const written = readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).chip_id)
    expect(written).toEqual([...lines(1_000)].map(({ chip_id }) => chip_id))
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test("is written completely or not at all", async () => {
    const path = join(folder, "broken.jsonl")
    const cutShort = writeManifest(path, breakingAfter(500))
    await expect(cutShort).rejects.toThrow("the power went")
    expect([existsSync(path), existsSync(`${path}.part`)]).toEqual([false, false])
  })

  test("encrypted to a recipient opens with that recipient's key only", async () => {
    const [mine, other] = [await generateX25519Identity(), await generateX25519Identity()]
    const path = join(folder, "sealed.jsonl.age")
    await writeManifest(
      path,
      lines(500),
      parseRecipients(`# the station\n${await identityToRecipient(mine)}\n`),
    )
    const sealed = readFileSync(path)
    expect(sealed.toString("latin1")).toStartWith("age-encryption.org/v1\n")
    expect(sealed.includes("url_template")).toBe(false)
    expect((await opened(sealed, mine)).trimEnd().split("\n")).toHaveLength(500)
    await expect(opened(sealed, other)).rejects.toThrow()
  })

  test("is not encrypted to an invalid public key, and a secret key is never quoted", async () => {
    const secret = await generateX25519Identity()
    expect(() => parseRecipients("")).toThrow(RecipientError)
    expect(() => parseRecipients("age1nonsense")).toThrow("key 1 of the file is not an age public key")
    expect(() => parseRecipients(secret)).toThrow("has a secret key")
    try {
      parseRecipients(secret)
    } catch (error) {
      expect(String(error)).not.toContain(secret)
    }
  })
})

function* lines(count: number): Generator<ManifestLine> {
  for (let number = 1; number <= count; number++) {
    const chip_id = number.toString(16).toUpperCase().padStart(10, "0")
    yield manifestLine(source, "https://tap.example/t/{chip_id}", mirrors, { chip_id, uid: null })
  }
}

function* breakingAfter(count: number): Generator<ManifestLine> {
  yield* lines(count)
  throw new Error("the power went")
}

async function opened(sealed: Uint8Array, identity: string): Promise<string> {
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  return await decrypter.decrypt(sealed, "text")
}
