import { readFileSync } from "node:fs"
import { lifecycles, type MachineName } from "../actors/lifecycles.ts"
import { storyOf } from "../actors/story.ts"
import { findActor } from "../actors/waiting.ts"
import { createAskChain } from "../chain/ask-chain.ts"
import { drawingOf, machineNames } from "../charts/drawings.ts"
import { type Context, inTurn } from "../context.ts"
import { ApiError } from "../errors.ts"
import { newId, parseId } from "../ids.ts"
import { retryById } from "../operator/retry.ts"
import {
  htmlAnswer,
  jsonAnswer,
  type OperatorPage,
  type OperatorVisit,
  seeOther,
} from "../operator-port/page.ts"
import { createCounts, innermostStates, oldestActors, type Place } from "./actors.ts"
import { search } from "./search.ts"
import { actorPage, icon, missingPage, overviewPage, searchPage, statePage } from "./views.ts"

/** The lifecycle console: where everything is and why, for those who operate the service. */
export function consolePages(context: Context): OperatorPage[] {
  const queries = context.db.read
  const askChain = createAskChain(context)
  const counts = createCounts(queries)
  const drawings = new Map<MachineName, Promise<string>>()
  const drawing = (machine: MachineName) => {
    const drawn = drawings.get(machine) ?? drawingOf(machine)
    drawings.set(machine, drawn)
    return drawn
  }

  async function showOverview() {
    const drawn = machineNames.map(async (machine) => ({ machine, svg: await drawing(machine) }))
    return htmlAnswer(overviewPage(await Promise.all(drawn), await counts()))
  }

  async function showState({ params, url }: OperatorVisit) {
    const { machine = "", state = "" } = params
    if (!isMachine(machine) || innermostStates(machine, state).length === 0 || state === "")
      return htmlAnswer(missingPage(`There is no state ${state} of a machine ${machine}.`), 404)
    const page = { after: placeIn(url.searchParams.get("after")), limit: 50 }
    const listed = await oldestActors(queries, machine, state, page)
    return htmlAnswer(statePage(machine, state, listed, context.clock()))
  }

  async function showActor({ params, url }: OperatorVisit) {
    const id = parseId(params.id ?? "")
    const actor = id && (await findActor(queries, id))
    if (!actor || !isMachine(actor.machine))
      return htmlAnswer(missingPage(`There is no actor ${params.id}.`), 404)
    const story = await storyOf(queries, askChain, actor, context.clock())
    const said = url.searchParams.has("retried") ? "It is tried again." : null
    return htmlAnswer(actorPage(story, await drawing(actor.machine), said))
  }

  async function showSearch({ url }: OperatorVisit) {
    const words = (url.searchParams.get("q") ?? "").slice(0, 200)
    const found = await search(queries, words)
    const [only, another] = found
    return only && !another ? seeOther(`/console/actors/${only.id}`) : htmlAnswer(searchPage(words, found))
  }

  async function retry({ request }: OperatorVisit) {
    const id = new URLSearchParams(await request.text()).get("id") ?? ""
    const from = new URL(request.headers.get("referer") ?? "/console", "http://console").pathname
    try {
      await inTurn(context, `console_${newId()}`, (turn) => retryById(turn, id))
      return seeOther(from.startsWith("/console/") ? `${from}?retried` : "/console")
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return htmlAnswer(missingPage(error.message), 409)
    }
  }

  return [
    { method: "GET", path: "/", access: "token", answer: () => seeOther("/console") },
    { method: "GET", path: "/console", access: "token", answer: showOverview },
    {
      method: "GET",
      path: "/console/counts",
      access: "token",
      answer: async () => jsonAnswer(await counts()),
    },
    { method: "GET", path: "/console/machines/{machine}/states/{state}", access: "token", answer: showState },
    { method: "GET", path: "/console/actors/{id}", access: "token", answer: showActor },
    { method: "GET", path: "/console/search", access: "token", answer: showSearch },
    { method: "POST", path: "/console/retry", access: "token", answer: retry },
    asset("/console/console.css", "text/css; charset=utf-8", readAsset("console.css")),
    asset("/console/browser.js", "text/javascript; charset=utf-8", readAsset("browser.js")),
    asset("/console/icon.svg", "image/svg+xml", icon),
  ]
}

/** The login page needs them too. */
function asset(path: string, type: string, text: string): OperatorPage {
  const answer = () => new Response(text, { headers: { "content-type": type } })
  return { method: "GET", path, access: "login", answer }
}

function readAsset(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8")
}

function isMachine(name: string): name is MachineName {
  return Object.hasOwn(lifecycles, name)
}

/** Text that is no place shows the first page. */
function placeIn(text: string | null): Place | null {
  const [at = "", name = ""] = text?.split(",") ?? []
  const id = parseId(name)
  return id && !Number.isNaN(Date.parse(at)) ? { updated_at: new Date(at), id } : null
}
