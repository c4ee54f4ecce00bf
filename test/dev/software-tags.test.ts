import { Database } from "bun:sqlite"
import { afterAll, describe, expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type BoxedTag, openTagBox } from "../../src/dev/tags/tag-box.ts"
import { type ManifestLine, manifestLine } from "../../src/engine/sun/encoding/manifest.ts"
import { decryptFileContent, tamperOf } from "../../src/engine/sun/file-content.ts"
import { type KeySource, keySourceOf } from "../../src/engine/sun/key-schemes.ts"
import { openPicc, type SunChip, verifySun } from "../../src/engine/sun/message.ts"

const root = join(import.meta.dir, "../..")
const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

describe("bun run chip", () => {
  test("makes a tag whose taps verify, each read once", () => {
    const folder = newFolder()
    const chip = made(folder, "--mac")
    for (const counter of [1, 2, 3])
      expect(verifySun(chip, messageIn(output(folder, "tap")))).toEqual({ counter })
  })

  test("skips reads, and replays an earlier one exactly", () => {
    const folder = newFolder()
    const chip = made(folder, "--mac")
    const first = output(folder, "tap")
    expect(verifySun(chip, messageIn(output(folder, "tap", "--skip", "5")))).toEqual({ counter: 7 })
    expect(output(folder, "tap", "--replay", "7")).toBe(first)
    expect(run(folder, "tap", "--replay", "8").exitCode).toBe(1)
  })

  const mistakes: [string, (chip: SunChip, url: string) => void][] = [
    ["--wrong-key", (chip, url) => expect(verifySun(chip, messageIn(url))).toBeNull()],
    ["--truncate", (_chip, url) => expect(messageIn(url).e).toHaveLength(30)],
    [
      "--lower-case",
      (chip, url) => {
        expect(url).toBe(url.toLowerCase())
        const { e, c } = messageIn(url)
        expect(verifySun(chip, { e: e.toUpperCase(), c: c?.toUpperCase() })).toEqual({ counter: 1 })
      },
    ],
    [
      "--uid-only",
      (chip, url) => {
        expect(openPicc(chip.metaKey, messageIn(url).e)[0]).toBe(0x87)
        expect(verifySun(chip, messageIn(url))).toBeNull()
      },
    ],
  ]
  for (const [flag, check] of mistakes)
    test(`produces faults on request: ${flag}`, () => {
      const folder = newFolder()
      const chip = made(folder, "--mac")
      check(chip, output(folder, "tap", flag))
    })

  test("breaks a tag's tamper wire permanently: --tampered", () => {
    const folder = newFolder()
    const chip = made(folder, "--tamper")
    const status = (...words: string[]) => {
      const message = messageIn(output(folder, "tap", ...words))
      const proof = verifySun(chip, message, "{enc}&c=")
      return tamperOf(decryptFileContent(chip, proof?.counter ?? 0, message.enc ?? ""))
    }
    expect([status(), status("--tampered"), status()]).toEqual(["sealed", "opened", "opened"])
    const other = newFolder()
    made(other, "--mac")
    expect(run(other, "tap", "--tampered").stderr.toString()).toContain("has no tamper wire")
  })

  test("reads the tags stored by an earlier release", () => {
    const folder = newFolder()
    made(folder, "--tamper")
    const first = output(folder, "tap")
    const db = new Database(join(folder, "tags.db"))
    db.exec("alter table tags drop column broken_since")
    db.close()
    output(folder, "tap", "--tampered")
    expect(output(folder, "tap", "--replay", "2")).toBe(first)
  })

  test("replays a read from before the wire broke as it was", () => {
    const folder = newFolder()
    made(folder, "--tamper")
    const [first, second] = [output(folder, "tap"), output(folder, "tap")]
    const broken = output(folder, "tap", "--tampered")
    expect(output(folder, "tap", "--tampered", "--replay", "1")).toBe(broken)
    expect(output(folder, "tap", "--replay", "2")).toBe(second)
    expect(output(folder, "tap", "--replay", "3")).toBe(first)
  })

  test("keeps a broken wire broken when the tag is re-encoded, and then counts from one", () => {
    const folder = newFolder()
    const [source, next] = [1, 2].map((version) =>
      keySourceOf("an10922", Buffer.alloc(16, version), version),
    ) as [KeySource, KeySource]
    const tag = { chip_id: "04A0B1C2D3", uid: Buffer.from("04112233445566", "hex") }
    const play = (...line: Parameters<typeof manifestLine>) => {
      const manifest = join(folder, "manifest.jsonl")
      writeFileSync(manifest, `${JSON.stringify(manifestLine(...line))}\n`)
      output(folder, "new", "--manifest", manifest)
    }
    const mirrors = { mac: true, tamper: true }
    play(source, "https://tap.example/t/{chip_id}", mirrors, tag)
    output(folder, "tap", "--skip", "4")
    output(folder, "tap", "--tampered")
    play(next, "https://tap.example/t/{chip_id}", mirrors, tag, [source])
    const chip = { uid: tag.uid, metaKey: next.keyAt(2, tag), fileKey: next.keyAt(1, tag) }
    const { enc = "" } = messageIn(output(folder, "tap"))
    expect(tamperOf(decryptFileContent(chip, 1, enc))).toBe("opened")
  })

  test("simulates the tags of a manifest", () => {
    const folder = newFolder()
    const source = keySourceOf("an10922", Buffer.alloc(16, 5), 1)
    const tag = { chip_id: "04A0B1C2D3", uid: Buffer.from("04112233445566", "hex") }
    const line = manifestLine(source, "https://tap.example/t/{chip_id}", { mac: true, tamper: false }, tag)
    const manifest = join(folder, "manifest.jsonl")
    writeFileSync(manifest, `${JSON.stringify(line)}\n`)
    output(folder, "new", "--manifest", manifest)
    const chip = { uid: tag.uid, metaKey: source.keyAt(2, tag), fileKey: source.keyAt(1, tag) }
    const url = output(folder, "tap", "04a0b1c2d3")
    expect(url).toStartWith("https://tap.example/t/04A0B1C2D3?e=")
    expect(verifySun(chip, messageIn(url))).toEqual({ counter: 1 })
  })

  test("simulates a manifest again without changes, and one with new keys on the existing tag", () => {
    const folder = newFolder()
    const tag = { chip_id: "04A0B1C2D3", uid: null }
    const [first, second] = [1, 2].map((version) =>
      keySourceOf("an10922", Buffer.alloc(16, version), version),
    )
    if (!first || !second) throw new Error("there are two")
    const mirrors = { mac: true, tamper: false }
    const lineOf = (source: KeySource, before: KeySource[] = []) =>
      manifestLine(source, "https://tap.example/t/{chip_id}", mirrors, tag, before)
    const play = (line: ManifestLine) => {
      const manifest = join(folder, "manifest.jsonl")
      writeFileSync(manifest, `${JSON.stringify(line)}\n`)
      return run(folder, "new", "--manifest", manifest)
    }
    const anew = lineOf(second, [first])
    expect(play(anew).stderr.toString()).toContain("there is no tag 04A0B1C2D3")
    expect(play(lineOf(first)).stdout.toString()).toContain("tags encoded: 1;")
    output(folder, "tap")
    expect(play(lineOf(first)).stdout.toString()).toContain("unchanged: 1")
    expect(play(lineOf(second)).stderr.toString()).toContain(
      "its key in slot 0 is not one of those in the manifest",
    )
    expect(play(anew).stdout.toString()).toContain("encoded again: 1;")
    const uid = output(folder, "list").match(/uid ([0-9A-F]{14})/)?.[1] ?? ""
    const chip = { uid: hex(uid), metaKey: second.keyAt(2, tag), fileKey: second.keyAt(1, tag) }
    expect(verifySun(chip, messageIn(output(folder, "tap")))).toEqual({ counter: 1 })
  })

  test("simulates the other tags of a manifest if one was re-encoded since, and reports that one", () => {
    const folder = newFolder()
    const mirrors = { mac: true, tamper: false }
    const [first, second] = [1, 2].map((version) =>
      keySourceOf("an10922", Buffer.alloc(16, version), version),
    ) as [KeySource, KeySource]
    const lineOf = (chip_id: string, source: KeySource, before: KeySource[] = []) =>
      manifestLine(source, "https://tap.example/t/{chip_id}", mirrors, { chip_id, uid: null }, before)
    const play = (...lines: ManifestLine[]) => {
      const manifest = join(folder, "manifest.jsonl")
      writeFileSync(manifest, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
      return run(folder, "new", "--manifest", manifest)
    }
    const order = ["04A0B1C2D3", "04A0B1C2D4"].map((chip_id) => lineOf(chip_id, first)) as [
      ManifestLine,
      ManifestLine,
    ]
    play(order[0])
    play(lineOf("04A0B1C2D3", second, [first]))
    const { exitCode, stderr } = play(...order)
    expect(exitCode).toBe(1)
    expect(stderr.toString()).toContain("tags encoded: 1; encoded again: 0; unchanged: 0; refused: 1.")
    expect(stderr.toString()).toContain("tag 04A0B1C2D3 refuses")
    expect(output(folder, "list")).toContain("04A0B1C2D4")
  })

  test("says how to import its own tags, and lists none of a manifest", () => {
    const folder = newFolder()
    const source = keySourceOf("an10922", Buffer.alloc(16, 5), 1)
    const tag = { chip_id: "04A0B1C2D3", uid: null }
    const line = manifestLine(source, "https://tap.example/t/{chip_id}", { mac: true, tamper: false }, tag)
    const manifest = join(folder, "manifest.jsonl")
    writeFileSync(manifest, `${JSON.stringify(line)}\n`)
    output(folder, "new", "--manifest", manifest)
    const told = output(folder, "new", "--tamper", "--count", "2")
    const rows = readFileSync(join(folder, "tags.csv"), "utf8").trimEnd().split("\n")
    expect(told).toContain(`--file '${join(folder, "tags.csv")}'`)
    expect(rows.map((row) => row.split(",").slice(4).join())).toEqual([
      "mac,tamper",
      "true,true",
      "true,true",
    ])
    expect(rows.join()).not.toContain(tag.chip_id)
    const modes = ["tags.csv", "tags.db"].map((name) => statSync(join(folder, name)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600])
  })

  test("keeps the lines of earlier tags that may not be imported yet", () => {
    const folder = newFolder()
    const [first] = output(folder, "new").split("\n")
    const told = output(folder, "new")
    expect(readFileSync(join(folder, "tags.csv"), "utf8")).toContain(first as string)
    expect(told).toContain(`--file '${join(folder, "tags-2.csv")}'`)
  })

  test("reports an error in one line, with exit code 1, or 2 for wrong usage", () => {
    const folder = newFolder()
    for (const [words, code, said] of [
      [["tap"], 1, "there are no tags yet"],
      [["tap", "04A0B1C2D3"], 1, "there is no tag 04A0B1C2D3"],
      [["new", "--url", "https://tap.example"], 1, "must have {chip_id} once"],
      [["new", "--count", "many"], 2, "--count takes a whole number"],
      [["frob"], 2, "there is no command chip frob"],
      [["tap", "--colour"], 2, "--colour"],
      [["tap", "--mac"], 2, "chip tap does not take --mac"],
      [["list", "--skip", "1"], 2, "chip list does not take --skip"],
      [["new", "--manifest", "m.jsonl", "--mac"], 2, "chip new --manifest takes no other option"],
    ] as [string[], number, string][]) {
      const { exitCode, stderr } = run(folder, ...words)
      expect([exitCode, stderr.toString()]).toEqual([code, expect.stringContaining(said)])
    }
  })
})

test("no read of a software tag is returned twice, even to concurrent callers", async () => {
  const folder = newFolder()
  made(folder, "--mac")
  const readers = Array.from({ length: 6 }, () =>
    Bun.spawn([process.execPath, "src/chip.ts", "tap"], {
      cwd: root,
      env: environment(folder),
      stdout: "pipe",
    }),
  )
  const urls = await Promise.all(readers.map((reader) => new Response(reader.stdout).text()))
  expect(new Set(urls).size).toBe(6)
})

function made(folder: string, flag: string): SunChip {
  output(folder, "new", flag)
  const box = openTagBox(join(folder, "tags.db"))
  const [tag] = [...box.list()] as [BoxedTag]
  box.close()
  const [chip_id, uid, meta, file] =
    readFileSync(join(folder, "tags.csv"), "utf8").trimEnd().split("\n").at(-1)?.split(",") ?? []
  expect([chip_id, uid]).toEqual([tag.chip_id, tag.uid])
  return { uid: hex(tag.uid), metaKey: hex(meta ?? ""), fileKey: hex(file ?? "") }
}

function output(folder: string, ...words: string[]): string {
  const { exitCode, stdout, stderr } = run(folder, ...words)
  if (exitCode !== 0) throw new Error(stderr.toString())
  return stdout.toString().trim()
}

function run(folder: string, ...words: string[]) {
  return Bun.spawnSync([process.execPath, "src/chip.ts", ...words], { cwd: root, env: environment(folder) })
}

function environment(folder: string) {
  return { ...process.env, DATA_DIR: folder }
}

function messageIn(url: string): { e: string; c?: string; enc?: string } {
  return Object.fromEntries(new URL(url).searchParams) as { e: string }
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tags-"))
  folders.push(folder)
  return folder
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex")
}
