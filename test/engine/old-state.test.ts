import { expect, test } from "bun:test"
import { RpcRequestError } from "viem"
import { unlessForgotten } from "../../src/engine/chain/old-state.ts"
import { ChainUnreachable } from "../../src/engine/chain/rpc.ts"

const refusing = (message: string) => async () => {
  throw new RpcRequestError({ body: {}, url: "", error: { code: -32_000, message } })
}

test.each([
  ["geth", "missing trie node 59030c2a (path ) state 0x59030c2a is not available"],
  ["geth by paths", "state 0x669c5301 is not available"],
  ["bor", "required historical state unavailable (reexec=128)"],
  ["op-geth", "historical state not available in path scheme yet"],
  ["Nethermind", "No state available for block 15 (0x3f9e02...39117e)"],
  ["Besu", "World state unavailable"],
  ["reth", "State at block #11052984 is pruned"],
  ["opBNB", "state is not available"],
  ["Erigon 3", "seekInFiles(invIndex=unknown index,txNum=12) but data before txNum=99 not available"],
  ["Moonbeam", "State already discarded for 0x59030c2a"],
  ["Chainstack", "Access to archival, debug, or trace data is not included in your current plan"],
  [
    "OpenEthereum",
    "This request is not supported because your node is running with state pruning. Run with --pruning=archive.",
  ],
])("a pruned state is recognized in the words of %s", async (_node, words) => {
  expect(await unlessForgotten(refusing(words))).toBeNull()
})

test.each(["header not found", "block not found", "Unknown block", "backend is syncing", "Internal error"])(
  "a state is requested again if a node says “%s”",
  async (words) => {
    await expect(unlessForgotten(refusing(words))).rejects.toThrow(ChainUnreachable)
  },
)
