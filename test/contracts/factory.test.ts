import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  zeroAddress,
} from "viem"
import { collectionAddress, collectionSalt } from "../../src/engine/chain/collection-address.ts"
import { collectionAbi, factoryAbi, factoryBytecode } from "../../src/engine/chain/contracts.generated.ts"
import {
  account,
  admin,
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
  rpc,
  type Service,
  startChain,
} from "../harness/contracts.ts"

setDefaultTimeout(30_000)
const bob = account(4)
const stranger = account(5)
const chips = packed([0x0400000001])
const week = 7 * 24 * 3_600

let chain: Chain
let service: Service

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
})

afterAll(() => chain.stop())

let collections = 0

function newCollection(of = service): Promise<Contract> {
  return deployCollection(of, `collection ${++collections}`)
}

async function now(): Promise<bigint> {
  return (await chain.client.getBlock()).timestamp
}

/** The error that a call would revert with; null if none. */
function issuingBy(collection: Contract, account: Address) {
  return collection.refusal(account, "issue", 1n, chips, false)
}

describe("a factory", () => {
  test("starts with the given admin, guardian, authorizer, roles and base URI", async () => {
    const { factory } = await deployService(chain, "https://tokens.test/metadata")
    expect(await factory.read("generation")).toBe(2n)
    expect(await factory.read("admin")).toBe(admin.address)
    expect(await factory.read("guardian")).toBe(guardian.address)
    expect(await factory.read("authorizer")).toBe(authorizer.address)
    expect(await factory.read("previousAuthorizer")).toEqual([zeroAddress, 0n])
    expect(await factory.read("roles", operator.address)).toBe(15n)
    expect(await factory.read("roles", admin.address)).toBe(0n)
    expect(await factory.read("keys")).toEqual([operator.address])
    expect(await factory.read("paused")).toBe(false)
    expect(await factory.read("released")).toBe(false)
    expect(await factory.read("releaseAt")).toBe(0n)
    expect(await factory.read("baseURI")).toBe("https://tokens.test/metadata")
  })

  test("cannot be deployed without an admin or with unknown roles", async () => {
    const contract = { abi: factoryAbi, bytecode: factoryBytecode } as const
    const grants = (roles: bigint) => [{ account: operator.address, roles }]
    for (const args of [
      [zeroAddress, zeroAddress, authorizer.address, grants(1n), ""],
      [admin.address, zeroAddress, authorizer.address, grants(16n), ""],
    ])
      await expect(deploy(chain, admin.address, { ...contract, args })).rejects.toThrow()
  })

  for (const [name, symbol] of [
    ["Autumn Jackets 2026", "AJ26"],
    ["A", ""],
    ["", ""],
    ["\u{1f9e5} Jäckchen", "ジ🧵"],
    ["x".repeat(25), "AUTU"],
    ["x".repeat(26), "AUTU"],
    ["x".repeat(27), "AUTU"],
    ["ジ".repeat(256), "ジジジジ"],
    ["x".repeat(4_096), "L".repeat(255)],
  ] as const) {
    test(`deploys a collection with a name of ${name.length} and a symbol of ${symbol.length} characters at the predicted address`, async () => {
      const { factory } = service
      const salt = collectionSalt("0198f3a2-7c11-7d5e-9f00-0123456789ab")
      const predicted = collectionAddress(2, { factory: factory.address, salt, name, symbol })
      expect(await factory.read("addressOf", salt, name, symbol)).toBe(predicted)
      const events = await factory.run(operator.address, "deploy", salt, name, symbol)
      expect(events).toEqual([["CollectionDeployed", predicted, salt, name, symbol]])
      const collection = contractAt(chain, predicted, collectionAbi)
      expect(await collection.read("name")).toBe(name)
      expect(await collection.read("symbol")).toBe(symbol)
      expect(await collection.read("factory")).toBe(factory.address)
    })
  }

  test("deploys exact ERC-1167 clones, which explorers recognize", async () => {
    const { address } = await newCollection()
    const target = service.implementation.slice(2).toLowerCase()
    expect(await chain.client.getCode({ address })).toBe(
      `0x363d3d373d3d3d363d73${target}5af43d82803e903d91602b57fd5bf3`,
    )
  })

  test("returns the same address for a repeated deployment and emits no event", async () => {
    const args = [keccak256("0x02"), "Repeated", "REP"] as const
    await service.factory.run(operator.address, "deploy", ...args)
    expect(await service.factory.run(operator.address, "deploy", ...args)).toEqual([])
    const answer = await chain.client.call({
      ...{ account: operator.address, to: service.factory.address },
      data: encodeFunctionData({ abi: factoryAbi, functionName: "deploy", args }),
    })
    const address = await service.factory.read("addressOf", ...args)
    expect(decodeFunctionResult({ abi: factoryAbi, functionName: "deploy", data: answer.data ?? "0x" })).toBe(
      address as Address,
    )
  })

  test("gives different addresses to names and symbols that are equal when concatenated", async () => {
    const addresses = await Promise.all(
      [
        ["AB", "C"],
        ["A", "BC"],
        ["ABC", ""],
      ].map(([name, symbol]) => service.factory.read("addressOf", keccak256("0x03"), name, symbol)),
    )
    expect(new Set(addresses).size).toBe(3)
  })

  test("rejects names and symbols that are too long", async () => {
    const refusal = (name: number, symbol: number) =>
      service.factory.refusal(
        operator.address,
        "deploy",
        keccak256("0x04"),
        "x".repeat(name),
        "x".repeat(symbol),
      )
    expect(await refusal(4_097, 0)).toEqual(["NameTooLong", 4_097n])
    expect(await refusal(1, 256)).toEqual(["NameTooLong", 256n])
  })

  test("reports a failed deployment if the clone could not be created", async () => {
    const salt = keccak256("0x0404")
    const [name, symbol] = ["Name", "SYM"]
    const address = (await service.factory.read("addressOf", salt, name, symbol)) as Address
    // An account that has sent a transaction cannot become a contract.
    await rpc(chain, "anvil_setNonce", [address, numberToHex(1)])
    const refusal = await service.factory.refusal(operator.address, "deploy", salt, name, symbol)
    expect(refusal).toEqual(["DeploymentFailed", salt])
  })

  test("lets only the admin change settings", async () => {
    for (const [functionName, ...args] of [
      ["setRoles", stranger.address, 1n],
      ["setAuthorizer", stranger.address, 0n],
      ["setGuardian", stranger.address],
      ["transferAdmin", stranger.address],
      ["resume"],
      ["announceRelease"],
      ["setBaseURI", "https://evil.test"],
      ["freezeBaseURI"],
    ] as const)
      for (const caller of [operator.address, guardian.address])
        expect(await service.factory.refusal(caller, functionName, ...args)).toEqual(["NotAdmin", caller])
  })

  test("transfers its admin role in two steps", async () => {
    const { factory } = await deployService(chain)
    expect(await factory.run(admin.address, "transferAdmin", bob.address)).toEqual([
      ["AdminTransferStarted", admin.address, bob.address],
    ])
    expect(await factory.read("pendingAdmin")).toBe(bob.address)
    expect(await factory.read("admin")).toBe(admin.address)
    expect(await factory.refusal(stranger.address, "acceptAdmin")).toEqual([
      "NotPendingAdmin",
      stranger.address,
    ])
    expect(await factory.run(bob.address, "acceptAdmin")).toEqual([
      ["AdminTransferred", admin.address, bob.address],
    ])
    expect(await factory.read("admin")).toBe(bob.address)
    expect(await factory.read("pendingAdmin")).toBe(zeroAddress)
    expect(await factory.refusal(bob.address, "acceptAdmin")).toEqual(["NotPendingAdmin", bob.address])
  })

  test("is the only one that the implementation and the clones obey", async () => {
    const clone = await newCollection()
    const rules = { authorizer: admin.address, releaseAt: 1n, paused: false }
    for (const contract of [clone, contractAt(chain, service.implementation, collectionAbi)])
      for (const [functionName, ...args] of [
        ["setRoles", admin.address, 15n],
        ["setRules", rules],
        ["setPreviousAuthorizer", { account: admin.address, until: 1n }],
        ["setBaseURI", "https://evil.test"],
        ["setLabel", "0x00"],
      ] as const) {
        const refusal = await contract.refusal(admin.address, functionName, ...args)
        expect(refusal).toEqual(["NotFactory", admin.address])
      }
  })

  test("has an implementation that is not a collection itself", async () => {
    const implementation = contractAt(chain, service.implementation, collectionAbi)
    expect(await issuingBy(implementation, operator.address)).toEqual(["NotClone"])
    expect(await implementation.read("name")).toBe("")
    expect(await implementation.read("symbol")).toBe("")
    expect(await implementation.read("contractURI")).toBe("")
  })
})

