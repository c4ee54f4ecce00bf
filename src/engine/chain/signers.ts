import type { Address, LocalAccount } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import type { SignerKey } from "../../platform/key-settings.ts"
import { StartError } from "../../platform/start-error.ts"
import { awsKeyService } from "./key-services/aws-key-service.ts"
import { gcpKeyService } from "./key-services/gcp-key-service.ts"
import { type KeyService, keyServiceAccount } from "./key-services/key-service-account.ts"
import { type Purpose, purposeAt } from "./roles.ts"

/** A key of the service on one chain: the only sender in its lane. */
export type Signer = {
  lane_id: string
  address: Address
  purpose: Purpose
  /** Null if the service no longer has the key. */
  account: LocalAccount | null
}

/** Returns the signers of a chain, each with its purpose. */
export function createSigners(chainId: number, accounts: LocalAccount[]): Signer[] {
  return accounts.map((account, index) => ({
    lane_id: `${chainId}:${account.address}`,
    address: account.address,
    purpose: purposeAt(index, accounts.length),
    account,
  }))
}

/** Returns whether `SIGNER_KEYS` has the key of a lane. */
export function hasKeyOf({ signers }: { signers: readonly Signer[] }, laneId: string): boolean {
  return signers.some(({ lane_id }) => lane_id === laneId)
}

/**
 * Opens the accounts of `SIGNER_KEYS`, in order. A cloud client is loaded only if a key needs it, and asked once for
 * the key's address. Throws `StartError`, whose message never contains a key.
 */
export async function openSignerAccounts(keys: SignerKey[]): Promise<LocalAccount[]> {
  const accounts = await Promise.all(keys.map((key, index) => openAccount(key, index + 1)))
  const addresses = accounts.map(({ address }) => address)
  const again = addresses.findIndex((address, index) => addresses.indexOf(address) < index)
  if (again !== -1)
    throw new StartError(
      `SIGNER_KEYS: key number ${again + 1} is a duplicate of an earlier one, ${addresses[again]}; every lane needs its own key`,
    )
  return accounts
}

async function openAccount(key: SignerKey, number: number): Promise<LocalAccount> {
  if (isPrivateKey(key)) return privateKeyToAccount(key)
  try {
    return await keyServiceAccount(await connect(key))
  } catch (error) {
    const said = (error as Error).message.split("\n")[0]
    throw new StartError(
      `SIGNER_KEYS: key number ${number} cannot be used: ${said}; check its name, and that this machine may use it`,
    )
  }
}

function connect(key: Exclude<SignerKey, `0x${string}`>): Promise<KeyService> {
  const name = key.slice(key.indexOf(":") + 1)
  return key.startsWith("aws-kms:") ? awsKeyService(name) : gcpKeyService(name)
}

function isPrivateKey(key: SignerKey): key is `0x${string}` {
  return key.startsWith("0x")
}
