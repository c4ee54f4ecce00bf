import { isInside } from "../charts/chart.ts"

/** A journal entry, as far as the path needs it. */
type Step = { at: string; event: { type: string }; from_state: string | null; to_state: string }

/** How long an actor has been in each of its innermost states, in milliseconds, in the order it entered them. */
export function staysOf(journal: readonly Step[], now: Date): Map<string, number> {
  const stays = new Map<string, number>()
  for (const [index, { at, to_state }] of journal.entries()) {
    const left = journal[index + 1]?.at
    const end = left === undefined ? now.getTime() : Date.parse(left)
    stays.set(to_state, (stays.get(to_state) ?? 0) + Math.max(0, end - Date.parse(at)))
  }
  return stays
}

/** The milliseconds spent in a state or in one inside it; null if the actor never was there. */
export function stayIn(stays: ReadonlyMap<string, number>, path: string): number | null {
  const within = [...stays].filter(([state]) => isInside(state, path))
  return within.length === 0 ? null : within.reduce((sum, [, milliseconds]) => sum + milliseconds, 0)
}

/** Whether a transition of the chart was taken: its event came in its source and led to its target. */
export function wasTaken(
  journal: readonly Step[],
  transition: { source: string; target: string; event: string },
): boolean {
  return journal.some(
    ({ event, from_state, to_state }) =>
      from_state !== null &&
      event.type === transition.event &&
      isInside(from_state, transition.source) &&
      isInside(to_state, transition.target),
  )
}

/** A duration in words. */
export function duration(milliseconds: number): string {
  const [size, unit] = sizes.find(([each]) => milliseconds >= 2 * each) ?? [1, "ms"]
  const number = milliseconds / size
  return `${number < 10 && unit !== "ms" ? number.toFixed(1).replace(/\.0$/, "") : Math.round(number)} ${unit}`
}

const sizes: [milliseconds: number, unit: string][] = [
  [86_400_000, "days"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
]