describe("roles", () => {
  const attempts = {
    issue: [1n, ["issue", 1n, chips, false], ["refreshMetadata", 1n, 1n]],
    claim: [2n, ["claim", 1n, bob.address], ["claimBatch", [1n], [bob.address]]],
    replace: [4n, ["replaceChip", 1n, 1, 2]],
  } as const

  test("allow a key exactly what they name", async () => {
    const { factory } = service
    const collection = await newCollection()
    await collection.run(operator.address, "issue", 1n, packed([1]), false)
    for (const granted of [1n, 2n, 4n, 8n, 0n]) {
      expect(await factory.run(admin.address, "setRoles", stranger.address, granted)).toEqual([
        ["RolesSet", stranger.address, granted],
      ])
      expect(await factory.read("roles", stranger.address)).toBe(granted)
      for (const [role, ...calls] of Object.values(attempts))
        for (const [functionName, ...args] of calls) {
          const refusal = await collection.refusal(stranger.address, functionName, ...args)
          if (role === granted) expect(refusal?.[0]).not.toBe("NotAllowed")
          else expect(refusal).toEqual(["NotAllowed", stranger.address, role])
        }
      const deployment = await factory.refusal(stranger.address, "deploy", keccak256("0x05"), "N", "S")
      expect(deployment).toEqual(granted === 8n ? null : ["NotAllowed", stranger.address, 8n])
    }
  })

  test("are revoked in all collections at once, and unknown ones are rejected", async () => {
    const { factory } = service
    const [one, other] = [await newCollection(), await newCollection()]
    await factory.run(admin.address, "setRoles", bob.address, 1n)
    expect(await factory.read("keys")).toEqual([operator.address, bob.address])
    expect(await issuingBy(one, bob.address)).toBeNull()
    await factory.run(admin.address, "setRoles", bob.address, 0n)
    for (const collection of [one, other])
      expect(await issuingBy(collection, bob.address)).toEqual(["NotAllowed", bob.address, 1n])
    expect(await factory.read("keys")).toEqual([operator.address])
    for (const roles of [16n, 128n, 2n ** 255n])
      expect(await factory.refusal(admin.address, "setRoles", bob.address, roles)).toEqual([
        "UnknownRoles",
        roles,
      ])
    expect(await factory.refusal(admin.address, "setRoles", zeroAddress, 1n)).toEqual(["ZeroAddress"])
  })

  test("can be held by 32 keys at a time, in whatever order they come and go", async () => {
    const { factory, keys } = await fullService()
    const [last, extra] = [keys[31] as Address, stranger.address]
    expect(await factory.refusal(admin.address, "setRoles", extra, 1n)).toEqual(["TooManyKeys", 32n])
    // Changing a key's roles, or revoking those of a key without any, takes no slot.
    expect(await factory.refusal(admin.address, "setRoles", keys[3] as Address, 1n)).toBeNull()
    expect(await factory.refusal(admin.address, "setRoles", extra, 0n)).toBeNull()
    const gone = [keys[0], last, keys[7]]
    for (const key of gone) await factory.run(admin.address, "setRoles", key as Address, 0n)
    await factory.run(admin.address, "setRoles", extra, 1n)
    const left = [...keys.filter((key) => !gone.includes(key)), extra]
    expect(new Set((await factory.read("keys")) as Address[])).toEqual(new Set(left))
  })
})

