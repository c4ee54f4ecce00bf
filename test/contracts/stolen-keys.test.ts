import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test"
import { encodeFunctionData, keccak256, stringToHex } from "viem"
import { collectionAbi, deskAbi, deskBytecode } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
  authorization,
  authorizer,
  type Chain,
  type Contract,
  contractAt,
  deploy,
  deployCollection,
  deployService,
  guardian,
  operator,
  packed,
  passTime,
  type Service,
  startChain,
} from "../harness/contracts.ts"

// A thief has a key of the service. Each test says what the thief can take, what not, and what ends it.

setDefaultTimeout(30_000)
const [owner, thief] = [account(3), account(5)]
const never = 2n ** 64n

let chain: Chain
let service: Service
/** Serial 1 has an owner; 2 and 3 are in custody. */
let collection: Contract

beforeAll(async () => {
  chain = await startChain()
})
beforeEach(async () => {
  service = await deployService(chain)
  collection = await deployCollection(service, "robbed")
  await collection.run(operator.address, "issue", 1n, packed([11, 12, 13]), false)
  await collection.run(operator.address, "claim", 1n, owner.address)
})
afterAll(() => chain.stop())

/** The error that a call by the thief reverts with; null if none. */
async function obstacle(functionName: string, ...args: readonly unknown[]): Promise<unknown> {
  return (await collection.refusal(thief.address, functionName, ...args))?.[0] ?? null
}

/** Gives the thief's key these roles. */
async function stolen(roles: bigint): Promise<void> {
  await service.factory.run(admin.address, "setRoles", thief.address, roles)
}

async function takeAway(): Promise<void> {
  await service.factory.run(admin.address, "setRoles", thief.address, 0n)
}

async function signTransfer(signer: typeof owner, to: typeof owner) {
  const message = { serial: 1n, from: owner.address, to: to.address, nonce: 1n, deadline: never }
  return await signer.signTypedData(authorization(collection.address, "Transfer", message))
}

type Attempt = [functionName: string, ...args: unknown[]]

const calls: Record<"issue" | "claim" | "replace", Attempt> = {
  issue: ["issue", 4n, packed([66]), false],
  claim: ["claim", 2n, thief.address],
  replace: ["replaceChip", 2n, 12, 66],
}

test("an issuing key can issue false units, which nobody owns; it can take none, and one call ends it", async () => {
  await stolen(1n)
  await collection.run(thief.address, ...calls.issue)
  expect(await collection.read("ownerOf", 4n)).toBe(collection.address)
  for (const call of [calls.claim, calls.replace]) expect(await obstacle(...call)).toBe("NotAllowed")
  await takeAway()
  expect(await obstacle("issue", 5n, packed([67]), false)).toBe("NotAllowed")
  // The false unit stays; serials continue behind it.
  await collection.run(operator.address, "issue", 5n, packed([14]), false)
})

test("a claiming key can take what is in custody, of every brand, but never what has an owner", async () => {
  const other = await deployCollection(service, "another brand's")
  await other.run(operator.address, "issue", 1n, packed([21, 22]), false)
  await stolen(2n)
  await collection.run(thief.address, ...calls.claim)
  await other.run(thief.address, "claim", 1n, thief.address)
  expect(await obstacle("claim", 1n, thief.address)).toBe("AlreadyClaimed")
  for (const call of [calls.issue, calls.replace]) expect(await obstacle(...call)).toBe("NotAllowed")
  // The guardian stops it at once, and everything else, until the admin has revoked the role.
  await service.factory.run(guardian.address, "pause")
  expect(await obstacle("claim", 3n, thief.address)).toBe("NotAllowed")
  await takeAway()
  await service.factory.run(admin.address, "resume")
  expect(await obstacle("claim", 3n, thief.address)).toBe("NotAllowed")
  expect(await collection.refusal(operator.address, "claim", 3n, owner.address)).toBeNull()
})

test("a replacing key can bind other chips to unclaimed units, which can be undone", async () => {
  await stolen(4n)
  await collection.run(thief.address, ...calls.replace)
  expect(await obstacle("replaceChip", 1n, 11, 66)).toBe("ChipLocked")
  for (const call of [calls.issue, calls.claim]) expect(await obstacle(...call)).toBe("NotAllowed")
  await takeAway()
  expect(await obstacle("replaceChip", 3n, 13, 66)).toBe("NotAllowed")
  await collection.run(operator.address, "replaceChip", 2n, 66, 12)
  expect(await collection.read("chipOf", 2n)).toBe(12)
})

