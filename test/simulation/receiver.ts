import { Webhook } from "standardwebhooks"
import type { Said, Sent } from "./seams/line.ts"
import type { Stream } from "./streams.ts"

/** An organization's own server that receives events. */
export type Receiver = {
  url: string
  mood: "well" | ReceiverMood
  /** The secret of its endpoint; null while it has none. */
  secret: string | null
  /** The IDs of events that it accepted, in order, whether or not its response arrived. */
  taken: string[]
  /** Deliveries that were not signed properly. */
  unsigned: string[]
  serve(body: unknown, asker: unknown, sent: Sent): Promise<Said>
}

/** `unheard`: it accepts what comes, and its response is lost. */
export const receiverMoods = ["refusing", "silent", "unheard", "moved"] as const
export type ReceiverMood = (typeof receiverMoods)[number]

export function createReceiver(url: string, chance: Stream): Receiver {
  const receiver: Receiver = { url, mood: "well", secret: null, taken: [], unsigned: [], serve }

  async function serve(_body: unknown, _asker: unknown, { text, headers }: Sent): Promise<Said> {
    const { mood } = receiver
    const strikes = mood !== "well" && chance.happens(0.7)
    if (strikes && mood === "refusing") return { status: chance.pick([500, 429, 404, 410]), body: "not now" }
    if (strikes && mood === "moved") return { status: 301, body: "" }
    if (strikes && mood === "silent") return "silent"
    receiver.taken.push((JSON.parse(text) as { id: string }).id)
    if (!isSigned(receiver, text, headers)) receiver.unsigned.push(text)
    if (strikes) return chance.happens(0.5) ? "silent" : { status: 502, body: "" }
    return { status: chance.pick([200, 202, 204]), body: "" }
  }
  return receiver
}

function isSigned({ secret }: Receiver, text: string, headers: Headers): boolean {
  // Its owner learns the secret a moment after the endpoint exists.
  if (secret === null) return true
  try {
    new Webhook(secret).verify(text, Object.fromEntries(headers))
    return true
  } catch {
    return false
  }
}
