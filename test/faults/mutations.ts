import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A rule broken on purpose: texts of one file replaced, and the scenario that must notice. */
type Mutation = { name: string; file: string; replace: [from: string, to: string][]; noticed_by: string }

export const mutations: Mutation[] = [
  {
    name: "broadcast before storing",
    file: "workers/broadcast.ts",
    replace: [
      ["  const stored = await inLane(", "  await sendRaw(lane, raw)\n  const stored = await inLane("],
    ],
    noticed_by: "nothing",
  },
  {
    name: "a null receipt taken for dropped",
    file: "workers/advance-transactions.ts",
    replace: [
      [
        "  if (!last) return\n",
        "  if (!last) return\n  if (transaction.status === 'sent' && Number(lane.head) - Number(transaction.sent_block) > 1)\n    return await inLane(lane, (turn) => displaceTransaction(turn, lane.lease, transaction, { status: 'final' }))\n",
      ],
    ],
    noticed_by: "only provider five blocks behind",
  },
  {
    name: "no re-send",
    file: "workers/advance-transactions.ts",
    replace: [
      [
        "blocksSince(sentBlock) < resendBlocks",
        "blocksSince(sentBlock) < resendBlocks || sentBlock !== null",
      ],
    ],
    noticed_by: "pool evicts",
  },
  {
    name: "a bump from the estimate only",
    file: "workers/broadcast.ts",
    replace: [
      ["most(raised(last.max_fee_per_gas), now.max_fee_per_gas)", "now.max_fee_per_gas"],
      [
        "most(raised(last.max_priority_fee_per_gas), now.max_priority_fee_per_gas)",
        "now.max_priority_fee_per_gas",
      ],
    ],
    noticed_by: "prices rise",
  },
]

export type Noticed = {
  name: string
  noticed_by: string
  control: string
  mutant: string
  first_fault: string
}

/** Plays the scenario of a mutation in a copy of the tree, whole and broken. */
export async function playMutation(mutation: Mutation): Promise<Noticed> {
  const folder = mkdtempSync(join(tmpdir(), "mutation-"))
  try {
    copyTree(folder)
    const control = await playIn(folder, mutation.noticed_by)
    breakRule(folder, mutation)
    const mutant = await playIn(folder, mutation.noticed_by)
    const { name, noticed_by } = mutation
    const verdict = (faults: string[]) => (faults.length === 0 ? "passes" : "fails")
    const first_fault = mutant[0]?.split("\n")[0] ?? ""
    return { name, noticed_by, control: verdict(control), mutant: verdict(mutant), first_fault }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const root = join(import.meta.dir, "../..")

function copyTree(folder: string): void {
  for (const part of [
    "src",
    "workers",
    "machines",
    "migrations",
    "test/faults",
    "test/child-process.ts",
    "package.json",
    "tsconfig.json",
  ])
    cpSync(join(root, part), join(folder, part), { recursive: true })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
}

function breakRule(folder: string, { name, file, replace }: Mutation): void {
  const path = join(folder, file)
  let text = readFileSync(path, "utf8")
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`${name}: ${file} no longer has ${from}`)
    text = text.replace(from, to)
  }
  writeFileSync(path, text)
}

async function playIn(folder: string, scenario: string): Promise<string[]> {
  const command = [process.execPath, join(folder, "test/faults/chaos.ts"), "--json", "--named", scenario]
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "inherit" })
  const { runs, scenarios } = (await new Response(child.stdout).json()) as {
    runs: number
    scenarios: { faults: string[] }[]
  }
  if (runs !== 1) throw new Error(`${runs} scenarios are named ${scenario}`)
  return scenarios.flatMap(({ faults }) => faults)
}

if (import.meta.main) {
  const outcomes: Noticed[] = []
  for (const mutation of mutations) {
    const outcome = await playMutation(mutation)
    outcomes.push(outcome)
    if (process.argv.includes("--json")) continue
    const { name, noticed_by, control, mutant, first_fault } = outcome
    process.stdout.write(
      `${name}: "${noticed_by}" ${control} unbroken and ${mutant} broken: ${first_fault}\n`,
    )
  }
  if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify(outcomes, null, 2)}\n`)
  const isNoticed = outcomes.every(({ control, mutant }) => control === "passes" && mutant === "fails")
  process.exit(isNoticed ? 0 : 1)
}
