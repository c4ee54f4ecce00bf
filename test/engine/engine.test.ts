import { afterEach, describe, expect, spyOn, test } from "bun:test"
import { eq } from "drizzle-orm"
import { type Address, type Hex, keccak256 } from "viem"
import { chainCursors } from "../../src/db/chain-schema.ts"
import { chips, claims, effects, lanes, transactionAttempts, transactions } from "../../src/db/schema.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { type Effect, effectsIn } from "../../src/engine/jobs/job.ts"
import { tickLane } from "../../src/engine/lanes/lane.ts"
import { assertLease, LeaseLost, type Rival, sightLane, takeLease } from "../../src/engine/lanes/leases.ts"
import { newId } from "../../src/platform/ids.ts"
import { createChipReplacement, getChipReplacement } from "../../src/resources/chip-replacements/service.ts"
import { createClaim, getClaim, prepareClaim } from "../../src/resources/claims/service.ts"
import { jobs } from "../../workers/jobs/jobs.ts"
import { replaceChips } from "../../workers/jobs/replace-chips.ts"
import { startWorkers } from "../../workers/start.ts"
import { watchAuthorizations } from "../../workers/watches/watch-authorizations.ts"
import { accountAt, type Depths, type Stage } from "../faults/stage.ts"
import {
  anotherUnit,
  issuedUnit,
  loseTransaction,
  openEngine,
  type RunningWorkers,
  replaceFrom,
  until,
} from "../harness/engine.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe("a chip replacement", () => {
  test("of a unit that was claimed meanwhile fails with a code and releases the new chip", async () => {
    const running = await openForTest()
    const { stage, turn, caller } = running
    const { unit_id, address } = await issuedUnit(running)
    await claimFromWallet(stage, address)
    const { world } = stage
    const secret = world.context.config.service_secret
    const made = await turn((t) =>
      createChipReplacement(t, { secret, chains: world.context.chains }, caller, {
        unit_id,
        body: { is_test: true },
      }),
    )
    const { read } = world.context.db
    await until(async () => (await getChipReplacement(read, caller, unit_id, made.id)).status === "failed")
    const ended = await getChipReplacement(read, caller, unit_id, made.id)
    expect(ended.failure?.code).toBe("chip_replacement.locked")
    const [chip] = await read.select().from(chips).where(eq(chips.chip_id, made.chip_id))
    expect(chip).toMatchObject({ unit_id: null, reserved_for: null, retired_at: null })
  }, 30_000)

  test("waits while a reorganization has undone the previous one, and does not fail", async () => {
    const running = await openForTest({ finality_depth: 40 })
    const { stage, turn, caller, context } = running
    const { client } = stage.anvil
    const { read } = context.db
    const { unit_id, address } = await issuedUnit(running)
    const secret = context.config.service_secret
    const replace = () =>
      turn((t) =>
        createChipReplacement(t, { secret, chains: context.chains }, caller, {
          unit_id,
          body: { is_test: true },
        }),
      )
    const statusOf = async (id: string) => (await getChipReplacement(read, caller, unit_id, id)).status
    const chipOf = () =>
      client.readContract({ address, abi: collectionAbi, functionName: "chipOf", args: [1n] })
    const issuedChip = await chipOf()
    const first = await replace()
    await until(async () => (await statusOf(first.id)) === "confirmed")
    await running.workers.stop()
    const { transaction_hash } = await getChipReplacement(read, caller, unit_id, first.id)
    await loseTransaction(running, transaction_hash as Hex)
    expect(await chipOf()).toBe(issuedChip)

    const second = await replace()
    const chain = stage.world.chains.get(31_337)
    const rows = await read.select().from(effects).where(eq(effects.actor_id, second.id))
    const [effect] = effectsIn(rows) as Effect<"replaceChip">[]
    if (!chain || !effect) throw new Error("the chain is configured, and the replacement waits for its lane")
    expect(await replaceChips.plan(chain, read, [effect])).toEqual({ do: "wait", effects: [effect] })
    // As if it had been sent before the reorganization, and came back without the previous one.
    const hash = await client.sendTransaction({ account: accountAt(7), to: address, gas: 100_000n })
    const receipt = await client.waitForTransactionReceipt({ hash })
    const [transaction] = await read.select().from(transactions).where(eq(transactions.kind, "replaceChip"))
    if (!transaction) throw new Error("the first replacement was sent")
    expect(await replaceChips.results(chain, read, { transaction, effects: [effect], receipt })).toEqual([
      "again",
    ])

    const workers = startWorkers({ ...stage.world, context })
    closers.push(() => workers.stop())
    await until(async () => (await statusOf(second.id)) === "confirmed")
    expect(await chipOf()).toBe(Number.parseInt(second.chip_id, 16))
  }, 30_000)
})

