import { join } from "node:path"
import { parseArgs } from "node:util"
import { type BrokenRule, breakRule, copyProject, removeCopy, root } from "../harness/project-copy.ts"

const broadcast = "src/engine/lanes/broadcast.ts"
const look = "src/engine/lanes/look.ts"
const pushOn = "src/engine/lanes/push-on.ts"

export const mutations: BrokenRule[] = [
  {
    name: "broadcast before storing",
    file: broadcast,
    replace: [
      [
        "  const stored = await inLane(",
        "  await lane.chain.providers.send(raw)\n  const stored = await inLane(",
      ],
    ],
  },
  {
    name: "a bump from the estimate only",
    file: "src/engine/lanes/next-move.ts",
    replace: [["replacementFees(feesOf(attempt), gas, market, within)", "firstFees(gas, market, within)"]],
  },
  {
    name: "fees without a cap",
    file: "src/engine/chain/fees.ts",
    replace: [
      ["if (leastFee > highest || leastTip > 2n * limits.max_priority_fee_per_gas) return null", ""],
      [
        "const max_fee_per_gas = least(most(leastFee, wanted), highest)",
        "const max_fee_per_gas = most(leastFee, wanted)",
      ],
      ["const max_fee_per_gas = least(wanted, ceiling(gas, limits))", "const max_fee_per_gas = wanted"],
    ],
  },
  {
    name: "no re-send",
    file: pushOn,
    replace: [["blocksSince(transaction.sent_block) >= resendBlocks", "transaction.sent_block === null"]],
  },
  {
    name: "a null receipt taken for dropped",
    file: pushOn,
    replace: [
      [
        "  if (transaction.attempts.length === 0) return nothing\n",
        "  if (transaction.attempts.length === 0) return nothing\n  if (transaction.status === 'sent' && Number(lane.head) - Number(transaction.sent_block) > 1) {\n    await inLane(lane, (turn) => displaceTransaction(turn, lane.lease, transaction, { status: 'final' }))\n    return nothing\n  }\n",
      ],
      ["import { isGivenUp, ", "import { displaceTransaction, isGivenUp, "],
    ],
  },
  {
    name: "confirmed too early",
    file: "src/engine/lanes/give-results.ts",
    replace: [["if (isOpen && depth < confirmation_depth) continue", ""]],
  },
  {
    name: "lost blocks not looked for",
    file: look,
    replace: [
      ["if (!places[index]) lost.push(await findTransaction(read, id))", "if (!places[index]) continue"],
    ],
  },
  {
    name: "every block taken for canonical",
    file: look,
    replace: [["return hash === blockHash", "return hash !== null"]],
  },
  {
    name: "what has a nonce and no bytes forgotten",
    file: pushOn,
    replace: [["if (mined && !isFirst) continue", "if (mined || isFirst) continue"]],
  },
  {
    name: "lease never refused",
    file: "src/engine/lanes/leases.ts",
    replace: [
      [" && !isOver(lane, at) && !isSilent(lane, rival, lease_milliseconds)", " && lane.id === owner"],
      ["    eq(lanes.lease_owner, lease.owner),\n    eq(lanes.lease_epoch, lease.epoch),\n", ""],
    ],
  },
  {
    name: "a nonce given out again",
    file: "src/engine/lanes/leases.ts",
    replace: [
      ["return lane.next_nonce - 1", "return lane.next_nonce - 1 - Number(lane.next_nonce % 4 === 3)"],
    ],
  },
  {
    name: "a stolen nonce not noticed",
    file: "src/engine/lanes/nonce-use.ts",
    replace: [["if (counts.length < voices() || ", "if (true || "]],
  },
  {
    name: "effects taken newest first",
    file: "src/engine/lanes/turns.ts",
    replace: [
      [
        ".toSorted((one, other) => (one.id < other.id ? -1 : 1))",
        ".toSorted((one, other) => (one.id < other.id ? 1 : -1))",
      ],
    ],
  },
  {
    name: "journal entries dropped",
    file: "src/engine/actors/runtime.ts",
    replace: [["if (!journalled) return", "if (!journalled || actor.version === 2) return"]],
  },
  {
    name: "a session that is over taken",
    file: "src/resources/session-tokens/service.ts",
    replace: [["at < expires_at", "at.getTime() > 0"]],
  },
  {
    name: "work that failed not rolled back",
    file: "src/db/sqlite.ts",
    replace: [['writer.exec("rollback to work")', ""]],
  },
  {
    name: "a reverted issuance final at once",
    file: "workers/jobs/issue-units.ts",
    replace: [
      ["issued === null && (await canSucceedLater(chain, queries, mined.transaction, batch))", "false"],
    ],
  },
  {
    name: "serials of a reverted batch not given back",
    file: "workers/jobs/issue-units.ts",
    replace: [["gt(collections.next_serial, first)", "gt(collections.next_serial, first + 1_000_000)"]],
  },
  {
    name: "a claim believed without its event",
    file: "workers/jobs/relay-claims.ts",
    replace: [["if (here) return", "if (receipt.status === 'success' || here) return"]],
  },
  {
    name: "a claim in custody final at once",
    file: "workers/jobs/relay-claims.ts",
    replace: [['if (then === null || then.owner === null) return "again"', ""]],
  },
  {
    name: "a claim locks whichever chip the chain has",
    file: "workers/jobs/relay-claims.ts",
    replace: [["const rebound = await reboundClaims(chain, next)", "const rebound: Claim[] = []"]],
  },
  {
    name: "a chip replacement final at once",
    file: "workers/jobs/replace-chips.ts",
    replace: [
      ['effect.status === "done" || effect.attempts < maxPlans', "effect.attempts > maxPlans"],
      ["if (await followsOpenSwap(queries, effect)) return", "if (effect.attempts > maxPlans) return"],
    ],
  },
  {
    name: "a chip replacement that forgets the one before it",
    file: "workers/jobs/replace-chips.ts",
    replace: [["if (await followsOpenSwap(queries, effect)) return", "if (false) return"]],
  },
  {
    name: "a chip replacement believed without its event",
    file: "workers/jobs/replace-chips.ts",
    replace: [["if (isSwappedIn(", "if (receipt.status === 'success' || isSwappedIn("]],
  },
  {
    name: "what holders do by themselves is not followed",
    file: "workers/watches/follow-owners.ts",
    replace: [
      [
        "    if (unit) await noteSeenOwner(turn, unit, seen)\n    else",
        "    if (unit) await (unit.claimed || noteSeenOwner(turn, unit, seen))\n    else",
      ],
    ],
  },
  {
    name: "idempotency keys not heeded",
    file: "src/http/idempotency.ts",
    replace: [
      ["if (header === null) return null", "if (header === null || header.startsWith('key-')) return null"],
    ],
  },
  {
    name: "answered before the commit",
    file: "src/db/sqlite.ts",
    replace: [
      ['      writer.exec("commit")\n', ""],
      [
        "settleWork(work, ends[index] as Ended<unknown>, unavailable)\n",
        'settleWork(work, ends[index] as Ended<unknown>, unavailable)\n      writer.exec("commit")\n',
      ],
    ],
  },
  {
    name: "an event that fails forgotten",
    file: "workers/webhooks/outcomes.ts",
    replace: [["if (error !== null) return void (await noted)", ""]],
  },
  {
    name: "a place in the feed left out",
    file: "src/engine/events/numbering.ts",
    replace: [["const until = after + numbered.length", "const until = after + numbered.length + 1"]],
  },
  {
    name: "a credential in the log",
    file: "src/api/visits.ts",
    replace: [
      ['request.headers.get("traceparent")', 'request.headers.get("authorization")'],
      [
        "      request_id,\n      organization_id",
        "      request_id: request_id + traceparent,\n      organization_id",
      ],
    ],
  },
]