/** A factory with the maximum number of keys. */
async function fullService() {
  const keys = Array.from({ length: 32 }, (_each, index) => account(20 + index).address)
  const grants = keys.map((key) => ({ account: key, roles: 15n }))
  const args = [admin.address, guardian.address, authorizer.address, grants, ""]
  const contract = { abi: factoryAbi, bytecode: factoryBytecode, args } as const
  const { address } = await deploy(chain, admin.address, contract)
  return { factory: contractAt(chain, address, factoryAbi), keys }
}

describe("a pause", () => {
  test("stops every key, including keys added meanwhile, and only the admin can end it", async () => {
    const { factory } = await deployService(chain)
    const own = { ...service, factory, implementation: (await factory.read("implementation")) as Address }
    const collection = await newCollection(own)
    for (const caller of [operator.address, authorizer.address, stranger.address])
      expect(await factory.refusal(caller, "pause")).toEqual(["NotGuardian", caller])
    expect(await factory.run(guardian.address, "pause")).toEqual([["Paused", guardian.address]])
    await factory.run(admin.address, "setRoles", bob.address, 9n)
    expect(await factory.read("paused")).toBe(true)
    expect(await factory.read("roles", operator.address)).toBe(143n)
    expect(await factory.read("roles", bob.address)).toBe(137n)
    for (const { address } of [operator, bob]) {
      expect(await issuingBy(collection, address)).toEqual(["NotAllowed", address, 1n])
      expect(await factory.refusal(address, "deploy", keccak256("0x06"), "N", "S")).toEqual([
        "NotAllowed",
        address,
        8n,
      ])
    }
    expect(await factory.refusal(guardian.address, "resume")).toEqual(["NotAdmin", guardian.address])
    // A second pause changes nothing that ending the first does not undo.
    await factory.run(admin.address, "pause")
    await factory.run(admin.address, "setRoles", operator.address, 0n)
    expect(await factory.run(admin.address, "resume")).toEqual([["Resumed"]])
    expect(await factory.read("paused")).toBe(false)
    expect(await issuingBy(collection, bob.address)).toBeNull()
    expect(await issuingBy(collection, operator.address)).toEqual(["NotAllowed", operator.address, 1n])
  })

  test("stops all 32 keys in one transaction that fits into a block", async () => {
    const { factory } = await fullService()
    const gas = await chain.client.estimateContractGas({
      ...{ address: factory.address, abi: factoryAbi, account: guardian.address, functionName: "pause" },
    })
    expect(gas).toBeLessThan(1_000_000n)
    await factory.run(guardian.address, "pause")
    for (const key of (await factory.read("keys")) as Address[])
      expect(await factory.read("roles", key)).toBe(143n)
  })

  test("has another guardian, or none, if the admin sets it", async () => {
    const { factory } = await deployService(chain)
    expect(await factory.run(admin.address, "setGuardian", bob.address)).toEqual([
      ["GuardianSet", bob.address],
    ])
    expect(await factory.refusal(guardian.address, "pause")).toEqual(["NotGuardian", guardian.address])
    expect(await factory.refusal(bob.address, "pause")).toBeNull()
  })
})

