import { chipKeysFrom, keySourceOf } from "../src/engine/sun/key-schemes.ts"
import { verifySun } from "../src/engine/sun/message.ts"
import { emitSun } from "../src/engine/sun/virtual-chip.ts"
import { judgeMessages } from "../test/harness/sun-messages.ts"
import { report } from "./report.ts"

/**
 * What a tap costs in cryptography, in microseconds of one core: keys derived from their master, `e` opened, `c` checked.
 * Then a million random messages, judged by the service's verifier and by the tests' own from the data sheet.
 */
const rounds = 200_000
const budgetMicroseconds = 10
const messages = 1_000_000
const seed = 20_260_424

const uid = Buffer.from("04112233445566", "hex")
const chip_id = "04A0B1C2D3"
const master = Buffer.from("00112233445566778899AABBCCDDEEFF", "hex")

const schemes = (["an10922", "sdm-backend", "boltcard"] as const).map((scheme) => {
  const source = keySourceOf(scheme, master, 1)
  const message = emitSun({ uid, ...chipKeysFrom(source, { chip_id, uid }) }, 66_051)
  const microseconds = measured(() => {
    const proof = verifySun({ uid, ...chipKeysFrom(source, { chip_id, uid }) }, message)
    if (proof?.counter !== 66_051) throw new Error(`${scheme} does not verify`)
  })
  return { scheme, microseconds, is_within_budget: microseconds < budgetMicroseconds }
})
const judged = judgeMessages(messages, seed)
const result = {
  benchmark: "sun",
  budget_microseconds: budgetMicroseconds,
  schemes,
  messages,
  seed,
  ...judged,
}

const lines = schemes.map(
  ({ scheme, microseconds }) =>
    `${scheme.padEnd(12)} derive and verify ${microseconds.toFixed(2)} µs (budget ${budgetMicroseconds})\n`,
)
report(
  result,
  `${lines.join("")}${messages} messages of seed ${seed}: ${judged.accepted} accepted, ${judged.refused} refused, ${judged.difference ?? "judged alike"}\n`,
)
if (judged.difference) process.exit(1)

/** Processor time, so that what else the machine does is not counted; the best of five. */
function measured(work: () => void): number {
  for (let round = 0; round < rounds / 10; round++) work()
  const times = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    for (let round = 0; round < rounds / 5; round++) work()
    return process.cpuUsage(before).user / (rounds / 5)
  })
  return Math.min(...times)
}
