import { createWalletClient, type Hex, http, isHex } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { localChain } from "./local-chain.ts"

type TestWallet = {
  wallets: { address: string; private_key: string }[]
  chain: { rpc_url: string }
}

/**
 * Sends `{ from, to, data }` from one of the development wallets and returns the hash. JSON only, so that a page of
 * another origin would need a preflight, which fails.
 */
export async function sendFromTestWallet(
  { wallets, chain }: TestWallet,
  request: Request,
): Promise<Response> {
  if (request.headers.get("content-type") !== "application/json") return refusal(415, "JSON only")
  const { from, to, data } = (await request.json()) as Record<string, unknown>
  const wallet = wallets.find(({ address }) => address.toLowerCase() === String(from).toLowerCase())
  if (!wallet || !isHex(to) || !isHex(data)) return refusal(400, "the test wallet cannot send this")
  const account = privateKeyToAccount(wallet.private_key as Hex)
  const client = createWalletClient({ account, chain: localChain, transport: http(chain.rpc_url) })
  try {
    return Response.json({ hash: await client.sendTransaction({ to, data, value: 0n }) })
  } catch {
    return refusal(422, "the chain rejected the transaction")
  }
}

function refusal(status: number, message: string): Response {
  return Response.json({ message }, { status })
}
