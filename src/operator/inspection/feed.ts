import { and, asc, desc, eq, gte, inArray } from "drizzle-orm"
import type { Queries } from "../../db/database.ts"
import { type ActorRow, actorEvents, actors, effects } from "../../db/schema.ts"
import { findActor } from "../../engine/actors/runtime.ts"
import type { Context } from "../../platform/context.ts"
import { listenFailure } from "../../platform/listen-failure.ts"
import { loggable } from "../../platform/log.ts"
import { fontAt } from "../../platform/look/fonts.ts"
import { innermostStates, machineNames } from "../charts/machine-charts.ts"
import { reasonOf, type Work, workOf } from "../stories/waiting.ts"
import { bridgePage, bridgeScript } from "./bridge.ts"
import { type InspectionMessage, messagesOf, waitMessage } from "./messages.ts"

export type InspectionFeed = {
  /** The page that shows the feed in the inspector. */
  url: string
  /** What the inspector's receiver connects to. */
  feed_url: string
  stop(): Promise<void>
}

type InspectionOptions = {
  /** 0 picks a free one. */
  port: number
  /** The actors to follow; if empty, those that changed last and those that change from now on. */
  ids: string[]
  every_milliseconds: number
}

/**
 * Tells whoever connects from this machine what actors did and do. Each connection gets everything from the
 * beginning, so a receiver that was away has missed nothing. Throws `StartError`.
 */
export function startInspectionFeed(context: Context, options: InspectionOptions): InspectionFeed {
  const queries = context.db.read
  const told = new Map<string, InspectionMessage[]>()
  /** What the open effects wait for, by their ids. */
  let waits: ReadonlyMap<string, Wait> = new Map()
  /** The versions of the actors found at the last look. */
  let seen: ReadonlyMap<string, number> = new Map()
  let since: Date | null = null
  let stopped = false

  async function look(): Promise<void> {
    const recent = options.ids.length > 0 ? [] : await changedActors(queries, since)
    const changed = recent.filter(({ id, version }) => seen.get(id) !== version)
    const ids = options.ids.length > 0 ? options.ids : changed.map(({ id }) => id)
    const records = await recordsOf(queries, ids)
    // Read after the records: an effect that was open in them and is over by now does not wait.
    const open = await openWorkOf(queries, [...told.keys(), ...ids])
    for (const recorded of records) {
      const messages = messagesOf(recorded)
      const known = new Set((told.get(recorded.actor.id) ?? []).map(({ id }) => id))
      for (const message of messages)
        if (!known.has(message.id)) server.publish("feed", JSON.stringify(message))
      told.delete(recorded.actor.id)
      told.set(recorded.actor.id, messages)
    }
    seen = new Map(recent.map(({ id, version }) => [id, version]))
    since = nextSince(since, recent)
    for (const id of [...told.keys()].slice(0, Math.max(0, told.size - mostActors))) told.delete(id)
    tellWaits(open)
  }

  function tellWaits(open: Work[]): void {
    const now = context.clock()
    const isTold = ({ effect }: Work) =>
      told.get(effect.actor_id)?.some(({ sessionId }) => sessionId === effect.id)
    const found = open.filter(isTold).map((work): [string, Wait] => {
      const { effect } = work
      const reason = reasonOf(work, now)
      const before = waits.get(effect.id)
      if (before?.reason === reason) return [effect.id, before]
      return [effect.id, { reason, message: waitMessage(effect, reason, now) }]
    })
    for (const [id, wait] of found)
      if (waits.get(id) !== wait) server.publish("feed", JSON.stringify(wait.message))
    waits = new Map(found)
  }

  async function follow(): Promise<void> {
    let failure = ""
    while (!stopped) {
      await look().then(
        () => {
          failure = ""
        },
        (error: unknown) => {
          const { error: said } = loggable(error)
          if (said !== failure) context.log.warn({ error: said }, "the inspection failed and is tried again")
          failure = said
        },
      )
      await Bun.sleep(options.every_milliseconds)
    }
  }

  const everything = () => [
    ...[...told.values()].flat(),
    ...[...waits.values()].map(({ message }) => message),
  ]
  const server = listen(options.port, everything)
  const following = follow()
  const at = `127.0.0.1:${server.port}`
  return {
    url: `http://${at}`,
    feed_url: `ws://${at}/feed`,
    async stop() {
      stopped = true
      await following
      await server.stop(true)
    },
  }
}

/** A reason and the message that told it; a reason is told again only once it has changed. */
type Wait = { reason: string; message: InspectionMessage }

