import { afterAll, expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { DevService } from "../src/dev.ts"
import { newFolder, removeDevServices, root, startDev, stopGently } from "./dev-service.ts"
import vectors from "./vectors/ntag424.json"

afterAll(removeDevServices)

test("a message printed by NXP is a tap of the chip that was imported with its keys", async () => {
  const folder = newFolder()
  const { child, service } = await startDev(folder)
  const first = published("AN12196 table 4")
  const later = published("AN12196 table 6")
  const chip_id = "04958CAA5C"
  importChip(folder, service, { chip_id, uid: first.uid, meta_key: first.metaKey, file_key: first.fileKey })

  const collection = await post(service, "/v1/collections", { name: "Published" })
  await poll(service, `/v1/collections/${collection.id}`, ({ contract }) => contract.status === "active")
  const unit = await post(service, "/v1/units", { collection_id: collection.id })
  await post(service, "/v1/chips", { unit_id: unit.id, chip_id, e: first.e })
  await poll(service, `/v1/units/${unit.id}`, (now) => now.collection.token.status === "active")

  const tap = await post(service, "/v1/taps", { chip_id, e: later.e })
  expect(tap.chip.chip_id).toBe(chip_id)
  expect(tap.unit.id).toBe(unit.id)
  expect(tap.session_token.token).toStartWith("end_sess_")
  const { taps } = await ask(service, "GET", `/v1/taps?chip_id=${chip_id}`)
  expect(taps).toMatchObject([{ id: tap.id, counter: 8, skipped: 6 }])

  const again = await fetch(`${service.base_url}/v1/taps`, request(service, "POST", { chip_id, e: first.e }))
  expect(again.status).toBe(409)
  expect(await stopGently(child)).toBe(0)
}, 60_000)

function published(name: string) {
  const row = vectors.sun.find((each) => each.name === name)
  if (!row?.uid) throw new Error(`there is no vector ${name}`)
  return { ...row, uid: row.uid }
}

function importChip(folder: string, service: DevService, chip: Record<string, string>): void {
  const file = join(folder, "chips.json")
  writeFileSync(file, JSON.stringify([chip]))
  const { exitCode, stderr } = Bun.spawnSync(
    [
      process.execPath,
      join(root, "src/operator.ts"),
      ...["chips", "import", "--organization", service.organization_id, "--file", file],
    ],
    { env: { ...process.env, DATA_DIR: folder } },
  )
  expect({ exitCode, stderr: stderr.toString() }).toMatchObject({ exitCode: 0 })
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into by the test
type Resource = any

function request(service: DevService, method: string, body?: unknown): RequestInit {
  return {
    method,
    headers: { authorization: `Bearer ${service.api_key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
}

async function ask(service: DevService, method: string, path: string, body?: unknown): Promise<Resource> {
  const response = await fetch(`${service.base_url}${path}`, request(service, method, body))
  const answer = await response.json()
  if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
  return answer
}

function post(service: DevService, path: string, body: unknown): Promise<Resource> {
  return ask(service, "POST", path, body)
}

async function poll(
  service: DevService,
  path: string,
  isThere: (resource: Resource) => boolean,
): Promise<void> {
  while (!isThere(await ask(service, "GET", path))) await Bun.sleep(200)
}
