import { Database } from "bun:sqlite"
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Decrypter, generateIdentity, identityToRecipient } from "age-encryption"
import { encodeTag } from "../../src/dev/tags/make-tag.ts"
import { readAddress } from "../../src/dev/tags/software-tag.ts"
import type { BoxedTag } from "../../src/dev/tags/tag-box.ts"
import type { ManifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { runOperator } from "../../src/operator/commands/run-operator.ts"
import { newId } from "../../src/platform/ids.ts"

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
  test("is written once, however often the same order is placed", async () => {
    const lines = await orderOf("once", "--count", "3")
    expect(lines).toHaveLength(3)
    expect(await orderOf("once", "--count", "3")).toEqual(lines)
    const other = await operator(...encode("once", "--count", "4"))
    expect([other.code, other.complaint]).toEqual([
      2,
      expect.stringContaining("the manifest of another order"),
    ])
  })

  test("whose folder was lost is listed, and its manifest is written again", async () => {
    const lines = await orderOf("lost", "--count", "2")
    rmSync(join(folder, "lost"), { recursive: true })
    const { orders } = (await document("chips", "orders", "--organization", organization)) as {
      orders: Record<string, unknown>[]
    }
    expect(orders[0]).toMatchObject({ key_set_id: keySet, version: 1, chips: 2, url })
    const id = String(orders[0]?.id)
    const out = join(folder, "again written")
    const { manifest } = await document("chips", "manifest", id, "--out", out)
    expect(linesIn(String(manifest))).toEqual(lines)

    const refused = await operator("chips", "manifest", id, "--out", out)
    expect([refused.code, refused.complaint]).toEqual([2, expect.stringContaining("name another folder")])
    const unknown = await operator("chips", "manifest", newId(), "--out", join(folder, "unknown"))
    expect([unknown.code, unknown.complaint]).toEqual([1, expect.stringContaining("chips orders lists them")])
    expect(existsSync(join(folder, "unknown"))).toBe(false)
  })

  test("placed by two processes at once is registered once, and neither reports a wrong outcome or an internal file", async () => {
    const order = encode("beside", "--count", "1500")
    const both = await Promise.all([operator(...order), operator(...order)])
    const outrun =
      "operator: some of these chips were stored by somebody else at the same time: run this again, and it continues where it stopped\n"
    for (const { code, complaint } of both)
      expect([complaint, code]).toEqual(code === 0 ? ["", 0] : [outrun, 1])
    expect(await orderOf("beside", "--count", "1500")).toHaveLength(1_500)
  })

  test("that is rejected leaves its folder usable for the next one", async () => {
    const refused = await operator(...encode("again", "--uids", file("uids.csv", "chip_id\n00000000FF\n")))
    expect([refused.code, refused.complaint]).toEqual([
      1,
      expect.stringContaining("is not a chip of this organization"),
    ])
    expect(await orderOf("again", "--count", "1")).toHaveLength(1)
  })

  test.each([
    ["an URL template that no phone opens", ["--url", "http://x.example/{chip_id}"], "validation.failed"],
    ["public keys that are none", ["--seal-to", file("not-age.pub", "ssh-rsa AAAA")], "validation.failed"],
    ["a folder instead of a file", ["--uids", folder], "file"],
  ])("with %s is rejected by that name, not as an internal error", async (_what, words, code) => {
    const order = ["--organization", organization, "--key-set", keySet, "--out", join(folder, "refused")]
    const others = words.includes("--url") ? [] : ["--url", url]
    const count = words.includes("--uids") ? [] : ["--count", "1"]
    const refused = await operator("chips", "encode", ...order, ...others, ...count, ...words, "--json")
    expect([refused.code, JSON.parse(refused.printed).error.code]).toEqual([1, code])
  })

  test("whose manifest cannot be written says which chips are registered, and is completed in another folder", async () => {
    mkdirSync(join(folder, "unwritten", "manifest.jsonl.part", "in the way"), { recursive: true })
    const refused = await operator(...encode("unwritten", "--count", "2"))
    expect([refused.code, refused.complaint]).toEqual([
      1,
      expect.stringMatching(
        /^operator: 2 chips are registered, but the manifest cannot be written: .+move \S+order\.json there first\n$/,
      ),
    ])
    const registered = (await document("chips", "list", "--organization", organization)).chips as unknown[]
    mkdirSync(join(folder, "elsewhere"))
    renameSync(join(folder, "unwritten", "order.json"), join(folder, "elsewhere", "order.json"))
    expect(await orderOf("elsewhere", "--count", "2")).toHaveLength(2)
    expect((await document("chips", "list", "--organization", organization)).chips).toHaveLength(
      registered.length,
    )
  })

  test("that was lost in a restore keeps the manifest of the tags that were made", async () => {
    const backUp = join(folder, "back-up.db")
    const live = new Database(join(folder, "service.db"))
    live.exec(`vacuum into '${backUp}'`)
    live.close()
    const lines = await orderOf("forgotten", "--count", "2")
    const restored = { ...environment, DATABASE_URL: `sqlite:${backUp}` }
    const again = await operatorOf(restored, ...encode("forgotten", "--count", "2"))
    expect([again.code, again.complaint]).toEqual([
      2,
      expect.stringContaining("a manifest whose order the database does not know"),
    ])
    expect(linesIn(join(folder, "forgotten", "manifest.jsonl"))).toEqual(lines)
    const tags = lines.map((line) => encodeTag(null, line))
    const row = ({ chip_id, keys }: ManifestLine, index: number) => {
      const keyOf = (role: string) => keys.find((each) => each.role === role)?.key
      return [chip_id, tags[index]?.uid, keyOf("meta_read"), keyOf("file_read"), "true"].join(",")
    }
    const rows = ["chip_id,uid,meta_key,file_key,mac", ...lines.map(row)].join("\n")
    const of = ["--organization", organization]
    const imported = await operatorOf(restored, "chips", "import", ...of, "--file", file("lost.csv", rows))
    expect(imported.printed).toBe("2 chips were imported\n")
    const scanned = file("lost.txt", tags.map((tag) => readAddress(tag, 1)).join("\n"))
    const verified = await operatorOf(restored, "chips", "verify-encoding", ...of, "--file", scanned)
    expect(verified.printed).toContain("2 of 2 tags are right")
  })

  test("that was partly lost in a restore, because the back-up was made during registration, keeps its manifest, too", async () => {
    const lines = await orderOf("half", "--count", "2")
    const backUp = join(folder, "half.db")
    const live = new Database(join(folder, "service.db"))
    live.exec(`vacuum into '${backUp}'`)
    live.close()
    const restored = new Database(backUp)
    const lost = restored.query("delete from manifest_chips where chip_id = ?").run(String(lines[1]?.chip_id))
    restored.close()
    expect(lost.changes).toBe(1)
    const environmentOfIt = { ...environment, DATABASE_URL: `sqlite:${backUp}` }
    const again = await operatorOf(environmentOfIt, ...encode("half", "--count", "2"))
    expect([again.code, again.complaint]).toEqual([
      2,
      expect.stringContaining("a manifest whose order the database does not know"),
    ])
    expect(linesIn(join(folder, "half", "manifest.jsonl"))).toEqual(lines)
    expect(await orderOf("half", "--count", "2")).toEqual(lines)
  })

  test("is encrypted to a public key, and can only be decrypted with the private key", async () => {
    const identity = await generateIdentity()
    const key = file("station.pub", `${await identityToRecipient(identity)}\n`)
    const { manifest } = await document(...encode("sealed", "--count", "2", "--seal-to", key))
    const decrypter = new Decrypter()
    decrypter.addIdentity(identity)
    const opened = await decrypter.decrypt(readFileSync(manifest as string), "text")
    expect(opened.trimEnd().split("\n")).toHaveLength(2)
    expect(manifest).toEndWith("manifest.jsonl.age")
  })

  test("can be checked: exit code 0 if all tags are good, 1 with each verdict if one is not", async () => {
    const [line, other] = await orderOf("checked", "--count", "2")
    const [good, bad] = [encodeTag(null, line as ManifestLine), encodeTag(null, other as ManifestLine)]
    const unlocked = { ...bad, keys: bad.keys.map((key, slot) => (slot === 1 ? "0".repeat(32) : key)) }
    expect(await checked([good])).toMatchObject({ code: 0, good: 1 })
    const both = await checked([good, unlocked])
    expect(both).toMatchObject({ code: 1, good: 1 })
    expect(both.results.map(({ verdict }) => verdict)).toEqual(["accepted", "factory_key"])
  })

  test("can be checked with the file settings read from its tags, with or without spaces between the bytes", async () => {
    const [line] = await orderOf("settings", "--count", "1")
    const tag = encodeTag(null, line as ManifestLine)
    const address = readAddress(tag, 1)
    const answer = line?.file_settings_answer_hex ?? ""
    const spaced = answer.replaceAll(/(..)(?!$)/g, "$1 ")
    const both = await verified(`${address} ${answer}`, `${readAddress(tag, 2)} ${spaced}`)
    expect(both.results.map(({ verdict }) => verdict)).toEqual(["accepted", "accepted"])
    const { results } = await verified(`${address} ${line?.file_settings_hex}`)
    expect(results).toMatchObject([{ verdict: "not_file_settings", is_good: false }])
  })

  test("reports lines that contradict an earlier one by URL, chip or tag", async () => {
    const [line, other] = (await orderOf("twice", "--count", "2")) as [ManifestLine, ManifestLine]
    const first = encodeTag(null, line)
    const address = readAddress(first, 1)
    const again = await verified(address, readAddress(first, 2), address)
    expect(again).toMatchObject({ code: 1, good: 2 })
    expect(again.results[2]?.why).toContain("the same URL as in line 1")
    const twins = await verified(address, readAddress(encodeTag(null, line), 1))
    expect(twins).toMatchObject({ code: 1, good: 1 })
    expect(twins.results[1]?.why).toContain("the tag in line 1 is another one with the same chip id")
    const overwritten = { ...encodeTag(null, other), uid: first.uid }
    const twice = await verified(address, readAddress(overwritten, 1))
    expect(twice).toMatchObject({ code: 1, good: 1 })
    expect(twice.results[1]?.why).toContain(`the same tag as chip ${line.chip_id} in line 1`)
  })

  test("can be checked with the tamper status of its tags, including good ones", async () => {
    const [line] = await orderOf("wires", "--count", "1", "--tamper")
    const tag = encodeTag(null, line as ManifestLine)
    const said = async (tamper: BoxedTag["tamper"]) => {
      const { results } = await verified(readAddress({ ...tag, tamper }, 1))
      return [results[0]?.is_good, results[0]?.why]
    }
    expect(await said("CC")).toEqual([true, "the tag reports its tamper wire as sealed (CC)"])
    expect(await said("OO")).toEqual([true, "the tag reports its tamper wire as opened (OO)"])
    expect(await said("II")).toEqual([false, "the tag reports II for its tamper wire, which is not enabled"])
  })

  test("cannot be checked with a file that contains no URLs", async () => {
    expect(await verified("", " ")).toMatchObject({ code: 1, results: [] })
  })
})