describe("claims that were sent together", () => {
  test("are sent again if a reorganization puts them before the issuance of their units", async () => {
    const running = await openForTest({ finality_depth: 40 })
    const { stage, context, caller, turn } = running
    const { read } = context.db
    const { unit_id, collection_id, address } = await issuedUnit(running)
    const other = await anotherUnit(running, collection_id)
    const recipients = [accountAt(6).address, accountAt(8).address] as const
    const prepared = await Promise.all(
      [unit_id, other].map(async (id, index) => {
        const body = { recipient: recipients[index] ?? "", execution: "service_relay" } as const
        return { id, body, signed: await prepareClaim(context, caller, id, body) }
      }),
    )
    await turn(async (t) => {
      for (const { id, body, signed } of prepared)
        await createClaim(t, caller, { unit_id: id, body, prepared: signed })
    })
    const isClaimed = async () =>
      (await read.select().from(claims)).every(({ status }) => status === "claimed")
    await until(isClaimed)
    const [relayed] = await read.select().from(transactions).where(eq(transactions.kind, "relayClaim"))
    const issued = await read.select().from(transactions).where(eq(transactions.kind, "issueUnit"))
    const [sent] = await read
      .select()
      .from(transactionAttempts)
      .where(eq(transactionAttempts.transaction_id, relayed?.id ?? ""))
    const lowest = Math.min(...issued.map(({ block_number }) => block_number ?? 0))
    await replaceFrom(running, BigInt(lowest), sent?.raw as Hex)

    const chain = stage.world.chains.get(31_337)
    const ownerOf = (serial: number) =>
      chain?.ownershipOf(address, serial).then(
        ({ owner }) => owner,
        () => null,
      )
    await until(async () => (await ownerOf(1)) === recipients[0] && (await ownerOf(2)) === recipients[1])
    expect(await isClaimed()).toBe(true)
    const hashes = async () =>
      (await read.select().from(claims)).map(({ transaction_hash }) => transaction_hash)
    await until(async () => !(await hashes()).includes(sent?.hash ?? ""))
    const { status } = await stage.anvil.client.getTransactionReceipt({ hash: sent?.hash as Hex })
    expect(status).toBe("success")
  }, 30_000)
})

test("a wallet can use its authorization on a chain whose clock is an hour ahead", async () => {
  const running = await openForTest()
  const { stage, context, caller, turn } = running
  const { unit_id } = await issuedUnit(running)
  const { client } = stage.anvil
  await client.increaseTime({ seconds: 3_600 })
  await client.mine({ blocks: 1 })
  const body = { recipient: accountAt(7).address, execution: "client_broadcast" } as const
  const prepared = await prepareClaim(context, caller, unit_id, body)
  const { id, transaction } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
  await sendFromWallet(stage, transaction?.to as Address, transaction?.data as Hex)
  await until(async () => (await getClaim(context.db.read, caller, unit_id, id)).status === "claimed")
})

describe("an authorization used in blocks that the watch skipped", () => {
  for (const [outcome, isOurs] of [
    ["claimed", true],
    ["failed", false],
  ] as const)
    test(`is found in the logs after its deadline: ${outcome}`, async () => {
      const running = await openForTest()
      const { stage, context, caller, turn } = running
      const { unit_id, address } = await issuedUnit(running)
      await running.workers.stop()
      const recipient = accountAt(7).address
      const body = { recipient, execution: "client_broadcast" } as const
      const prepared = await prepareClaim(context, caller, unit_id, body)
      const { id, transaction } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
      if (isOurs) await sendFromWallet(stage, transaction?.to as Address, transaction?.data as Hex)
      else await claimFromWallet(stage, address)
      const { client } = stage.anvil
      await client.increaseTime({ seconds: 31 * 60 })
      await client.mine({ blocks: 2 })
      const { number, hash } = await client.getBlock()
      const position = {
        block_number: Number(number),
        block_hash: hash,
        owners_block_number: Number(number),
        owners_block_hash: hash,
      }
      await turn(({ tx, at }) =>
        tx
          .insert(chainCursors)
          .values({ chain_id: 31_337, ...position, updated_at: at })
          .onConflictDoUpdate({ target: chainCursors.chain_id, set: position }),
      )
      await client.mine({ blocks: 3 })
      const chain = stage.world.chains.get(31_337)
      if (!chain) throw new Error("the chain is configured")
      await watchAuthorizations(context, chain, () => {})
      const claim = await getClaim(context.db.read, caller, unit_id, id)
      expect([claim.status, claim.failure?.code ?? null]).toEqual(
        isOurs ? ["claimed", null] : ["failed", "claim.superseded"],
      )
      expect(claim.transaction_hash !== null).toBe(isOurs)
    }, 30_000)
})