describe("a release", () => {
  test("takes effect by itself seven days after its announcement, and is then irreversible", async () => {
    const { factory } = await deployService(chain)
    const [announced] = await factory.run(admin.address, "announceRelease")
    const at = (await now()) + BigInt(week)
    expect(announced).toEqual(["ReleaseAnnounced", at])
    await passTime(chain, week - 60)
    expect(await factory.read("released")).toBe(false)
    expect(await factory.run(admin.address, "announceRelease")).toEqual([])
    expect(await factory.read("releaseAt")).toBe(at)
    await passTime(chain, 60)
    expect(await factory.read("released")).toBe(true)
    for (const caller of [guardian.address, admin.address])
      expect(await factory.refusal(caller, "cancelRelease")).toEqual(["AlreadyReleased", at])
  })

  test("can be cancelled by guardian or admin before that, and starts over when announced again", async () => {
    const { factory } = await deployService(chain)
    for (const caller of [guardian.address, admin.address]) {
      await factory.run(admin.address, "announceRelease")
      expect(await factory.refusal(stranger.address, "cancelRelease")).toEqual([
        "NotGuardian",
        stranger.address,
      ])
      expect(await factory.run(caller, "cancelRelease")).toEqual([["ReleaseCancelled", caller]])
      expect(await factory.run(caller, "cancelRelease")).toEqual([])
    }
    await passTime(chain, week)
    expect(await factory.read("released")).toBe(false)
    await factory.run(admin.address, "announceRelease")
    expect(await factory.read("releaseAt")).toBe((await now()) + BigInt(week))
  })

  test("and a pause do not affect each other or the authorizer", async () => {
    const { factory } = await deployService(chain)
    await factory.run(admin.address, "announceRelease")
    const at = await factory.read("releaseAt")
    await factory.run(admin.address, "pause")
    await factory.run(admin.address, "setAuthorizer", bob.address, 0n)
    expect([await factory.read("releaseAt"), await factory.read("paused")]).toEqual([at, true])
    await factory.run(admin.address, "cancelRelease")
    expect([await factory.read("authorizer"), await factory.read("paused")]).toEqual([bob.address, true])
  })
})

