import { afterAll, beforeAll, expect, test } from "bun:test"
import fc from "fast-check"
import {
  type Abi,
  type Address,
  encodeErrorResult,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  type TypedDataDefinition,
  zeroAddress,
} from "viem"
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
  type Event,
  guardian,
  operator,
  packed,
  release as releaseService,
  rpc,
  type Service,
  startChain,
} from "../harness/contracts.ts"

type Token = {
  issuedChip: number
  chip: number
  owner: Address | null
  nonce: bigint
  moved: boolean
  approved: Address
}

/** The expected state of the contracts: a collection, and a second one that the desk can also work on. */
type Model = {
  collection: Address
  tokens: Token[]
  approvedForAll: Set<string>
  rules: Rules
  beside: Model | null
}

/** What applies to all collections of a factory. */
type Rules = { released: boolean; paused: boolean }

/** The expected outcome of a call: an error, or these events. */
type Outcome = { refusal: Event } | { events: readonly Event[] }

type Call = { from: Address; functionName: string; args: readonly unknown[]; outcome: Outcome }

/** A step builds a call from the model, predicts its outcome and updates the model accordingly. */
type Step = (model: Model) => Promise<Call> | Call

const deadline = 2n ** 64n
const wallets = [3, 4, 5].map((index) => account(index))
const anyWallet = fc.constantFrom(...wallets)
const anyAddress = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...wallets.map(({ address }) => address)) },
  { weight: 1, arbitrary: fc.constantFrom<Address | "collection">(zeroAddress, "collection") },
)
const anySerial = fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 6 }) }, fc.constantFrom(0, 40))
const anyChip = fc.constantFrom(0x0400000001, 0x0400000002, 0xffffffffff)
const anyChips = fc.array(anyChip, { minLength: 1, maxLength: 8 })
const stranger = account(3).address

let chain: Chain
let service: Service
let contracts: Map<string, Contract>
let desk: Contract

beforeAll(async () => {
  chain = await startChain()
  service = await deployService(chain)
  const made = [await deployCollection(service, "property"), await deployCollection(service, "beside")]
  contracts = new Map(made.map((contract) => [contract.address, contract]))
  const args = [service.factory.address]
  const { address } = await deploy(chain, admin.address, { abi: deskAbi, bytecode: deskBytecode, args })
  // Its errors include those of the collections.
  desk = contractAt(chain, address, [...deskAbi, ...collectionAbi])
  await service.factory.run(admin.address, "setRoles", address, 7n)
})

afterAll(() => chain.stop())

test("any sequence of calls has the outcomes and the final state that the model predicts", async () => {
  await fc.assert(
    fc.asyncProperty(anyStart, fc.array(anyStep, { minLength: 15, maxLength: 40 }), async (start, steps) => {
      const snapshot = await rpc(chain, "evm_snapshot", [])
      const [model, beside] = newModels()
      try {
        for (const step of [...start, ...steps]) await check(model, await step(model))
        for (const each of [model, beside]) await compareViews(each)
      } finally {
        await rpc(chain, "evm_revert", [snapshot])
      }
    }),
    { numRuns: 80 },
  )
}, 60_000)

function newModels(): [Model, Model] {
  const rules = { released: false, paused: false }
  const [collection = "0x", other = "0x"] = [...contracts.values()].map(({ address }) => address)
  const beside: Model = { collection: other, tokens: [], approvedForAll: new Set(), rules, beside: null }
  return [{ collection, tokens: [], approvedForAll: new Set(), rules, beside }, beside]
}

async function check(model: Model, { from, functionName, args, outcome }: Call): Promise<void> {
  const contract = contractOf(model, functionName)
  if ("refusal" in outcome)
    expect(await contract.refusal(from, functionName, ...args)).toEqual(outcome.refusal)
  else expect(await contract.run(from, functionName, ...args)).toEqual(outcome.events)
}

function contractOf({ collection }: Model, functionName: string): Contract {
  if (["pause", "resume", "cancelRelease"].includes(functionName)) return service.factory
  return functionName === "run" ? desk : collectionAt(collection)
}

function collectionAt(address: Address): Contract {
  const contract = contracts.get(address)
  if (!contract) throw new Error(`there is no collection at ${address}`)
  return contract
}