test("a desk trusts only roles at its own factory, and no other factory may give it any", async () => {
  const other = await deployService(chain)
  const { address } = await deploy(chain, admin.address, {
    abi: deskAbi,
    bytecode: deskBytecode,
    args: [other.factory.address],
  })
  await other.factory.run(admin.address, "setRoles", thief.address, 2n)
  await service.factory.run(admin.address, "setRoles", address, 7n)
  const data = encodeFunctionData({ abi: collectionAbi, functionName: "claim", args: [2n, thief.address] })
  expect(await obstacle(...calls.claim)).toBe("NotAllowed")
  await contractAt(chain, address, deskAbi).run(thief.address, "run", [{ to: collection.address, data }])
  expect(await collection.read("ownerOf", 2n)).toBe(thief.address)
})

test("a deploying key can deploy empty collections, and change none", async () => {
  await stolen(8n)
  await service.factory.run(thief.address, "deploy", keccak256(stringToHex("false")), "False", "F")
  for (const call of Object.values(calls)) expect(await obstacle(...call)).toBe("NotAllowed")
  await takeAway()
  const again = [keccak256(stringToHex("more")), "More", "M"]
  expect((await service.factory.refusal(thief.address, "deploy", ...again))?.[0]).toBe("NotAllowed")
})

test("the authorizer's key lets the thief claim what is in custody; an owner's token moves only with its owner", async () => {
  const claimBy = async (signer: typeof owner, serial: bigint) => {
    const message = { serial, recipient: thief.address, nonce: 0n, deadline: never }
    const signature = await signer.signTypedData(authorization(collection.address, "Claim", message))
    return ["claimWithAuthorization", serial, thief.address, never, signature] as const
  }
  await collection.run(thief.address, ...(await claimBy(authorizer, 2n)))
  const transfer = await signTransfer(authorizer, thief)
  expect(await obstacle("transferWithAuthorization", 1n, thief.address, never, transfer)).toBe("NotOwner")
  const next = account(9)
  await service.factory.run(admin.address, "setAuthorizer", next.address, 0n)
  // Without an overlap, issued authorizations become invalid as well; the service issues them again.
  expect(await obstacle(...(await claimBy(authorizer, 3n)))).toBe("InvalidAuthorization")
  expect(await obstacle(...(await claimBy(next, 3n)))).toBeNull()
})

test("the guardian's key can pause the service and cancel its release, and nothing else", async () => {
  const { factory } = service
  await factory.run(admin.address, "setGuardian", thief.address)
  await factory.run(thief.address, "pause")
  for (const [functionName, ...args] of [
    ["resume"],
    ["setRoles", thief.address, 15n],
    ["setAuthorizer", thief.address, 0n],
    ["announceRelease"],
  ] as const)
    expect((await factory.refusal(thief.address, functionName, ...args))?.[0]).toBe("NotAdmin")
  await factory.run(admin.address, "setGuardian", guardian.address)
  await factory.run(admin.address, "resume")
  expect((await factory.refusal(thief.address, "pause"))?.[0]).toBe("NotGuardian")
})

test("the admin's key can do whatever a role can, but releases no owner's token within seven days", async () => {
  const { factory } = service
  // The thief has it, and the guardian has noticed.
  await factory.run(admin.address, "announceRelease")
  await passTime(chain, 6 * 24 * 3_600)
  await factory.run(guardian.address, "cancelRelease")
  await passTime(chain, 2 * 24 * 3_600)
  expect(await factory.read("released")).toBe(false)
  expect(await obstacle("transferFrom", owner.address, thief.address, 1n)).toBe("TransfersLocked")
  // The true admin can also transfer the role, which the thief cannot prevent by being named.
  await factory.run(admin.address, "transferAdmin", thief.address)
  await factory.run(admin.address, "transferAdmin", account(9).address)
  expect((await factory.refusal(thief.address, "acceptAdmin"))?.[0]).toBe("NotPendingAdmin")
  await factory.run(account(9).address, "acceptAdmin")
  expect((await factory.refusal(admin.address, "setRoles", thief.address, 15n))?.[0]).toBe("NotAdmin")
})
