import { afterAll, beforeAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { encodeFunctionData, type Hex, parseAbi, parseEventLogs } from "viem"
import { createApp } from "../../src/api/app.ts"
import { metadataRefreshes } from "../../src/db/chain-schema.ts"
import { collectionAbi, factoryAbi } from "../../src/engine/chain/contracts.generated.ts"
import { issueApiKey } from "../../src/resources/api-keys/service.ts"
import { updateUnit } from "../../src/resources/units/service.ts"
import { issuedUnit, openEngine, type RunningWorkers, sendAsAdmin, until } from "../harness/engine.ts"

let running: RunningWorkers
let app: ReturnType<typeof createApp>
let base: string
beforeAll(async () => {
  running = await openEngine()
  const { context, stage } = running
  app = createApp(context).listen({ hostname: "127.0.0.1", port: 0 })
  base = `http://127.0.0.1:${app.server?.port}`
  context.config.metadata_base_url = `${base}/metadata`
  await sendAsAdmin(
    stage,
    encodeFunctionData({ abi: factoryAbi, functionName: "setBaseURI", args: [`${base}/metadata`] }),
  )
}, 60_000)
afterAll(async () => {
  await app.stop(true)
  await running.close()
})

/** What wallets know about an unknown contract: the standards, and nothing specific to this service. */
const walletAbi = parseAbi([
  "function supportsInterface(bytes4) view returns (bool)",
  "function tokenURI(uint256) view returns (string)",
  "function contractURI() view returns (string)",
])

test("a wallet that knows only the standards finds a token's name, attributes and image, and the collection's", async () => {
  const { caller, turn, stage } = running
  const { unit_id, address } = await issuedUnit(running)
  await turn((t) => updateUnit(t, caller, unit_id, { name: "Jacket 1", metadata: { Colour: "Moss" } }))
  const read = <Name extends "tokenURI" | "contractURI" | "supportsInterface">(
    functionName: Name,
    args: readonly unknown[],
  ) => stage.anvil.client.readContract({ address, abi: walletAbi, functionName, args: args as never })
  for (const id of ["0x80ac58cd", "0x5b5e139f", "0x49064906"] as Hex[])
    expect(await read("supportsInterface", [id])).toBe(true)

  const uri = String(await read("tokenURI", [1n]))
  expect(uri).toBe(`${base}/metadata/31337/${address.toLowerCase()}/1`)
  const document = (await (await fetch(uri)).json()) as { name: string; image: string; attributes: unknown[] }
  expect(document).toMatchObject({ name: "Jacket 1", attributes: [{ trait_type: "Colour", value: "Moss" }] })
  const picture = await fetch(document.image)
  expect(picture.headers.get("content-type")).toStartWith("image/svg+xml")
  expect(await picture.text()).toContain("Jacket 1")
  const collection = (await (await fetch(String(await read("contractURI", [])))).json()) as { name: string }
  expect(collection.name).toBe("Autumn")
}, 60_000)

test("a metadata refresh is emitted by the contract itself, once a minute, and ends as confirmed", async () => {
  const { caller, turn, stage, context } = running
  const { collection_id, address } = await issuedUnit(running)
  const { key } = await turn((t) => issueApiKey(t, { organization_id: caller.organization_id, name: null }))
  const path = `${base}/v1/collections/${collection_id}/metadata-refreshes`
  const headers = { authorization: `Bearer ${key}` }
  const keyed = { ...headers, "idempotency-key": "spring" }
  const made = await fetch(path, { method: "POST", headers: keyed })
  expect(made.status).toBe(201)
  const { id, status } = (await made.json()) as { id: string; status: string }
  expect(status).toBe("prepared")
  const repeated = await fetch(path, { method: "POST", headers: keyed })
  expect([repeated.status, ((await repeated.json()) as { id: string }).id]).toEqual([201, id])
  expect(made.headers.get("location")).toBe(`/v1/collections/${collection_id}/metadata-refreshes/${id}`)
  const again = await fetch(path, { method: "POST", headers })
  expect(again.status).toBe(429)
  expect(Number(again.headers.get("retry-after"))).toBeWithin(30, 61)

  const rows = () => context.db.read.select().from(metadataRefreshes).where(eq(metadataRefreshes.id, id))
  await until(async () => (await rows())[0]?.status === "confirmed")
  const shown = (await (await fetch(`${path}/${id}`, { headers })).json()) as { transaction_hash: Hex }
  const { logs } = await stage.anvil.client.getTransactionReceipt({ hash: shown.transaction_hash })
  const said = parseEventLogs({ abi: collectionAbi, logs })
  expect(said.map((log) => [log.address.toLowerCase(), log.eventName])).toEqual([
    [address.toLowerCase(), "MetadataUpdate"],
    [address.toLowerCase(), "ContractURIUpdated"],
  ])
}, 60_000)