test("the command prints which key decrypts a URL, and fails if none does", async () => {
  const [line] = await orderOf("opened", "--count", "1")
  const tag = encodeTag(null, line as ManifestLine)
  const ofUrl = (address: string) =>
    operator("chips", "which-key", "--organization", organization, "--url", address)
  const asked = (one: BoxedTag) => ofUrl(readAddress(one, 1))
  expect(await asked(tag)).toMatchObject({
    code: 0,
    printed: expect.stringContaining("made with key set Autumn, version 1 (accepted)"),
  })
  const renamed = readAddress(tag, 1).replace("?e=", "?picc_data=").replace("&c=", "&cmac=")
  expect(await ofUrl(renamed)).toMatchObject({
    code: 0,
    printed: "made with key set Autumn, version 1 (wrong_parameter)\n",
  })
  expect(await ofUrl("https://tap.example/t/")).toMatchObject({
    code: 1,
    printed: "not tried: no_values, the URL has no e\n",
  })
  const asJson = ["chips", "which-key", "--organization", organization, "--url", readAddress(tag, 1)]
  expect((await document(...asJson)).key_set).toEqual({ id: keySet, name: "Autumn", version: 1 })
  const strange = { ...tag, keys: tag.keys.map(() => "9".repeat(32)) }
  expect(await asked(strange)).toMatchObject({
    code: 1,
    printed: expect.stringContaining("made with no known key (wrong_meta_key)"),
  })
})

