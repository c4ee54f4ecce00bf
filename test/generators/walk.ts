/**
 * What the journey needs from a generated client; each adapter in `clients/` implements it in its generator's style.
 */
export type Calls = {
  createCollection(name: string): Promise<{ id: string }>
  collectionStatus(id: string): Promise<string>
  createUnit(collection_id: string): Promise<{ id: string }>
  pairTestChip(unit_id: string): Promise<{ chip_id: string }>
  tokenStatus(unit_id: string): Promise<string | undefined>
  testTap(chip_id: string): Promise<{ chip_id: string; e: string }>
  tap(body: { chip_id: string; e: string }): Promise<string | undefined>
  claim(session: string, unit_id: string, recipient: string): Promise<{ id: string }>
  claimStatus(unit_id: string, claim_id: string): Promise<string>
  /** The code with which the service rejects a value that was already used. */
  codeOf(body: { chip_id: string; e: string }): Promise<string | undefined>
}

/** From a collection to a claimed unit, and one error. */
export async function walk(calls: Calls, recipient: string): Promise<string> {
  const collection = await calls.createCollection("Autumn Jackets")
  await until(() => calls.collectionStatus(collection.id), "active")
  const unit = await calls.createUnit(collection.id)
  const { chip_id } = await calls.pairTestChip(unit.id)
  await until(() => calls.tokenStatus(unit.id), "active")
  const value = await calls.testTap(chip_id)
  const session = await calls.tap({ chip_id, e: value.e })
  if (!session) throw new Error("the response to the tap has no session token")
  const claim = await calls.claim(session, unit.id, recipient)
  await until(() => calls.claimStatus(unit.id, claim.id), "claimed")
  const code = await calls.codeOf({ chip_id, e: value.e })
  if (code !== "chip.already_scanned") throw new Error(`a used value was answered with ${code}`)
  return "claimed"
}

async function until(read: () => Promise<string | undefined>, wanted: string): Promise<void> {
  const deadline = performance.now() + 60_000
  while ((await read()) !== wanted) {
    if (performance.now() > deadline) throw new Error(`nothing was ${wanted} within a minute`)
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}