/** How many actors are kept for those who connect later. */
const mostActors = 200

/** A change carries the time its database transaction began, but appears only once that is over. */
const lateMilliseconds = 10_000

/** Since when changes are looked for next; at first, none older than those already told. */
function nextSince(since: Date | null, recent: Change[]): Date | null {
  const [oldest, newest] = [recent[0], recent.at(-1)]
  if (!oldest || !newest) return since
  const late = new Date(newest.updated_at.getTime() - lateMilliseconds)
  const earliest = since ?? (recent.length < mostActors ? late : oldest.updated_at)
  return earliest > late ? earliest : late
}

type Change = Pick<ActorRow, "id" | "version" | "updated_at">

function listen(port: number, everything: () => InspectionMessage[]) {
  try {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      development: false,
      reusePort: false,
      fetch(request, server) {
        const { pathname } = new URL(request.url)
        // Any page in any browser may try a web socket on this machine; only this feed's own page is let in.
        const own = [`http://127.0.0.1:${server.port}`, `http://localhost:${server.port}`]
        const origin = request.headers.get("origin")
        const host = `http://${request.headers.get("host")}`
        if (!own.includes(host) || (origin !== null && !own.includes(origin)))
          return new Response("This feed is for this machine only.\n", { status: 403 })
        if (pathname === "/" && request.headers.get("upgrade") === null) return bridgePage()
        if (pathname === "/bridge.js") return bridgeScript()
        const font = fontAt(pathname)
        if (font) return font
        if (server.upgrade(request)) return undefined
        return new Response("There is nothing here.\n", { status: 404 })
      },
      websocket: {
        open(socket) {
          for (const message of everything()) socket.send(JSON.stringify(message))
          socket.subscribe("feed")
        },
        message() {},
      },
    })
  } catch (error) {
    throw listenFailure(error, {
      port: `port ${port} for the inspection`,
      another: "name another with --port",
    })
  }
}

/** The actors changed since a time or, at the first look, those changed last; earliest change first. */
async function changedActors(queries: Queries, since: Date | null): Promise<Change[]> {
  const states = machineNames.flatMap((machine) =>
    innermostStates(machine).map((state) => ({ machine, state })),
  )
  // State by state, because then an index finds the newest.
  const lists = await Promise.all(
    states.map(({ machine, state }) => {
      const isThere = and(eq(actors.machine, machine), eq(actors.state, state))
      const found = queries
        .select({ id: actors.id, version: actors.version, updated_at: actors.updated_at })
        .from(actors)
        .where(since ? and(isThere, gte(actors.updated_at, since)) : isThere)
        .orderBy(desc(actors.updated_at), desc(actors.id))
      return since ? found : found.limit(mostActors)
    }),
  )
  const changed = lists
    .flat()
    .sort(
      (one, other) => one.updated_at.getTime() - other.updated_at.getTime() || (one.id < other.id ? -1 : 1),
    )
  return since ? changed : changed.slice(-mostActors)
}

async function recordsOf(queries: Queries, ids: string[]) {
  if (ids.length === 0) return []
  const [rows, journal, work] = [
    await queries.select().from(actors).where(inArray(actors.id, ids)),
    await queries
      .select()
      .from(actorEvents)
      .where(inArray(actorEvents.actor_id, ids))
      .orderBy(asc(actorEvents.actor_id), asc(actorEvents.number)),
    await queries
      .select()
      .from(effects)
      .where(inArray(effects.actor_id, ids))
      .orderBy(asc(effects.created_at), asc(effects.id)),
  ]
  const stored = new Map(rows.map((row) => [row.id, row]))
  const found = await Promise.all(ids.map(async (id) => stored.get(id) ?? (await findActor(queries, id))))
  return found.flatMap((actor) => {
    if (!actor) return []
    const { id } = actor
    // The three reads are not simultaneous: entries newer than the row wait for the next look.
    const known = journal.filter(({ actor_id, number }) => actor_id === id && number <= actor.version)
    return [{ actor, journal: known, effects: work.filter(({ actor_id }) => actor_id === id) }]
  })
}

async function openWorkOf(queries: Queries, actorIds: string[]): Promise<Work[]> {
  if (actorIds.length === 0) return []
  const isOpen = and(inArray(effects.actor_id, actorIds), eq(effects.status, "open"))
  return await workOf(queries, await queries.select().from(effects).where(isOpen).orderBy(asc(effects.id)))
}