async function compareViews(model: Model): Promise<void> {
  const { tokens, rules } = model
  const collection = collectionAt(model.collection)
  const claimed = tokens.filter(({ owner }) => owner !== null).length
  const compared: [functionName: string, args: readonly unknown[], expected: unknown][] = [
    ["issued", [], BigInt(tokens.length)],
    ["totalSupply", [], BigInt(tokens.length)],
    ["claimed", [], BigInt(claimed)],
    ["released", [], rules.released],
    ["balanceOf", [model.collection], BigInt(tokens.length - claimed)],
  ]
  for (const { address } of wallets) {
    const balance = tokens.filter(({ owner }) => owner === address).length
    compared.push(["balanceOf", [address], BigInt(balance)])
    for (const { address: other } of wallets) {
      const approved = model.approvedForAll.has(`${address} ${other}`)
      compared.push(["isApprovedForAll", [address, other], approved])
    }
  }
  for (const [index, token] of tokens.entries()) {
    const serial = [BigInt(index + 1)]
    compared.push(
      ["ownerOf", serial, token.owner ?? model.collection],
      ["chipOf", serial, token.chip],
      ["authorizationNonce", serial, token.nonce],
      ["getApproved", serial, token.approved],
      ["locked", serial, !rules.released],
    )
  }
  const answers = await Promise.all(
    compared.map(([functionName, args]) => collection.read(functionName, ...args)),
  )
  const named = compared.map(([functionName, args], index) => [functionName, args, answers[index]])
  expect(named).toEqual(compared)
  const next = BigInt(tokens.length + 1)
  expect(await collection.refusal(admin.address, "ownerOf", next)).toEqual(["NotIssued", next])
}

/** Some units, one of them claimed; in half of the cases the service has been released. */
const anyStart: fc.Arbitrary<Step[]> = fc
  .tuple(fc.array(anyChip, { minLength: 3, maxLength: 7 }), anyWallet, fc.boolean(), fc.boolean())
  .map(([chips, { address }, ended, asCode]) => [
    issueNext([chips, undefined, asCode]),
    claim([undefined, 1, address]),
    ...(ended ? [release] : []),
  ])

/** The kinds of work that a key does on one collection; the desk combines them. */
const anyWork: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(anyChips, fc.constant(undefined), fc.boolean()).map(issueNext) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.integer({ min: -8, max: 2 }),
        fc.array(fc.oneof(anyChip, fc.constant(0)), { maxLength: 3 }),
        fc.boolean(),
      )
      .map(issueAnywhere),
  },
  { weight: 2, arbitrary: fc.tuple(fc.nat(), fc.integer({ min: 1, max: 9 }), fc.boolean()).map(issueAgain) },
  { weight: 5, arbitrary: fc.tuple(fc.constant(undefined), anySerial, anyAddress).map(claim) },
  {
    weight: 3,
    arbitrary: fc.array(fc.tuple(anySerial, anyAddress), { minLength: 1, maxLength: 5 }).map(claimBatch),
  },
  { weight: 4, arbitrary: fc.tuple(anySerial, fc.boolean(), anyChip, anyChip).map(replaceChip) },
)

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: anyWork },
  { weight: 1, arbitrary: fc.tuple(anyChips, fc.constant(stranger), fc.boolean()).map(issueNext) },
  { weight: 1, arbitrary: fc.tuple(fc.constant(stranger), anySerial, anyAddress).map(claim) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        fc.array(fc.tuple(anyWork, fc.boolean()), { minLength: 1, maxLength: 4 }),
        fc.oneof({ weight: 12, arbitrary: fc.constant(operator.address) }, fc.constant(stranger)),
      )
      .map(runAtDesk),
  },
  { weight: 1, arbitrary: fc.constant(pause) },
  { weight: 3, arbitrary: fc.constant(resume) },
  { weight: 4, arbitrary: fc.tuple(anySerial, anyWallet, fc.boolean()).map(claimWithAuthorization) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(anySerial, anyWallet, anyAddress, fc.constantFrom(0n, 0n, 0n, 0n, -1n))
      .map(transferWithAuthorization),
  },
  { weight: 4, arbitrary: fc.tuple(anyWallet, anyAddress, anyAddress, anySerial).map(transferFrom) },
  { weight: 2, arbitrary: fc.tuple(anySerial, anyAddress).map(transferByOwner) },
  { weight: 2, arbitrary: fc.tuple(anySerial, anyWallet).map(approveByOwner) },
  { weight: 2, arbitrary: fc.tuple(anyWallet, anyWallet, fc.boolean()).map(approveForAll) },
  { weight: 1, arbitrary: fc.constant(release) },
)

function issueNext([chips, from, asCode]: [number[], Address | undefined, boolean]): Step {
  return (model) => {
    const first = model.tokens.length + 1
    return issue(model, from ?? operator.address, { first, chips, asCode })
  }
}