describe("a claim from its recipient's own wallet", () => {
  test("names its current transaction after a reorganization deeper than the confirmation depth", async () => {
    const running = await openForTest({ finality_depth: 40 })
    const { stage, context, caller, turn } = running
    const { client } = stage.anvil
    const { unit_id } = await issuedUnit(running)
    const recipient = accountAt(7).address
    const body = { recipient, execution: "client_broadcast" } as const
    const prepared = await prepareClaim(context, caller, unit_id, body)
    const { id, transaction } = await turn((t) => createClaim(t, caller, { unit_id, body, prepared }))
    const [to, data] = [transaction?.to as Address, transaction?.data as Hex]
    await sendFromWallet(stage, to, data)
    const { read } = context.db
    const claimNow = () => getClaim(read, caller, unit_id, id)
    await until(async () => (await claimNow()).status === "claimed")
    const first = (await claimNow()).transaction_hash as Hex
    const instead = await client.signTransaction({
      ...{ account: accountAt(7), to, data, gas: 300_001n, nonce: 0, chainId: 31_337, type: "eip1559" },
      ...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
    })
    await loseTransaction(running, first, instead)
    await until(async () => (await claimNow()).transaction_hash === keccak256(instead))
    expect((await claimNow()).status).toBe("claimed")
    expect((await client.getTransactionReceipt({ hash: keccak256(instead) })).status).toBe("success")
  }, 30_000)
})

describe("a lane", () => {
  test("continues with other work if one effect cannot be planned, and stores the reason in its row", async () => {
    const running = await openForTest()
    const { stage, turn } = running
    const { unit_id } = await issuedUnit(running)
    const { read } = stage.world.context.db
    const [done] = await read.select().from(effects).where(eq(effects.actor_id, unit_id))
    const nowhere = newId()
    await turn((t) =>
      t.tx.insert(effects).values({
        ...(done as typeof effects.$inferSelect),
        id: "00000000-0000-7000-8000-000000000000",
        invoke_id: "poison",
        input: { ...done?.input, collection_id: nowhere },
        status: "open",
        transaction_id: null,
        closed_at: null,
      }),
    )
    await issuedUnit(running)
    const [poison] = await read.select().from(effects).where(eq(effects.invoke_id, "poison"))
    expect(poison?.status).toBe("open")
    expect(poison?.last_error).toContain(`there is no collection ${nowhere}`)
  }, 30_000)

  test("pauses before it sends what it cannot pay for, and continues when its signer has money again", async () => {
    const running = await openForTest()
    const { stage } = running
    const { client } = stage.anvil
    const address = accountAt(2).address
    await client.setBalance({ address, value: 1n })
    const issued = issuedUnit(running)
    const { read } = stage.world.context.db
    const laneNow = async () => (await read.select().from(lanes).where(eq(lanes.address, address)))[0]
    await until(async () => (await laneNow())?.status === "paused")
    expect((await laneNow())?.reason).toContain(`${address} lacks`)
    expect(await read.select().from(transactions)).toEqual([])
    await client.setBalance({ address, value: 10n ** 18n })
    await issued
    await until(async () => (await laneNow())?.reason === null)
    expect(await laneNow()).toMatchObject({ status: "open", reason: null })
  }, 30_000)

  test("rejects the writes of a holder that was suspended past its lease", async () => {
    const { stage, turn, workers } = await openForTest()
    await workers.stop()
    const [signer] = stage.world.chains.get(31_337)?.signers ?? []
    const laneId = String(signer?.lane_id)
    const frozen = await turn((t) => takeLease(t, laneId, { owner: "frozen", lease_milliseconds: 1 }))
    if (!frozen) throw new Error("the lane was not free")
    const later = new Date(Date.now() + 1_000)
    const next = await turn((t) =>
      takeLease({ ...t, at: later }, laneId, { owner: "next", lease_milliseconds: 60_000 }),
    )
    expect(next?.lease.epoch).toBe(frozen.lease.epoch + 1)
    const write = turn((t) => assertLease(t, frozen.lease))
    await expect(write).rejects.toBeInstanceOf(LeaseLost)
    expect(await turn((t) => takeLease(t, laneId, { owner: "third", lease_milliseconds: 1 }))).toBeNull()
  })

  test("stays with its holder during a round that takes longer than the lease", async () => {
    const { stage, turn, workers } = await openForTest()
    await workers.stop()
    const chain = stage.world.chains.get(31_337)
    const [signer] = chain?.signers ?? []
    if (!chain || !signer) throw new Error("the chain is configured, with a signer")
    const slow = Promise.withResolvers<void>()
    const follow = () => slow.promise.then(() => chain.headers.follow())
    const round = tickLane({
      ...{ context: stage.world.context, signer, jobs, checkpoint() {}, memory: {} },
      chain: { ...chain, headers: { ...chain.headers, follow } },
      claimant: { owner: "slow", lease_milliseconds: 600 },
    })
    const held = async () => {
      const { read } = stage.world.context.db
      const [lane] = await read.select().from(lanes).where(eq(lanes.id, signer.lane_id))
      return { owner: lane?.lease_owner, epoch: lane?.lease_epoch, until: Number(lane?.leased_until) }
    }
    await until(async () => (await held()).owner === "slow")
    const first = await held()
    await until(async () => (await held()).until > first.until + 1_200)
    const { until: end, ...later } = await held()
    expect(later).toEqual({ owner: "slow", epoch: first.epoch })
    const rival = { owner: "rival", lease_milliseconds: 600 }
    const atItsEnd = new Date(end)
    expect(await turn((t) => takeLease({ ...t, at: atItsEnd }, signer.lane_id, rival))).toBeNull()
    slow.resolve()
    await round
  })

  test("is checked without a transaction while it is held and has nothing to do", async () => {
    const { stage, workers } = await openForTest()
    await workers.stop()
    const { context, chains } = stage.world
    const chain = chains.get(31_337)
    const [signer] = chain?.signers ?? []
    if (!chain || !signer) throw new Error("the chain is configured, with a signer")
    let opened = 0
    const transaction: typeof context.db.transaction = (work, isolation) => {
      opened += 1
      return context.db.transaction(work, isolation)
    }
    const counted = { ...context, db: { ...context.db, transaction } }
    const laneOf = (owner: string) => ({
      ...{ context: counted, chain, signer, jobs, checkpoint() {}, memory: {} },
      claimant: { owner, lease_milliseconds: 60_000 },
    })
    const holder = laneOf("holder")
    await tickLane(holder)
    expect(opened).toBeGreaterThan(0)
    opened = 0
    await tickLane(holder)
    await tickLane(laneOf("another"))
    expect(opened).toBe(0)
  })

  test("can be taken over from a holder whose clock was ahead once that has been silent for a lease period", async () => {
    const { stage, turn, workers } = await openForTest()
    await workers.stop()
    const [signer] = stage.world.chains.get(31_337)?.signers ?? []
    const laneId = String(signer?.lane_id)
    const ahead = { owner: "ahead", lease_milliseconds: 600_000 }
    expect(await turn((t) => takeLease(t, laneId, ahead))).not.toBeNull()
    const claimant = { owner: "right", lease_milliseconds: 60_000 }
    expect(await turn((t) => takeLease(t, laneId, claimant))).toBeNull()
    const { read } = stage.world.context.db
    const sight = async (known?: Rival) =>
      (await sightLane(read, laneId, claimant, new Date(), known)).rival ?? undefined
    const passOneLease = movePerformanceClock(60_001)
    const first = await sight()
    expect(await turn((t) => takeLease(t, laneId, claimant, first))).toBeNull()
    passOneLease()
    const renewedAt = new Date(Date.now() + 1_000)
    await turn((t) => takeLease({ ...t, at: renewedAt }, laneId, ahead))
    expect(await turn((t) => takeLease(t, laneId, claimant, first))).toBeNull()
    const rival = await sight(first)
    expect(await sight(rival)).toBe(rival)
    passOneLease()
    expect(await sight(rival)).toBeUndefined()
    expect(await turn((t) => takeLease(t, laneId, claimant, rival))).not.toBeNull()
  })
})

