import { decodeFunctionData, encodeFunctionData, getAbiItem, type Hex } from "viem"
import { collectionAbi } from "./contracts.generated.ts"
import { firstCollectionAbi } from "./first-contracts.generated.ts"
import type { Generation } from "./generations.ts"

/** What a call of `issue` issues: chips, by id, at consecutive serials from `first`. */
type Issuance = { first: number; chip_ids: readonly string[] }

/**
 * Encodes the call for a collection of either generation. `asCode` only affects gas; the first
 * generation has no such choice.
 */
export function encodeIssue(
  generation: Generation,
  { first, chip_ids }: Issuance,
  { asCode }: { asCode: boolean },
): Hex {
  if (generation === 1)
    return encodeFunctionData({
      abi: firstCollectionAbi,
      functionName: "issue",
      args: [BigInt(first), chip_ids.map(chipNumber)],
    })
  return encodeFunctionData({
    abi: collectionAbi,
    functionName: "issue",
    args: [BigInt(first), packedChips(chip_ids), asCode],
  })
}

/** Decodes what `encodeIssue` encodes, for either generation. Throws on any other call. */
export function decodeIssue(data: Hex): Issuance {
  const [first, chips] = decodeFunctionData({ abi: issueAbi, data }).args
  const chip_ids =
    typeof chips === "string"
      ? (chips.slice(2).toUpperCase().match(/.{10}/g) ?? [])
      : chips.map((chip) => chipIdOf(chip))
  return { first: Number(first), chip_ids }
}

const issueAbi = [
  getAbiItem({ abi: collectionAbi, name: "issue" }),
  getAbiItem({ abi: firstCollectionAbi, name: "issue" }),
]

/** Returns a chip's id from the number that contracts store. */
export function chipIdOf(chip: number): string {
  return chip.toString(16).toUpperCase().padStart(10, "0")
}

/** Returns the number that contracts store for a chip. */
export function chipNumber(chipId: string): number {
  return Number.parseInt(chipId, 16)
}

/** Packs chips as in the call and in the event `Issued`: five bytes each, in order. */
export function packedChips(chipIds: readonly string[]): Hex {
  return `0x${chipIds.join("").toLowerCase()}`
}