function issueAnywhere([offset, chips, asCode]: [number, number[], boolean]): Step {
  return (model) => {
    const first = Math.max(0, model.tokens.length + 1 + offset)
    return issue(model, operator.address, { first, chips, asCode })
  }
}

/** Repeats all or part of an issuance, with any batch boundaries. */
function issueAgain([start, length, asCode]: [number, number, boolean]): Step {
  return (model) => {
    const first = model.tokens.length === 0 ? 1 : 1 + (start % model.tokens.length)
    const issuedChips = model.tokens.slice(first - 1, first - 1 + length).map(({ issuedChip }) => issuedChip)
    return issue(model, operator.address, { first, chips: issuedChips, asCode })
  }
}

function issue(
  model: Model,
  from: Address,
  { first, chips, asCode }: { first: number; chips: readonly number[]; asCode: boolean },
): Call {
  const next = model.tokens.length + 1
  const args = [first, packed(chips), asCode]
  const call = (outcome: Outcome) => ({ from, functionName: "issue", args, outcome })
  const refused = (...refusal: Event) => call({ refusal })
  if (!mayWork(model, from)) return refused("NotAllowed", from, roles.issue)
  if (chips.length === 0) return refused("InvalidBatchSize", 0n, 250n)
  if (first > next) return refused("SerialGap", BigInt(first), BigInt(next))
  if (first === 0) return refused("NotIssued", 0n)
  if (first < next) {
    for (const [index, chip] of chips.entries()) {
      const issuedChip = model.tokens[first - 1 + index]?.issuedChip ?? 0
      if (issuedChip !== chip || chip === 0) {
        return refused("IssuedDifferently", BigInt(first + index), issuedChip, chip)
      }
    }
    return call({ events: [] })
  }
  const zero = chips.indexOf(0)
  if (zero !== -1) return refused("InvalidChip", BigInt(first + zero))
  for (const chip of chips) {
    model.tokens.push({
      ...{ issuedChip: chip, chip, owner: null, nonce: 0n },
      ...{ moved: false, approved: zeroAddress },
    })
  }
  const transfers = chips.map(
    (_, index): Event => ["Transfer", zeroAddress, model.collection, BigInt(first + index)],
  )
  return call({ events: [...transfers, ["Issued", BigInt(first), packed(chips)]] })
}

function claim([sender, serial, to]: [Address | undefined, number, Address | "collection"]): Step {
  return (model) => {
    const [from, recipient] = [sender ?? operator.address, addressIn(model, to)]
    const call = (outcome: Outcome) => ({ from, functionName: "claim", args: [serial, recipient], outcome })
    if (!mayWork(model, from)) return call({ refusal: ["NotAllowed", from, roles.claim] })
    if (!isRecipient(model, recipient)) return call({ refusal: ["InvalidRecipient", recipient] })
    const token = model.tokens[serial - 1]
    if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
    if (token.owner === null) return call({ events: [move(model, serial, token, recipient)] })
    if (token.owner === recipient && !token.moved) return call({ events: [] })
    return call({ refusal: ["AlreadyClaimed", BigInt(serial), token.owner] })
  }
}

function claimBatch(entries: [number, Address | "collection"][]): Step {
  return (model) => {
    const from = operator.address
    const recipients = entries.map(([, to]) => addressIn(model, to))
    const args = [entries.map(([serial]) => serial), recipients]
    const call = (outcome: Outcome) => ({ from, functionName: "claimBatch", args, outcome })
    if (!mayWork(model, from)) return call({ refusal: ["NotAllowed", from, roles.claimBatch] })
    const events = entries.flatMap(([serial, to]): Event[] => {
      const recipient = addressIn(model, to)
      const token = model.tokens[serial - 1]
      if (token?.owner === recipient && !token.moved) return []
      if (token?.owner === null && isRecipient(model, recipient))
        return [move(model, serial, token, recipient)]
      return [["ClaimSkipped", BigInt(serial), recipient]]
    })
    return call({ events })
  }
}

