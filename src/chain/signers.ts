import type { Address, Hex, LocalAccount } from "viem"
import { privateKeyToAccount } from "viem/accounts"

/** A key of the service on one chain: the one sender of its lane. */
export type Signer = {
  lane_id: string
  address: Address
  purpose: "issuance" | "ownership" | "all"
  account: LocalAccount
}

/** One key serves every purpose; of several, the first claims and replaces chips, the others deploy and issue. */
export function createSigners(chainId: number, keys: Hex[]): Signer[] {
  return keys.map((key, index) => {
    const account = privateKeyToAccount(key)
    return {
      lane_id: `${chainId}:${account.address}`,
      address: account.address,
      purpose: keys.length === 1 ? "all" : index === 0 ? "ownership" : "issuance",
      account,
    }
  })
}
