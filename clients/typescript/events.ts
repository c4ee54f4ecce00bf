import type { components, paths } from "./api.generated.ts"
import { inTime } from "./in-time.ts"
import { WrongOption } from "./options.ts"
import { pause } from "./pause.ts"

type Event = components["schemas"]["Event"]
type Query = Omit<NonNullable<paths["/v1/events"]["get"]["parameters"]["query"]>, "cursor" | "limit">

/** The feed of events. */
export type Events = {
  /** Everything after an event, or from the oldest kept, oldest first, up to now. */
  list(query?: Query): AsyncGenerator<Event>
  /**
   * Events as they happen, after `after` or from now on, until `signal`. Reconnects and continues where it stopped.
   * Throws if the first connection is refused, or a later one for good, or an option of the client is wrong.
   */
  stream(query?: Query, options?: { signal?: AbortSignal }): AsyncGenerator<Event>
}

/** How the feed asks the service; `ask` throws for an error. */
export type Ask = (path: string, init: RequestInit) => Promise<Response>

export function createEvents(ask: Ask): Events {
  return {
    async *list({ after = "0", ...filters } = {}) {
      for (let last = after; ; ) {
        const response = await ask(`/v1/events?${search({ ...filters, after: last, limit: "100" })}`, {})
        const { events, pagination } = (await response.json()) as {
          events: Event[]
          pagination: { has_more: boolean }
        }
        yield* events
        last = events.at(-1)?.id ?? last
        if (!pagination.has_more) return
      }
    },
    async *stream(query = {}, { signal } = {}) {
      let last: string | undefined
      let wasOpen = false
      for (let failures = 0; !signal?.aborted; failures++) {
        const headers: Record<string, string> = last ? { "last-event-id": last } : {}
        try {
          const init: RequestInit = signal ? { headers, signal } : { headers }
          const response = await ask(`/v1/events/stream?${search(query)}`, init)
          wasOpen = true
          for await (const { id, data } of messagesOf(response, signal)) {
            last = id ?? last
            failures = 0
            if (data !== null) yield JSON.parse(data) as Event
          }
        } catch (error) {
          if (signal?.aborted) return
          if (error instanceof WrongOption) throw error
          if (isAnswer(error) && !(wasOpen && passes(error))) throw error
        }
        await pause(Math.min(10_000, 500 * 2 ** failures), signal)
      }
    },
  }
}

/** An error of the API, or a response that is not the service's. */
function isAnswer(error: unknown): error is Error & { status: number } {
  return error instanceof Error && "status" in error
}

/** Whether a response means that the service is only temporarily unavailable. */
function passes({ status }: { status: number }): boolean {
  return status === 429 || status >= 500
}

function search(query: Record<string, unknown>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  return given.toString()
}

/** The service sends something every 15 seconds; after this much silence the connection is lost. */
const silenceMilliseconds = 45_000
const silent = () => new Error("the stream fell silent")

type Message = { id: string | null; data: string | null }

/** Each message of a stream of server-sent events (HTML Living Standard, 9.2.6). */
async function* messagesOf(response: Response, signal?: AbortSignal): AsyncGenerator<Message> {
  const reader = response.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let rest = ""
  // Node may collect a request's own signal as garbage while the body is read; then aborting it ends nothing.
  const end = () => void reader.cancel().catch(() => {})
  signal?.addEventListener("abort", end)
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), silenceMilliseconds, silent)
      if (done) return
      const messages = `${rest}${decoder.decode(value, { stream: true })}`.split("\n\n")
      rest = messages.pop() ?? ""
      for (const message of messages) {
        const [id, data] = [fieldOf(message, "id: "), fieldOf(message, "data: ")]
        if (id !== null || data !== null) yield { id, data }
      }
    }
  } finally {
    signal?.removeEventListener("abort", end)
    await reader.cancel().catch(() => {})
  }
}

function fieldOf(message: string, field: string): string | null {
  const lines = message.split("\n").filter((line) => line.startsWith(field))
  return lines.length === 0 ? null : lines.map((line) => line.slice(field.length)).join("\n")
}