function claimWithAuthorization([serial, wallet, genuine]: [number, typeof admin, boolean]): Step {
  return async (model) => {
    const recipient = wallet.address
    const token = model.tokens[serial - 1]
    const nonce = token?.nonce ?? 0n
    const message = { serial: BigInt(serial), recipient, nonce, deadline }
    const typedData = authorization(model.collection, "Claim", message)
    const signature = await (genuine ? authorizer : wallet).signTypedData(typedData)
    const args = [serial, recipient, deadline, signature]
    const call = (outcome: Outcome) => ({
      from: recipient,
      functionName: "claimWithAuthorization",
      args,
      outcome,
    })
    if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
    if (token.owner !== null) return call({ refusal: ["AlreadyClaimed", BigInt(serial), token.owner] })
    if (model.rules.paused) return call({ refusal: ["AuthorizationsPaused"] })
    if (!genuine) return call({ refusal: ["InvalidAuthorization", BigInt(serial), nonce] })
    return call({ events: [used(serial, typedData), move(model, serial, token, recipient)] })
  }
}

/** Usually sent by the owner, sometimes by another account, and sometimes with an authorization of an earlier nonce. */
function transferWithAuthorization([serial, other, to, staleness]: [
  number,
  typeof admin,
  Address | "collection",
  bigint,
]): Step {
  return async (model) => {
    const token = model.tokens[serial - 1]
    const from = serial % 4 === 0 ? other.address : (token?.owner ?? other.address)
    const recipient = addressIn(model, to)
    const nonce = (token?.nonce ?? 1n) + staleness
    const message = { serial: BigInt(serial), from, to: recipient, nonce: nonce < 0n ? 0n : nonce, deadline }
    const typedData = authorization(model.collection, "Transfer", message)
    const args = [serial, recipient, deadline, await authorizer.signTypedData(typedData)]
    const call = (outcome: Outcome) => ({ from, functionName: "transferWithAuthorization", args, outcome })
    if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
    if (token.owner !== from) {
      return call({ refusal: ["NotOwner", from, BigInt(serial), token.owner ?? model.collection] })
    }
    if (!isRecipient(model, recipient)) return call({ refusal: ["InvalidRecipient", recipient] })
    if (model.rules.paused) return call({ refusal: ["AuthorizationsPaused"] })
    if (staleness !== 0n) return call({ refusal: ["InvalidAuthorization", BigInt(serial), token.nonce] })
    return call({ events: [used(serial, typedData), move(model, serial, token, recipient)] })
  }
}

function replaceChip([serial, informed, guess, chip]: [number, boolean, number, number]): Step {
  return (model) => {
    const token = model.tokens[serial - 1]
    const previous = informed ? (token?.chip ?? guess) : guess
    const from = operator.address
    const args = [serial, previous, chip]
    const call = (outcome: Outcome) => ({ from, functionName: "replaceChip", args, outcome })
    if (!mayWork(model, from)) return call({ refusal: ["NotAllowed", from, roles.replaceChip] })
    if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
    if (token.chip === chip) return call({ events: [] })
    if (token.chip !== previous)
      return call({ refusal: ["ChipMismatch", BigInt(serial), token.chip, previous] })
    if (token.owner !== null) return call({ refusal: ["ChipLocked", BigInt(serial)] })
    token.chip = chip
    token.nonce += 1n
    const events: Event[] = [
      ["ChipReplaced", BigInt(serial), previous, chip],
      ["MetadataUpdate", BigInt(serial)],
    ]
    return call({ events })
  }
}

function transferByOwner([serial, to]: [number, Address | "collection"]): Step {
  return (model) => {
    const owner = model.tokens[serial - 1]?.owner ?? admin.address
    return plainTransfer(model, owner, owner, addressIn(model, to), serial)
  }
}

function transferFrom([sender, from, to, serial]: [
  typeof admin,
  Address | "collection",
  Address | "collection",
  number,
]): Step {
  return (model) => plainTransfer(model, sender.address, addressIn(model, from), addressIn(model, to), serial)
}

function plainTransfer(model: Model, sender: Address, from: Address, to: Address, serial: number): Call {
  const call = (outcome: Outcome) => ({
    from: sender,
    functionName: "transferFrom",
    args: [from, to, serial],
    outcome,
  })
  if (!model.rules.released) return call({ refusal: ["TransfersLocked"] })
  const token = model.tokens[serial - 1]
  if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
  const owner = token.owner ?? model.collection
  if (from !== owner) return call({ refusal: ["NotOwner", from, BigInt(serial), owner] })
  if (!isRecipient(model, to)) return call({ refusal: ["InvalidRecipient", to] })
  if (sender !== owner && sender !== token.approved && !model.approvedForAll.has(`${owner} ${sender}`)) {
    return call({ refusal: ["NotApproved", sender, BigInt(serial)] })
  }
  return call({ events: [move(model, serial, token, to)] })
}