type Noticed = { name: string; seed: string | null; histories: number; found: string }

/** Runs new histories in a copy of the tree whose rule is broken, until one fails that passes with the rule. */
async function playMutation(mutation: BrokenRule, firstSeed: bigint, most: number): Promise<Noticed> {
  const folder = copyProject()
  try {
    breakRule(folder, mutation)
    const { name } = mutation
    for (let histories = 0; histories < most; ) {
      const seed = firstSeed + BigInt(histories)
      const outcomes = await playFrom(folder, seed, most - histories)
      histories += outcomes.length
      const broken = outcomes.findLast(({ found }) => found.length > 0)
      if (!broken) break
      const [whole] = await playFrom(root, BigInt(broken.seed), 1)
      const found = broken.found[0]?.split("\n")[0] ?? ""
      if (whole?.found.length === 0) return { name, seed: broken.seed, histories, found }
      process.stderr.write(`${broken.seed} fails without any broken rule\n`)
    }
    return { name, seed: null, histories: most, found: "" }
  } finally {
    removeCopy(folder)
  }
}

type Played = { seed: string; found: string[] }

/** The outcomes of histories from a seed on, up to the first that fails. */
async function playFrom(folder: string, seed: bigint, count: number): Promise<Played[]> {
  const asked = ["--json", "--seed", String(seed), "--count", String(count)]
  const command = [process.execPath, join(folder, "test/simulation/simulate.ts"), ...asked]
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "inherit" })
  const lines = (await new Response(child.stdout).text()).trim().split("\n")
  return lines.map((line) => JSON.parse(line) as Played).filter(({ found }) => found !== undefined)
}

/** `bun test/simulation/mutations.ts [--only TEXT] [--seed S] [--most N] [--json]` */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: "" },
      seed: { type: "string", default: String(Date.now()) },
      most: { type: "string", default: "50" },
      json: { type: "boolean", default: false },
    },
  })
  let missed = 0
  for (const mutation of mutations.filter(({ name }) => name.includes(values.only))) {
    const noticed = await playMutation(mutation, BigInt(values.seed), Number(values.most))
    if (noticed.seed === null) missed += 1
    const verdict = noticed.seed === null ? "NOT noticed" : `noticed by seed ${noticed.seed}`
    process.stdout.write(
      values.json
        ? `${JSON.stringify(noticed)}\n`
        : `${noticed.name}: ${verdict} after ${noticed.histories} histories: ${noticed.found.slice(0, 140)}\n`,
    )
  }
  process.exit(missed === 0 ? 0 : 1)
}
