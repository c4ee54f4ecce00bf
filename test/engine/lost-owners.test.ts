import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { chainCursors } from "../../src/db/chain-schema.ts"
import { migrate } from "../../src/db/migrate.ts"
import { units } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { inTurn } from "../../src/platform/context.ts"
import { noteOwnersAsked, ReadByAnother, readCursor } from "../../workers/watches/chain-cursor.ts"
import { askOwnersAnew } from "../../workers/watches/follow-owners.ts"
import { findLostOwners } from "../../workers/watches/lost-owners.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { headerAt } from "../harness/header-at.ts"
import { createTestContext, insertScene, startOfTime, unitRow } from "../harness/scene.ts"
import { unitRowOf } from "../harness/unit-rows.ts"

const chain_id = 31_337
const isAgreed = async () => true
/** The chain was read up to block 99. */
const cursorAt99 = {
  chain_id,
  ...{ block_number: 99, block_hash: "0x99", owners_block_number: 99, owners_block_hash: headerAt(99n).hash },
  updated_at: new Date(0),
}

describe.each(engines)("owners of units, on $name", (engine) => {
  const databases = useEngine(engine)

  test("are queried on the fork that was read only, first where none is recorded, then least recently queried first", async () => {
    const context = createTestContext(await databases.openMigrated())
    await context.db.transaction(async (tx) => {
      const scene = await insertScene(tx)
      const issued = (serial: number, owner_block: number | null) =>
        unitRow(scene, {
          ...{
            collection_id: scene.collection_id,
            token_status: "active",
            serial,
            claimed: true,
            owner_block,
          },
        })
      // More than are queried in one round.
      const known = Array.from({ length: 30 }, (_each, index) => issued(index + 1, 130 - index))
      await tx.insert(units).values([...known, issued(31, null)])
    })
    await context.db.transaction((tx) => tx.insert(chainCursors).values(cursorAt99))
    const asked: bigint[] = []
    const readContract = async ({ args: [serial] }: { args: [bigint] }) => {
      asked.push(serial)
      throw new ChainUnreachable("nobody answers")
    }
    const chain = { chain_id, rpc: { readContract } } as never as ConnectedChain
    const cursor = await readCursor(context.db.read, chain_id)
    const onOtherFork = { ...headerAt(99n), hash: headerAt(1n).hash }
    await findLostOwners({ context, chain, deepest: onOtherFork, isAgreed }, cursor)
    expect(asked).toEqual([])
    await findLostOwners({ context, chain, deepest: headerAt(99n), isAgreed }, cursor)
    expect(asked.slice(0, 3)).toEqual([31n, 30n, 29n])
  })

  test("are not changed by a worker that queried before another worker read on or queried again", async () => {
    const context = createTestContext(await databases.openMigrated())
    const owner = `0x${"1".repeat(40)}`
    const [claimed, lost] = await context.db.transaction(async (tx) => {
      const scene = await insertScene(tx)
      const issued = { collection_id: scene.collection_id, token_status: "active", claimed: true } as const
      const rows = [
        unitRow(scene, { ...issued, serial: 1, owner, owner_block: 95 }),
        unitRow(scene, { ...issued, serial: 2, owner_block: 95 }),
      ]
      await tx.insert(units).values(rows)
      return rows.map(({ id }) => id) as [string, string]
    })
    const overtakenBy = (change: Partial<typeof chainCursors.$inferInsert>) => {
      const readContract = async () => {
        await context.db.transaction((tx) => tx.update(chainCursors).set(change))
        return `0x${"2".repeat(40)}`
      }
      return { chain_id, rpc: { readContract } } as never as ConnectedChain
    }
    await context.db.transaction((tx) => tx.insert(chainCursors).values(cursorAt99))
    const { read } = context.db
    const readOn = { owners_block_hash: "0x98" }
    const askedAgain = (asked_block_hash: string) => ({ asked_block_number: 99, asked_block_hash })
    for (const change of [readOn, askedAgain("0x97")]) {
      const cursor = await readCursor(read, chain_id)
      const above = { safe: 94n, asked: headerAt(99n) }
      const asking = askOwnersAnew(context, overtakenBy(change), cursor, above)
      await expect(asking).rejects.toBeInstanceOf(ReadByAnother)
    }
    const finding = findLostOwners(
      {
        context,
        chain: overtakenBy(askedAgain("0x98")),
        deepest: { ...headerAt(99n), hash: "0x98" },
        isAgreed,
      },
      await readCursor(read, chain_id),
    )
    await expect(finding).rejects.toBeInstanceOf(ReadByAnother)
    const owners = [(await unitRowOf(read, claimed)).owner, (await unitRowOf(read, lost)).owner]
    expect(owners).toEqual([owner, null])
  })

  test("are those of the newest query, even if another worker still writes an older result", async () => {
    const url = await databases.newDatabase()
    const [one, other] = [createTestContext(databases.open(url)), createTestContext(databases.open(url))]
    await migrate(one.db, startOfTime)
    const unit_id = await one.db.transaction(async (tx) => {
      const scene = await insertScene(tx)
      const issued = { collection_id: scene.collection_id, token_status: "active", claimed: true } as const
      const unit = unitRow(scene, { ...issued, serial: 2, owner_block: 50 })
      await tx.insert(units).values(unit)
      await tx.insert(chainCursors).values(cursorAt99)
      return unit.id
    })
    const [before, since] = [`0x${"2".repeat(40)}`, `0x${"3".repeat(40)}`]
    const saying = (owner: string) =>
      ({
        ...{ chain_id, config: { finality_depth: 20 }, rpc: { readContract: async () => owner } },
      }) as never as ConnectedChain
    const isWriting = Promise.withResolvers<void>()
    const { promise: isWritten, resolve: writeOn } = Promise.withResolvers<void>()
    const slow: typeof one = {
      ...one,
      // Its transaction pauses after it has read and before it commits.
      async tell(...told) {
        isWriting.resolve()
        await isWritten
        return await one.tell(...told)
      },
    }
    const finding = findLostOwners(
      { context: slow, chain: saying(before), deepest: headerAt(99n), isAgreed },
      await readCursor(one.db.read, chain_id),
    )
    await isWriting.promise
    const askedAnew = askAnew()
    // A concurrent writer waits for it, or does not.
    await Promise.race([askedAnew, Bun.sleep(200)])
    writeOn()
    await Promise.all([finding.catch(() => {}), askedAnew])
    expect((await unitRowOf(one.db.read, unit_id)).owner).toBe(since)

    async function askAnew(): Promise<void> {
      const chain = saying(since)
      const noted = await inTurn(other, null, (turn) =>
        noteOwnersAsked(turn, chain, { number: 100n, hash: "0x100" }),
      )
      await askOwnersAnew(other, chain, noted, { safe: 90n, asked: headerAt(100n) })
    }
  }, 20_000)

  test("keep what another worker recorded while they were queried after a reorganization", async () => {
    const context = createTestContext(await databases.openMigrated())
    const [before, since] = [`0x${"1".repeat(40)}`, `0x${"2".repeat(40)}`]
    const unit_id = await context.db.transaction(async (tx) => {
      const scene = await insertScene(tx)
      const told = { serial: 1, claimed: true, owner: before, owner_block: 95 }
      const unit = unitRow(scene, { collection_id: scene.collection_id, token_status: "active", ...told })
      await tx.insert(units).values(unit)
      return unit.id
    })
    const readContract = async () => {
      await context.db.transaction(async (tx) => {
        await tx.update(units).set({ owner: since, owner_block: 96 }).where(eq(units.id, unit_id))
      })
      return before
    }
    const chain = { chain_id, rpc: { readContract } } as never as ConnectedChain
    await askOwnersAnew(context, chain, null, { safe: 80n, asked: headerAt(89n) })
    const unit = await unitRowOf(context.db.read, unit_id)
    expect([unit.owner, unit.owner_block]).toEqual([since, 96])
  })
})