function approveByOwner([serial, to]: [number, typeof admin]): Step {
  return (model) => {
    const token = model.tokens[serial - 1]
    const from = token?.owner ?? admin.address
    const call = (outcome: Outcome) => ({
      from,
      functionName: "approve",
      args: [to.address, serial],
      outcome,
    })
    if (!model.rules.released) return call({ refusal: ["TransfersLocked"] })
    if (!token) return call({ refusal: ["NotIssued", BigInt(serial)] })
    if (token.owner === null) return call({ refusal: ["NotApproved", from, BigInt(serial)] })
    token.approved = to.address
    return call({ events: [["Approval", from, to.address, BigInt(serial)]] })
  }
}

function approveForAll([{ address: from }, { address: to }, approved]: [
  typeof admin,
  typeof admin,
  boolean,
]): Step {
  return (model) => {
    const call = (outcome: Outcome) => ({
      from,
      functionName: "setApprovalForAll",
      args: [to, approved],
      outcome,
    })
    if (!model.rules.released) return call({ refusal: ["TransfersLocked"] })
    if (approved) model.approvedForAll.add(`${from} ${to}`)
    else model.approvedForAll.delete(`${from} ${to}`)
    return call({ events: [["ApprovalForAll", from, to, approved]] })
  }
}

/** Work for both collections in one transaction: rejected calls are skipped, and if all are, it reverts. */
function runAtDesk([works, from]: [[Step, boolean][], Address]): Step {
  return async (model) => {
    // The desk may do what the operator may. A caller without a role changes nothing, whatever it requests.
    const isAllowed = mayWork(model, from)
    const asked = isAllowed ? model : structuredClone(model)
    const made: { to: Address; call: Call }[] = []
    for (const [work, isBeside] of works) {
      const at = (isBeside && asked.beside) || asked
      made.push({ to: at.collection, call: await work(at) })
    }
    const args = made.map(({ to, call: { functionName, args } }) => ({
      to,
      data: encoded(functionName, args),
    }))
    const call = (outcome: Outcome) => ({ from, functionName: "run", args: [args], outcome })
    const [first] = made
    if (!isAllowed) return call({ refusal: ["NotAllowed", from, roles[first?.call.functionName ?? ""]] })
    const skipped = made.flatMap(({ to, call: { outcome } }, index): Event[] =>
      "refusal" in outcome ? [["CallSkipped", BigInt(index), to, encodedError(outcome.refusal)]] : [],
    )
    const last = made.at(-1)?.call.outcome
    if (last && "refusal" in last && skipped.length === made.length) return call(last)
    return call({ events: skipped })
  }
}

/** The role bits that each call requires. */
const roles: Record<string, bigint> = { issue: 1n, claim: 2n, claimBatch: 2n, replaceChip: 4n }

function encoded(functionName: string, args: readonly unknown[]): Hex {
  return encodeFunctionData({ abi: collectionAbi as Abi, functionName, args })
}

function encodedError([errorName, ...args]: Event): Hex {
  return encodeErrorResult({ abi: collectionAbi as Abi, errorName, args })
}

function pause({ rules }: Model): Call {
  rules.paused = true
  const { address: from } = guardian
  return { from, functionName: "pause", args: [], outcome: { events: [["Paused", from]] } }
}

function resume({ rules }: Model): Call {
  rules.paused = false
  return { from: admin.address, functionName: "resume", args: [], outcome: { events: [["Resumed"]] } }
}

async function release({ rules }: Model): Promise<Call> {
  if (!rules.released) await releaseService(service)
  rules.released = true
  // The release has taken effect, so it can no longer be cancelled.
  const at = await service.factory.read("releaseAt")
  return {
    from: admin.address,
    functionName: "cancelRelease",
    args: [],
    outcome: { refusal: ["AlreadyReleased", at] },
  }
}

function move(model: Model, serial: number, token: Token, to: Address): Event {
  const from = token.owner ?? model.collection
  const moved = token.owner !== null
  Object.assign(token, { owner: to, nonce: token.nonce + 1n, moved, approved: zeroAddress })
  return ["Transfer", from, to, BigInt(serial)]
}

function used(serial: number, typedData: TypedDataDefinition): Event {
  return ["AuthorizationUsed", BigInt(serial), hashTypedData(typedData)]
}

function mayWork({ rules }: Model, from: Address): boolean {
  return from === operator.address && !rules.paused
}

function addressIn(model: Model, address: Address | "collection"): Address {
  return address === "collection" ? model.collection : address
}

function isRecipient(model: Model, address: Address): boolean {
  return address !== zeroAddress && address !== model.collection
}
