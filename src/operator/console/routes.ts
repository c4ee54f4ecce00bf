import { Hono } from "hono"
import type { Queries } from "../../db/database.ts"
import type { Turn } from "../../db/turn.ts"
import { lifecycles, type MachineName } from "../../engine/actors/lifecycles.ts"
import { findActor } from "../../engine/actors/runtime.ts"
import type { Context } from "../../platform/context.ts"
import { ApiError } from "../../platform/errors.ts"
import { parseId } from "../../platform/ids.ts"
import {
  requireOrganization,
  resumeOrganization,
  suspendOrganization,
} from "../../resources/organizations/service.ts"
import { createAskChain } from "../ask-chain.ts"
import { drawingOf } from "../charts/drawings.ts"
import { innermostStates, machineNames } from "../charts/machine-charts.ts"
import { actsOn } from "../stories/acts.ts"
import { namesOf } from "../stories/names.ts"
import { search } from "../stories/search.ts"
import { storyOf } from "../stories/story.ts"
import { webhookStates } from "../stories/webhook-states.ts"
import { inAct } from "../verbs/acts.ts"
import { cancelById } from "../verbs/cancel.ts"
import { OperatorRefusal } from "../verbs/refusal.ts"
import { retryById } from "../verbs/retry.ts"
import { actorPage } from "./actor-page.ts"
import { createCounts, type Mark, oldestActors } from "./actors.ts"
import { actsPage, type ShownAct } from "./acts-page.ts"
import { createHealth } from "./health.ts"
import { organizationPage } from "./organization-page.ts"
import { overviewPage } from "./overview-page.ts"
import { missingPage } from "./page.ts"
import { searchPage } from "./search-page.ts"
import { statePage } from "./state-page.ts"
import { takeForm } from "./take-form.ts"
import { webhooksPage } from "./webhooks-page.ts"

/** The lifecycle console: shows operators where everything is and why. */
export function consolePages(context: Context): Hono {
  const queries = context.db.read
  const askChain = createAskChain(context)
  const counts = createCounts(queries)
  const health = createHealth(context)
  const drawings = new Map<MachineName, Promise<string>>()
  const drawing = (machine: MachineName) => {
    const known = drawings.get(machine)
    if (known) return known
    const drawn = drawingOf(machine)
    drawings.set(machine, drawn)
    drawn.catch(() => drawings.delete(machine))
    return drawn
  }

  const pages = new Hono()
  pages.get("/", (c) => c.redirect("/console", 303))

  pages.get("/console", async (c) => {
    const drawn = machineNames.map(async (machine) => ({ machine, svg: await drawing(machine) }))
    return c.html(overviewPage(await Promise.all(drawn), await counts(), await health()))
  })

  pages.get("/console/counts", async (c) => c.json(await counts()))

  pages.get("/console/machines/:machine/states/:state", async (c) => {
    const { machine, state } = c.req.param()
    if (!isMachine(machine) || innermostStates(machine, state).length === 0)
      return c.html(missingPage(`There is no machine ${machine} with a state ${state}.`), 404)
    const listed = await oldestActors(queries, machine, state, {
      after: markIn(c.req.query("after")),
      limit: 50,
    })
    const ids = listed.rows.map((row) => row.id)
    const names = await namesOf(queries, machine, ids)
    return c.html(statePage(machine, state, { ...listed, names }, context.clock()))
  })

  pages.get("/console/actors/:id", async (c) => {
    const id = parseId(c.req.param("id"))
    const actor = id && (await findActor(queries, id))
    if (!actor || !isMachine(actor.machine))
      return c.html(missingPage(`There is no actor ${c.req.param("id")}.`), 404)
    const story = await storyOf(
      { queries, askChain, keyFaults: context.keyFaults(), now: context.clock() },
      actor,
    )
    const said = saidOf[c.req.query("done") ?? ""] ?? null
    return c.html(actorPage(story, await drawing(actor.machine), said, context.clock()))
  })

  pages.get("/console/webhooks", async (c) => c.html(webhooksPage(await webhookStates(queries, null))))

  pages.get("/console/search", async (c) => {
    const words = (c.req.query("q") ?? "").slice(0, mostSearched)
    const hits = await search(queries, words)
    const [only, another] = hits
    return only && !another ? c.redirect(`/console/actors/${only.id}`, 303) : c.html(searchPage(words, hits))
  })

  pages.get("/console/organizations/:id", async (c) => {
    const organization = await requireOrganization(queries, c.req.param("id")).catch(noneIfUnknown)
    if (!organization) return c.html(missingPage(`There is no organization ${c.req.param("id")}.`), 404)
    return c.html(organizationPage(organization, await shownActs(queries, [organization.id])))
  })

  pages.get("/console/acts", async (c) => c.html(actsPage(await shownActs(queries, null))))

  return pages.route("/", actForms(context))
}

/** What operators do here; each goes back to the page that its form was on. */
function actForms(context: Context): Hono {
  const forms = new Hono()
  const acts: Record<string, (turn: Turn, id: string) => Promise<unknown>> = {
    retry: retryById,
    cancel: cancelById,
    suspend: suspendOrganization,
    resume: resumeOrganization,
  }
  for (const [act, run] of Object.entries(acts))
    forms.post(`/console/${act}`, takeForm, async (c) => {
      const subject = new URLSearchParams(await c.req.text()).get("id") ?? ""
      const from = new URL(c.req.header("referer") ?? "/console", "http://console").pathname
      try {
        await inAct(context, { act, subject, actor: `console, from ${peerOf(c.env)}` }, run)
        return c.redirect(from.startsWith("/console/") ? `${from}?done=${act}` : "/console", 303)
      } catch (error) {
        if (!(error instanceof OperatorRefusal || error instanceof ApiError)) throw error
        return c.html(missingPage(error.message), 409)
      }
    })
  return forms
}

async function shownActs(queries: Queries, subjects: string[] | null): Promise<ShownAct[]> {
  const rows = await actsOn(queries, subjects)
  return rows.map(({ at, ...act }) => ({ ...act, at: at.toISOString() }))
}

function noneIfUnknown(error: unknown): null {
  if (error instanceof ApiError) return null
  throw error
}

/** The browser's address, which the port passes on. */
function peerOf(env: unknown): string {
  return String((env as { peer?: string } | undefined)?.peer ?? "")
}

const saidOf: Record<string, string> = {
  retry: "It will be tried again.",
  cancel: "The nonce is given up; its work will be sent with another nonce.",
}

/** A name or an external id has up to 256 characters, of one or two UTF-16 units each. */
const mostSearched = 512

function isMachine(name: string): name is MachineName {
  return Object.hasOwn(lifecycles, name)
}

/** Null, which begins the list, for text that is no mark. */
function markIn(text = ""): Mark | null {
  const [at = "", name = ""] = text.split(",")
  const id = parseId(name)
  return id && !Number.isNaN(Date.parse(at)) ? { updated_at: new Date(at), id } : null
}
