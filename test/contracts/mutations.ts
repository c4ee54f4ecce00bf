import { join } from "node:path"
import { type BrokenRule, breakRule, copyProject, removeCopy } from "../harness/project-copy.ts"

/** A contract rule that is broken on purpose, and the test file that must detect it. */
type Mutation = BrokenRule & { noticed_by: string }

const collection = "contracts/ServiceCollection.sol"
const ledger = "contracts/ChipLedger.sol"
const desk = "contracts/ServiceDesk.sol"

export const mutations: Mutation[] = [
  {
    name: "a replacement leaves the nonce alone",
    file: collection,
    replace: [
      [
        "((token & NONCES) + NONCE_ONE) | uint256(chip) << CHIP_SHIFT",
        "(token & NONCES) | uint256(chip) << CHIP_SHIFT",
      ],
    ],
    noticed_by: "authorizers.test.ts",
  },
  {
    name: "a transfer leaves no trace",
    file: collection,
    replace: [["(kept + NONCE_ONE) | TRANSFERRED | uint160(to)", "(kept + NONCE_ONE) | uint160(to)"]],
    noticed_by: "property.test.ts",
  },
  {
    name: "a store is read one chip too early",
    file: ledger,
    replace: [["CHIP_BYTES * (serial - first + 1)", "CHIP_BYTES * (serial - first)"]],
    noticed_by: "stores.test.ts",
  },
  {
    name: "the 128th store has the short form of an address",
    file: ledger,
    replace: [["if (number < 0x80) list", "if (number <= 0x80) list"]],
    noticed_by: "stores.test.ts",
  },
  {
    name: "the 256th store has the form of one byte",
    file: ledger,
    replace: [["else if (number < 0x100) list", "else if (number <= 0x100) list"]],
    noticed_by: "stores.test.ts",
  },
  {
    name: "the authorizer before holds for ever",
    file: "contracts/Authorizations.sol",
    replace: [["block.timestamp > previous.until || ", ""]],
    noticed_by: "authorizers.test.ts",
  },
  {
    name: "the authorizer before ends a second early",
    file: "contracts/Authorizations.sol",
    replace: [["block.timestamp > previous.until", "block.timestamp >= previous.until"]],
    noticed_by: "authorizers.test.ts",
  },
  {
    name: "the desk takes a want of gas for a refusal",
    file: desk,
    replace: [["if (size == 0) revert CallRanOut(index);", "index;"]],
    noticed_by: "desk.test.ts",
  },
  {
    name: "a store that could not be made is a refusal",
    file: ledger,
    replace: [
      [
        "if iszero(create(0, made, add(length, 10))) { revert(0, 0) }",
        "if iszero(create(0, made, add(length, 10))) { revert(0, 32) }",
      ],
    ],
    noticed_by: "desk.test.ts",
  },
  {
    name: "the desk counts refusals where it should count calls",
    file: desk,
    replace: [["emit CallSkipped(i, each.to", "emit CallSkipped(skipped - 1, each.to"]],
    noticed_by: "property.test.ts",
  },
  {
    name: "authorizations hold while the service is paused",
    file: "contracts/Authorizations.sol",
    replace: [["if (word >> PAUSED_SHIFT != 0) revert AuthorizationsPaused();", ""]],
    noticed_by: "property.test.ts",
  },
  {
    name: "the desk lends its roles to whoever calls",
    file: desk,
    replace: [
      [
        "if (!allows(roles, role)) revert NotAllowed(msg.sender, role);",
        "if (role == 0) revert NotAllowed(msg.sender, roles);",
      ],
    ],
    noticed_by: "desk.test.ts",
  },
  {
    name: "who pays for the transaction claims, not who calls",
    file: collection,
    replace: [
      ["if (msg.sender != recipient) revert NotRecipient", "if (tx.origin != recipient) revert NotRecipient"],
    ],
    noticed_by: "wallets.test.ts",
  },
  {
    name: "an authorizer whose account has code is only asked",
    file: "contracts/Authorizations.sol",
    replace: [
      [
        "if (authorizer == signer) return true;",
        "if (authorizer == signer && authorizer.code.length == 0) return true;",
      ],
    ],
    noticed_by: "wallets.test.ts",
  },
  {
    name: "a receiver is asked before it has the token",
    file: collection,
    replace: [
      [
        "transferFrom(from, to, serial);\n        if (to.code.length == 0) return;",
        "if (to.code.length == 0) return transferFrom(from, to, serial);",
      ],
      ["revert UnsafeRecipient(to);", "revert UnsafeRecipient(to);\n        transferFrom(from, to, serial);"],
    ],
    noticed_by: "wallets.test.ts",
  },
]

/** The tests that fail with the mutated contracts in a copy of the project. */
async function failuresOf(mutation: Mutation): Promise<string[]> {
  const { name, noticed_by } = mutation
  const folder = copyProject()
  try {
    breakRule(folder, mutation)
    const compiled = run(folder, ["contracts/compile.ts"])
    if (compiled.exitCode !== 0) throw new Error(`${name} does not compile:\n${compiled.said}`)
    const { said } = run(folder, ["test", join("test/contracts", noticed_by)])
    if (!/^Ran \d+ tests? /m.test(said)) throw new Error(`${noticed_by} did not run:\n${said.slice(-2_000)}`)
    return said.split("\n").filter((line) => line.startsWith("(fail)"))
  } finally {
    removeCopy(folder)
  }
}

function run(cwd: string, words: string[]): { exitCode: number; said: string } {
  const env = { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1" }
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...words], { cwd, env, stdout: "ignore" })
  return { exitCode, said: stderr.toString() }
}

/** `bun test/contracts/mutations.ts [TEXT]`: breaks every rule whose name contains the text, one after the other. */
if (import.meta.main) {
  let unnoticed = 0
  for (const mutation of mutations.filter(({ name }) => name.includes(process.argv[2] ?? ""))) {
    const [first] = await failuresOf(mutation)
    if (first === undefined) unnoticed += 1
    process.stdout.write(`${mutation.name}: ${first === undefined ? "NOT noticed" : `noticed: ${first}`}\n`)
  }
  process.exit(unnoticed === 0 ? 0 : 1)
}
