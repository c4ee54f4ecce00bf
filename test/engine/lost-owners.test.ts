import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { units } from "../../src/db/schema.ts"
import type { ConnectedChain } from "../../src/engine/chain/chains.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"
import { askOwnersAnew } from "../../workers/watches/follow-owners.ts"
import { findLostOwners } from "../../workers/watches/lost-owners.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { createTestContext, insertScene, unitRow } from "../harness/scene.ts"

describe.each(engines)("owners of units, on $name", (engine) => {
  const databases = useEngine(engine)

  test("are asked for first where nobody ever was, then the ones that were longest ago", async () => {
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
      // More than are asked for in one round.
      const known = Array.from({ length: 30 }, (_each, index) => issued(index + 1, 130 - index))
      await tx.insert(units).values([...known, issued(31, null)])
    })
    const asked: bigint[] = []
    const readContract = async ({ args: [serial] }: { args: [bigint] }) => {
      asked.push(serial)
      throw new ChainUnreachable("nobody answers")
    }
    await findLostOwners(
      context,
      { chain_id: 31_337, rpc: { readContract } } as never as ConnectedChain,
      200n,
    )
    expect(asked.slice(0, 3)).toEqual([31n, 30n, 29n])
  })

  test("keep what another worker was told while they were asked for after a reorganization", async () => {
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
    const chain = { chain_id: 31_337, rpc: { readContract } } as never as ConnectedChain
    await askOwnersAnew(context, chain, { safe: 80n, deepest: 89n })
    const [unit] = await context.db.read.select().from(units).where(eq(units.id, unit_id))
    expect([unit?.owner, unit?.owner_block]).toEqual([since, 96])
  })
})
