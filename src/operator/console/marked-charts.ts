import type { MachineName } from "../../engine/actors/lifecycles.ts"
import { type Markup, trusted } from "../../platform/html.ts"
import { isInside } from "../charts/chart.ts"
import { withoutStyle } from "../charts/svg.ts"
import type { Story } from "../stories/story.ts"
import { duration, stayIn, staysOf, wasTaken } from "../stories/way.ts"

/** A machine's drawing with the number of actors in each state. */
export function countedChart(svg: string, machine: MachineName, counts: Record<string, number>): Markup {
  return linkedChart(svg, machine, (path) => {
    const count = countWithin(counts, path)
    return { text: String(count), textClass: count === 0 ? " zero" : "", stateClass: "" }
  })
}

/** An actor's drawing with its present state, how long it was in each, and the transitions that it took. */
export function storyChart(svg: string, { machine, state, journal }: Story, now: Date): Markup {
  const stays = staysOf(journal, now)
  const linked = linkedChart(svg, machine, (path) => {
    const stay = stayIn(stays, path)
    const visited = stay === null ? "" : " visited"
    return {
      text: stay === null ? "" : duration(stay),
      textClass: "",
      stateClass: `${visited}${isInside(state, path) ? " current" : ""}`,
    }
  })
  return trusted(
    String(linked).replaceAll(
      /<g class="transition" data-source="([^"]*)" data-target="([^"]*)" data-event="([^"]*)">/g,
      (group, source: string, target: string, event: string) =>
        wasTaken(journal, { source, target, event })
          ? group.replace('class="transition"', 'class="transition taken"')
          : group,
    ),
  )
}

/** Where the console lists the actors in a state. */
export function stateAddress(machine: string, state: string): string {
  return `/console/machines/${machine}/states/${encodeURIComponent(state)}`
}

/** What is written into a state, and the classes that it and its text get beside their own. */
type Mark = { text: string; textClass: string; stateClass: string }

/** The drawing with each state marked, and linked to its actors. */
function linkedChart(svg: string, machine: MachineName, markOf: (path: string) => Mark): Markup {
  const linked = withoutStyle(svg).replaceAll(
    /<g class="state (\w+)" data-state="([^"]+)">([\s\S]*?)<\/g>/g,
    (_group, kind: string, path: string, inner: string) => {
      const { text, textClass, stateClass } = markOf(path)
      const marked = inner.replace(/(<text class="count)("[^>]*>)(<\/text>)/, `$1${textClass}$2${text}$3`)
      return `<a href="${stateAddress(machine, path)}"><g class="state ${kind}${stateClass}" data-state="${path}">${marked}</g></a>`
    },
  )
  return trusted(linked)
}

function countWithin(counts: Record<string, number>, path: string): number {
  return Object.entries(counts)
    .filter(([state]) => isInside(state, path))
    .reduce((sum, [, count]) => sum + count, 0)
}