/** Returns a function that moves the process's monotonic clock on by some milliseconds, until the test is over. */
function movePerformanceClock(milliseconds: number): () => void {
  const now = performance.now.bind(performance)
  let passed = 0
  const clock = spyOn(performance, "now").mockImplementation(() => now() + passed)
  closers.push(async () => clock.mockRestore())
  return () => {
    passed += milliseconds
  }
}

async function openForTest(depths: Partial<Depths> = {}): Promise<RunningWorkers> {
  const running = await openEngine({}, depths)
  closers.push(running.close)
  return running
}

/** Claims serial 1 from a wallet with an authorization that the database does not know. */
async function claimFromWallet({ world, anvil }: Stage, contract: Address): Promise<void> {
  const account = accountAt(7)
  const deadline_at = new Date("2100-01-01T00:00:00.000Z")
  const chain = world.chains.get(31_337)
  const recipient = account.address
  const signed = await chain?.authorizeClaim({
    ...{ contract, serial: 1, recipient, deadline_at },
    authorization_nonce: 0,
  })
  await sendFromWallet({ world, anvil }, contract, signed?.transaction.data as Hex)
}

async function sendFromWallet(
  { world, anvil }: Pick<Stage, "world" | "anvil">,
  contract: Address,
  data: Hex,
): Promise<void> {
  const account = accountAt(7)
  await anvil.client.sendTransaction({ account, to: contract, data, gas: 300_000n })
  const chain = world.chains.get(31_337)
  await until(async () => (await chain?.ownershipOf(contract, 1))?.owner === account.address)
}
