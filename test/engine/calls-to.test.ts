import { describe, expect, test } from "bun:test"
import { sql } from "drizzle-orm"
import { type Address, getAddress } from "viem"
import { transactions } from "../../src/db/schema.ts"
import { encodeRun } from "../../src/engine/chain/desk.ts"
import { encodeIssue } from "../../src/engine/chain/issue-call.ts"
import { mayCall } from "../../src/engine/jobs/calls-to.ts"
import { newId } from "../../src/platform/ids.ts"
import { engines, useEngine } from "../harness/engines.ts"
import { createTestContext, insertScene, startOfTime } from "../harness/scene.ts"

const [contract, neighbour, desk] = ["ab", "cd", "ef"].map((byte) => getAddress(`0x${byte.repeat(20)}`)) as [
  Address,
  Address,
  Address,
]
const issue = encodeIssue(2, { first: 1, chip_ids: ["04000000000000"] }, { asCode: false })

describe.each(engines)("transactions that call a contract, on $name,", (engine) => {
  const databases = useEngine(engine)

  test("are found without those of its neighbours, alone or through the desk", async () => {
    const { db } = createTestContext(await databases.openMigrated())
    const through = (...contracts: Address[]) => ({
      to: desk,
      call: encodeRun(contracts.map((to) => ({ to, data: issue }))),
    })
    const sent = [
      { to: contract, call: issue },
      { to: neighbour, call: issue },
      through(neighbour, contract),
      through(neighbour),
    ]
    await db.transaction(async (tx) => {
      const { lane_id } = await insertScene(tx)
      const rows = sent.map(({ to, call }, nonce) => ({
        ...{ id: newId(), lane_id, chain_id: 31_337, kind: "issueUnit", nonce, to, call, gas: 300_000 },
        ...{ max_fee_per_gas: "1", max_priority_fee_per_gas: "1", status: "confirmed" as const },
        ...{ created_at: startOfTime, updated_at: startOfTime },
      }))
      await tx.insert(transactions).values(rows)
    })
    const found = await db.read
      .select({ nonce: transactions.nonce })
      .from(transactions)
      .where(mayCall(sql`${contract}`))
      .orderBy(transactions.nonce)
    expect(found).toEqual([{ nonce: 0 }, { nonce: 2 }])
  })
})