describe("the metadata base URI", () => {
  test("determines the URIs of tokens and collections, and is empty until it is set", async () => {
    const { factory, ...rest } = await deployService(chain)
    const collection = await newCollection({ factory, ...rest })
    await collection.run(operator.address, "issue", 1n, packed([1, 2]), false)
    expect([await collection.read("tokenURI", 2n), await collection.read("contractURI")]).toEqual(["", ""])
    const base = "https://tokens.test/metadata"
    expect(await factory.run(admin.address, "setBaseURI", base)).toEqual([["BaseURISet", base]])
    const uri = `${base}/31337/${collection.address.toLowerCase()}`
    expect(await collection.read("contractURI")).toBe(uri)
    expect(await collection.read("tokenURI", 2n)).toBe(`${uri}/2`)
    expect(await collection.refusal(stranger.address, "tokenURI", 3n)).toEqual(["NotIssued", 3n])
  })

  test("is permanent once frozen, and an empty one cannot be frozen", async () => {
    const { factory } = await deployService(chain)
    expect(await factory.refusal(admin.address, "freezeBaseURI")).toEqual(["BaseIsEmpty"])
    await factory.run(admin.address, "setBaseURI", "ipfs://folder")
    expect(await factory.run(admin.address, "freezeBaseURI")).toEqual([["BaseURIFrozen", "ipfs://folder"]])
    expect(await factory.refusal(admin.address, "setBaseURI", "")).toEqual(["BaseIsFrozen"])
    expect(await factory.read("baseURIFrozen")).toBe(true)
  })

  test("can be announced as changed by an issuing key, for those that cache it", async () => {
    const collection = await newCollection()
    const refresh = (from: bigint, to: bigint) =>
      collection.run(operator.address, "refreshMetadata", from, to)
    expect(await refresh(1n, 2n ** 256n - 1n)).toEqual([["ContractURIUpdated"]])
    await collection.run(operator.address, "issue", 1n, packed([1, 2, 3]), false)
    expect(await refresh(2n, 2n)).toEqual([["MetadataUpdate", 2n], ["ContractURIUpdated"]])
    expect(await refresh(0n, 9n)).toEqual([["BatchMetadataUpdate", 1n, 3n], ["ContractURIUpdated"]])
    expect(await refresh(3n, 2n)).toEqual([["ContractURIUpdated"]])
    expect(await refresh(7n, 9n)).toEqual([["ContractURIUpdated"]])
  })
})

test("the salt of a collection is the hash of its ID's bytes, in either case of the ID", () => {
  const id = "0198f3a2-7c11-7d5e-9f00-0123456789ab"
  expect(collectionSalt(id)).toBe(keccak256("0x0198f3a27c117d5e9f000123456789ab" as Hex))
  expect(collectionSalt(id.toUpperCase())).toBe(collectionSalt(id))
})
