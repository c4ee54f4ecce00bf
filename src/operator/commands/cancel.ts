import type { ConnectedChain } from "../../engine/chain/chains.ts"
import { hasKeyOf } from "../../engine/chain/signers.ts"
import { inAct } from "../verbs/acts.ts"
import { cancelById } from "../verbs/cancel.ts"
import type { Command } from "./command.ts"

export const cancel: Command = {
  name: "cancel",
  does: "gives up a nonce: its work is sent with another nonce",
  takes: "ID  (of a transaction, or of what it is for)",
  argument: "ID",
  options: {},
  plan:
    ({ argument }) =>
    async ({ context, chains }) => {
      const act = { act: "cancel", subject: argument }
      const { id, chain_id, lane_id, nonce } = await inAct(context, act, cancelById)
      const text = `lane ${lane_id} gives up nonce ${nonce}${lackOf(chains.get(chain_id), lane_id)}: an empty transaction is sent with it, and its work is sent with another nonce once the empty one is mined`
      return { document: { id, lane_id, nonce, done: text }, text }
    },
}

/** What the lane lacks to do it now. */
function lackOf(chain: ConnectedChain | undefined, laneId: string): string {
  if (!chain) return " once its chain is in CHAINS again"
  return hasKeyOf(chain, laneId) ? "" : " once its key is in SIGNER_KEYS again"
}
