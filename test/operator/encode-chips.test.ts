import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Decrypter, generateIdentity, identityToRecipient } from "age-encryption"
import { encodeTag } from "../../src/dev/tags/make-tag.ts"
import { readAddress } from "../../src/dev/tags/software-tag.ts"
import type { BoxedTag } from "../../src/dev/tags/tag-box.ts"
import type { ManifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"

setDefaultTimeout(60_000)

const folder = mkdtempSync(join(tmpdir(), "station-"))
const environment = {
  SERVICE_SECRET: "a secret of a station, long enough for it",
  DATA_DIR: folder,
  DATABASE_URL: `sqlite:${join(folder, "service.db")}`,
  LOG_LEVEL: "silent",
}
const url = "https://tap.example/t/{chip_id}"
let organization = ""
let keySet = ""
beforeAll(async () => {
  organization = (await document("organizations", "create", "--name", "Maker")).id as string
  const named = ["--organization", organization, "--name", "Autumn", "--scheme", "an10922"]
  keySet = (await document("key-sets", "create", ...named)).id as string
})
afterAll(() => rmSync(folder, { recursive: true }))

describe("an order of tags", () => {
  test("is written once, however often the same is asked for", async () => {
    const lines = await orderOf("once", "--count", "3")
    expect(lines).toHaveLength(3)
    expect(await orderOf("once", "--count", "3")).toEqual(lines)
    const other = await operator(...encode("once", "--count", "4"))
    expect([other.code, other.complaint]).toEqual([
      2,
      expect.stringContaining("the manifest of another order"),
    ])
  })

  test("that is refused leaves its folder to the next one", async () => {
    const refused = await operator(...encode("again", "--uids", file("uids.csv", "chip_id\n00000000FF\n")))
    expect([refused.code, refused.complaint]).toEqual([
      1,
      expect.stringContaining("none of this organization's"),
    ])
    expect(await orderOf("again", "--count", "1")).toHaveLength(1)
  })

  test("is sealed to a public key, and opens with the private one alone", async () => {
    const identity = await generateIdentity()
    const key = file("station.pub", `${await identityToRecipient(identity)}\n`)
    const { manifest } = await document(...encode("sealed", "--count", "2", "--seal-to", key))
    const decrypter = new Decrypter()
    decrypter.addIdentity(identity)
    const opened = await decrypter.decrypt(readFileSync(manifest as string), "text")
    expect(opened.trimEnd().split("\n")).toHaveLength(2)
    expect(manifest).toEndWith("manifest.jsonl.age")
  })

  test("is checked: 0 when all tags are as they should be, 1 and each verdict when one is not", async () => {
    const [line, other] = await orderOf("checked", "--count", "2")
    const [good, bad] = [encodeTag(null, line as ManifestLine), encodeTag(null, other as ManifestLine)]
    const unlocked = { ...bad, keys: bad.keys.map((key, slot) => (slot === 1 ? "0".repeat(32) : key)) }
    expect(await checked([good])).toMatchObject({ code: 0, good: 1 })
    const both = await checked([good, unlocked])
    expect(both).toMatchObject({ code: 1, good: 1 })
    expect(both.results.map(({ verdict }) => verdict)).toEqual(["accepted", "factory_key"])
  })
})

async function checked(tags: BoxedTag[]) {
  const scanned = file("scanned.txt", `${tags.map((tag) => readAddress(tag, 1)).join("\n")}\n`)
  const asked = ["chips", "verify-encoding", "--organization", organization, "--file", scanned, "--json"]
  const { code, printed } = await operator(...asked)
  return { code, ...(JSON.parse(printed) as { good: number; results: { verdict: string }[] }) }
}

async function orderOf(name: string, ...tags: string[]): Promise<ManifestLine[]> {
  const { manifest } = await document(...encode(name, ...tags))
  const text = readFileSync(manifest as string, "utf8")
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ManifestLine)
}

function encode(name: string, ...tags: string[]): string[] {
  const order = ["--organization", organization, "--key-set", keySet, "--url", url, "--mac"]
  return ["chips", "encode", ...order, "--out", join(folder, name), ...tags]
}

async function document(...words: string[]): Promise<Record<string, unknown>> {
  const { code, printed, complaint } = await operator(...words, "--json")
  if (code !== 0) throw new Error(complaint)
  return JSON.parse(printed)
}

async function operator(...words: string[]) {
  const said = { printed: "", complaint: "" }
  const terminal = {
    print(text: string) {
      said.printed += text
    },
    complain(text: string) {
      said.complaint += text
    },
  }
  const code = await runOperator(() => environment, terminal, words)
  return { code, ...said }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
