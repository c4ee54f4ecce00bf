import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openWorld } from "../../src/engine/world.ts"
import { loadConfig } from "../../src/platform/config.ts"
import { inTurn } from "../../src/platform/context.ts"
import { freePort } from "../../src/platform/free-port.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { tell } from "../../src/resources/news/tell.ts"
import { createOrganization } from "../../src/resources/organizations/service.ts"
import { tiedToParent } from "../harness/child-process.ts"

// An API process is killed in the middle of a request: the same request, sent again, takes effect once.

const entry = join(import.meta.dir, "../../src/main.ts")
const chainId = 31_337
let folder: string
let settings: Record<string, string>
let key: string
let child: Bun.Subprocess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "killed-"))
  const chains = { [chainId]: { rpc_urls: ["http://127.0.0.1:1"], factory_address: `0x${"5F".repeat(20)}` } }
  writeFileSync(
    join(folder, "chains.json"),
    JSON.stringify(chains).replace(/0x\w+/, "0x5FbDB2315678afecb367f032d93F642f64180aa3"),
  )
  settings = {
    DATA_DIR: folder,
    PORT: String(await freePort()),
    HOST: "127.0.0.1",
    OPERATOR_PORT: String(await freePort()),
    CHAINS: join(folder, "chains.json"),
    SIGNER_KEYS: `0x${"1a".repeat(32)}`,
    AUTHORIZER_KEY: `0x${"2b".repeat(32)}`,
    SERVICE_SECRET: "a secret of tests that is long enough",
    LOG_LEVEL: "silent",
  }
  const world = await openWorld(loadConfig(settings), tell)
  key = await inTurn(world.context, null, async (turn) => {
    const organization = { name: "Maker", default_chain_id: chainId, allowed_chain_ids: [chainId] }
    const { id: organization_id } = await createOrganization(turn, organization)
    return (await issueApiKey(turn, { organization_id, name: null })).key
  })
  await world.close()
}, 20_000)
afterEach(kill)
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe("a request whose process is killed", () => {
  const moments = [0, 4, 8, 16]
  test.each(moments)(
    "%i ms after it was sent takes effect once if it is repeated with its idempotency key",
    async (milliseconds) => {
      const external_id = `killed-after-${milliseconds}`
      await start()
      const first = create(external_id).catch(() => null)
      await Bun.sleep(milliseconds)
      await kill()
      const answered = await first

      await start()
      const again = await create(external_id)
      expect(again.status).toBe(201)
      if (answered) expect(again.text).toBe(answered.text)
      const listed = await ask(`/v1/collections?external_id=${external_id}`)
      const { collections } = JSON.parse(listed.text) as { collections: { id: string }[] }
      expect(collections.map(({ id }) => id)).toEqual([JSON.parse(again.text).id])
    },
    20_000,
  )
})

async function start(): Promise<void> {
  child = Bun.spawn(tiedToParent([process.execPath, entry]), {
    cwd: folder,
    env: { PATH: process.env.PATH, ...settings },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  })
  const deadline = performance.now() + 15_000
  while (performance.now() < deadline) {
    const isUp = await ask("/health").then(
      ({ status }) => status === 200,
      () => false,
    )
    if (isUp) return
    await Bun.sleep(10)
  }
  throw new Error("the API did not start")
}

async function kill(): Promise<void> {
  child?.kill("SIGKILL")
  await child?.exited
}

function create(external_id: string) {
  return ask("/v1/collections", {
    method: "POST",
    body: JSON.stringify({ name: "Killed", external_id }),
    headers: { "content-type": "application/json", "idempotency-key": external_id },
  })
}

async function ask(
  path: string,
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
) {
  const response = await fetch(`http://127.0.0.1:${settings.PORT}${path}`, {
    ...init,
    headers: { ...init.headers, authorization: `Bearer ${key}` },
  })
  return { status: response.status, text: await response.text() }
}
