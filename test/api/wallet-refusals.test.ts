import { afterAll, beforeAll, expect, test } from "bun:test"
import { BaseError, encodeFunctionData, type Hex, zeroHash } from "viem"
import { guidesFor } from "../../src/api/docs/guides.ts"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
  authorization,
  authorizer,
  type Chain,
  type Contract,
  deployCollection,
  deployService,
  operator,
  packed,
  type Service,
  startChain,
} from "../harness/contracts.ts"

const alice = account(3)
const bob = account(4)
const never = 2n ** 64n

let chain: Chain
let service: Service
let collection: Contract

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
  collection = await deployCollection(service, "refusals")
  await collection.run(operator.address, "issue", 1n, packed([0x0400000001, 0x04a1b2c3d4]), false)
  await collection.run(operator.address, "claim", 1n, alice.address)
})
afterAll(() => chain.stop())

test("the claims guide names each selector that a wallet shows if the contract refuses its transaction", async () => {
  const { address } = collection
  const forBob = { serial: 2n, recipient: bob.address, nonce: 0n, deadline: never }
  const signature = await authorizer.signTypedData(authorization(address, "Claim", forBob))
  const shown = {
    NotRecipient: await shownTo(alice.address, "claimWithAuthorization", [2n, bob.address, never, signature]),
    NotOwner: await shownTo(bob.address, "transferWithAuthorization", [1n, bob.address, never, zeroHash]),
    AlreadyClaimed: await shownTo(bob.address, "claimWithAuthorization", [1n, bob.address, never, zeroHash]),
    AuthorizationExpired: await shownTo(bob.address, "claimWithAuthorization", [
      2n,
      bob.address,
      1n,
      zeroHash,
    ]),
    InvalidAuthorization: await shownTo(bob.address, "claimWithAuthorization", [
      2n,
      bob.address,
      never,
      zeroHash,
    ]),
    TransfersLocked: await shownTo(alice.address, "transferFrom", [alice.address, bob.address, 1n]),
  }
  await service.factory.run(admin.address, "pause")
  const paused = await shownTo(bob.address, "claimWithAuthorization", [2n, bob.address, never, signature])
  expect(inGuide()).toEqual({ ...shown, AuthorizationsPaused: paused })
})

/** The selectors in the guide's table, by name. */
function inGuide(): Record<string, string> {
  const guide = guidesFor({ api_base_url: "" }).find(({ name }) => name === "claims")
  const rows = guide?.markdown.matchAll(/^\| `(\w+)` \| `(0x\w+)` \| .+ \|$/gm) ?? []
  return Object.fromEntries([...rows].map(([, name = "", selector = ""]) => [name, selector]))
}

/** The beginning of what comes back when the wallet tries its transaction. */
async function shownTo(from: Hex, functionName: string, args: readonly unknown[]): Promise<string> {
  const data = encodeFunctionData({ abi: collectionAbi, functionName, args } as Parameters<
    typeof encodeFunctionData
  >[0])
  const failure = await chain.client
    .estimateGas({ account: from, to: collection.address, data })
    .catch((error) => error)
  const cause = failure instanceof BaseError ? (failure.walk() as { data?: string }) : {}
  return cause.data?.slice(0, 10) ?? "nothing"
}
