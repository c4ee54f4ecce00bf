import { afterAll, beforeAll, expect, test } from "bun:test"
import { concatHex, type Hex, numberToHex } from "viem"
import type { World } from "../../src/engine/world.ts"
import { parseValues } from "../../src/operator/commands/command.ts"
import { compareChain } from "../../src/operator/commands/compare-chain.ts"
import { comparableCollections, compareWithChain } from "../../src/operator/verbs/compare-chain.ts"
import { createChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import {
  claimBeside,
  issuedUnit as issuedByHand,
  openForEachTest,
  outsider,
  replaceChip as replaceByHand,
  replacementNow,
  undoBlocks,
} from "../harness/by-hand.ts"
import { anotherUnit, issuedUnit, openEngine, type RunningWorkers, until } from "../harness/engine.ts"
import { asThief, foreignChip, thief } from "../harness/thief.ts"
import { chipRowOf, unitRowOf } from "../harness/unit-rows.ts"
import { watchedDatabase } from "../harness/watched-database.ts"

// A thief has a key with all roles for a while: `operator chain compare` must report what was done with it, and nothing
// else.

let running: RunningWorkers

beforeAll(async () => {
  running = await openEngine()
}, 60_000)
afterAll(async () => {
  await running.close()
})

test("what a thief did with a signer's key is reported by unit, and the brand's own chip replacement is not", async () => {
  const { unit_id: rebound, collection_id, address } = await issuedUnit(running)
  const replaced = await anotherUnit(running, collection_id)
  const taken = await anotherUnit(running, collection_id)
  await replaceChip(replaced)
  expect(await compare(collection_id)).toEqual({
    compared: 1,
    not_connected: 0,
    unanswered: [],
    collections: [],
  })

  const chip_id = await chipOf(rebound)
  await asThief(running.stage, address, [
    ["replaceChip", 1n, Number.parseInt(chip_id, 16), foreignChip],
    ["claim", 3n, thief],
    ["issue", 4n, concatHex([numberToHex(0xbad, { size: 5 })]), false],
  ])
  await until(async () => (await unitRowOf(running.context.db.read, taken)).claimed)

  expect(await compare(collection_id)).toEqual({
    compared: 1,
    not_connected: 0,
    unanswered: [],
    collections: [
      {
        collection_id,
        unasked_serials: 1,
        other_chips: [{ unit_id: rebound, serial: 1, chip_id, chip_id_on_chain: "0BADBADBAD" }],
        unasked_claims: [{ unit_id: taken, serial: 3, owner: expect.stringMatching(new RegExp(thief, "i")) }],
      },
    ],
  })

  await anotherUnit(running, collection_id)
  expect(await compare(collection_id)).toMatchObject({ collections: [{ unasked_serials: 1 }] })
}, 60_000)

const openHand = openForEachTest()

test("a chip replacement undone by a reorganization is reported by unit once a claim has locked the previous chip", async () => {
  const hand = await openHand({ confirmation_depth: 1, finality_depth: 30 })
  const { unit_id, address } = await issuedByHand(hand)
  const { id, previous_chip_id, chip_id } = await replaceByHand(hand, unit_id)
  await hand.settle()
  expect(await compareIn(hand.world)).toEqual({
    compared: 1,
    not_connected: 0,
    unanswered: [],
    collections: [],
  })

  const [sent] = await hand.transactionsOf("replaceChip")
  const { blockNumber } = await hand.stage.anvil.client.getTransactionReceipt({ hash: sent?.hash as Hex })
  const { number: newest } = await hand.stage.anvil.client.getBlock()
  await undoBlocks(hand, Number(newest - blockNumber) + 1)
  // Its lane may still repeat it.
  expect(await compareIn(hand.world)).toMatchObject({ collections: [] })
  await claimBeside(hand, address, outsider.address)
  await hand.tick()
  expect(await compareIn(hand.world)).toMatchObject({
    collections: [{ other_chips: [{ unit_id, serial: 1, chip_id, chip_id_on_chain: previous_chip_id }] }],
  })
  expect((await replacementNow(hand, id)).status).toBe("confirmed")
}, 30_000)

test("a unit issued during the comparison is not reported", async () => {
  const { collection_id } = await issuedUnit(running)
  const { context, stage } = running
  const [before] = await comparableCollections(context.db.read, collection_id)
  await anotherUnit(running, collection_id)
  const chain = stage.world.chains.get(31_337)
  if (!before || !chain) throw new Error("there is nothing to compare")
  expect(await compareWithChain(context.db.read, chain, before)).toMatchObject({ unasked_serials: 0 })
}, 60_000)

test("only those units of a collection are read whose chip has changed since issuance", async () => {
  const { unit_id: rebound, collection_id } = await issuedUnit(running)
  const other = await anotherUnit(running, collection_id)
  await replaceChip(rebound)
  const { context, stage } = running
  const [collection] = await comparableCollections(context.db.read, collection_id)
  const chain = stage.world.chains.get(31_337)
  if (!collection || !chain) throw new Error("there is nothing to compare")
  const read: unknown[] = []
  const watched = watchedDatabase(context.db, ({ rows }) => read.push(...rows.flat()))
  expect(await compareWithChain(watched.read, chain, collection)).toMatchObject({ other_chips: [] })
  expect(read).toContain(rebound)
  expect(read).not.toContain(other)
}, 60_000)

test("a collection ID is accepted in either case, and an unknown one is rejected", async () => {
  const { collection_id } = await issuedUnit(running)
  expect(await compare(collection_id.toUpperCase())).toMatchObject({ compared: 1 })
  await expect(compare("nonsense")).rejects.toThrow("There is no active collection nonsense.")
}, 60_000)

function compare(collection_id: string) {
  return compareIn(running.stage.world, ["--collection", collection_id])
}

async function compareIn(world: World, words: string[] = []) {
  const output = await compareChain.plan(parseValues(compareChain, words))(world)
  return "document" in output ? output.document : null
}

async function replaceChip(unit_id: string): Promise<void> {
  const { context, caller, turn } = running
  const before = await chipOf(unit_id)
  const { service_secret: secret } = context.config
  const request = { unit_id, body: { is_test: true as const } }
  await turn((each) => createChipReplacement(each, { secret, chains: context.chains }, caller, request))
  await until(async () => (await chipOf(unit_id)) !== before)
}

async function chipOf(unitId: string): Promise<string> {
  return (await chipRowOf(running.context.db.read, unitId)).chip_id
}
