import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, isAddressEqual } from "viem"
import { collectionAbi } from "../../src/engine/chain/contracts.generated.ts"
import { until } from "./asking.ts"
import type { SimulatedChain } from "./chain/chain.ts"
import { answerRpc, wholeView } from "./chain/json-rpc.ts"
import { read } from "./errands.ts"
import { claim, type Person, transfer } from "./people.ts"
import { sleep } from "./scheduler.ts"
import type { Met } from "./somebody.ts"
import { account, firstWallet, hasSucceeded, sendNext, walletAddress, walletOf } from "./wallets.ts"

/** The wallets of a holder who transfers a token: his own, if nobody has claimed the unit, and two others. */
export const walletsOfHolder = 3

/**
 * A holder transfers a token without the service, which may be asked to transfer it to a third wallet at the same time.
 * A unit without an owner is claimed first.
 */
export async function handOn({ person, isOwned }: Met, wallet: number): Promise<void> {
  if (!isOwned && !(await claim(person, { wallet, execution: "service_relay" }))) return
  const token = await tokenOf(person)
  if (token === null) return
  const isTorn = person.chance.happens(0.5)
  const sent = sendByHolder(person, token, wallet + 1)
  await Promise.all(isTorn ? [sent, transfer(person, wallet + 2)] : [sent])
}

type Token = { address: Address; serial: number; owner: Address }

/** According to the service; null if the unit has no owner again. */
async function tokenOf({ unit_id, played, ...errand }: Person): Promise<Token | null> {
  const { collection, ownership } = await read<Unit>(errand, played.key, `/v1/units/${unit_id}`)
  const serial = collection?.token.serial ?? null
  if (serial === null || ownership.owner === null) return null
  return { address: played.address as Address, serial, owner: ownership.owner }
}

type Unit = {
  collection: { token: { serial: number | null } } | null
  ownership: { owner: Address | null }
}

/** Resolves when the chain has it, or the token belongs to somebody else. */
async function sendByHolder(person: Person, token: Token, friend: number): Promise<void> {
  const { chain, played, unit_id } = person
  const { owner, serial, address: to } = token
  const recipient = walletAddress(friend)
  played.moves.push({ unit_id, recipient })
  const args = [owner, recipient, BigInt(serial)] as const
  const call = { to, data: encodeFunctionData({ abi: collectionAbi, functionName: "transferFrom", args }) }
  const sent = new Map<number, Hex>()
  const isToDo = async () => !hasSucceeded(chain, sent) && (await isOwner(chain, token))
  const holder = account(firstWallet + walletOf(owner))
  void keepDone(person, isToDo, () => sendNext(chain, holder, call, sent))
  await until(person, async () => !(await isToDo()))
}

/** The holder's wallet repeats it whenever it is undone, as after a reorganization. */
async function keepDone(
  { simulation }: Person,
  isToDo: () => Promise<boolean>,
  act: () => Promise<void>,
): Promise<void> {
  for (;;) {
    if (await isToDo()) await act()
    await sleep(simulation, pauseMilliseconds)
  }
}

const pauseMilliseconds = 2_000

/** Whether the holder owns the token on the chain, which may have lost it. */
async function isOwner(chain: SimulatedChain, { address: to, serial, owner }: Token): Promise<boolean> {
  const args = [BigInt(serial)] as const
  const data = encodeFunctionData({ abi: collectionAbi, functionName: "ownerOf", args })
  const answer = await answerRpc(chain, wholeView(chain), "eth_call", [{ to, data }, "latest"]).catch(
    () => "0x",
  )
  if (answer === "0x") return false
  const now = decodeFunctionResult({ abi: collectionAbi, functionName: "ownerOf", data: answer as Hex })
  return isAddressEqual(now, owner)
}