async function checked(tags: BoxedTag[]) {
  return await verified(...tags.map((tag) => readAddress(tag, 1)))
}

async function verified(...lines: string[]) {
  const scanned = file("scanned.txt", `${lines.join("\n")}\n`)
  const asked = ["chips", "verify-encoding", "--organization", organization, "--file", scanned, "--json"]
  const { code, printed } = await operator(...asked)
  return { code, ...(JSON.parse(printed) as { good: number; results: Verdict[] }) }
}

type Verdict = { verdict: string; is_good: boolean; why: string | null }

async function orderOf(name: string, ...tags: string[]): Promise<ManifestLine[]> {
  const { manifest } = await document(...encode(name, ...tags))
  return linesIn(manifest as string)
}

function linesIn(manifest: string): ManifestLine[] {
  const lines = readFileSync(manifest, "utf8").trimEnd().split("\n")
  return lines.map((line) => JSON.parse(line) as ManifestLine)
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
  return await operatorOf(environment, ...words)
}

async function operatorOf(of: typeof environment, ...words: string[]) {
  const said = { printed: "", complaint: "" }
  const terminal = {
    print(text: string) {
      said.printed += text
    },
    complain(text: string) {
      said.complaint += text
    },
  }
  const code = await runOperator(() => of, terminal, words)
  return { code, ...said }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
