import { currentProcess, passSeam, type SimulatedProcess, scheduleIn, served } from "../scheduler.ts"

// The connection between the service and its providers.

/** What comes back from a provider; `silent` never does. */
export type Said = { status: number; body: string } | "silent"

/** A request as received. */
export type Sent = { text: string; headers: Headers }

/** Handles the requests to one URL. */
export type Serve = (body: unknown, asker: SimulatedProcess | null, sent: Sent) => Promise<Said>

/** The handler of each URL in the running history. */
export const servers = new Map<string, Serve>()

const [fastest, slowest] = [0.2, 20]

globalThis.fetch = Object.assign(fetchSimulated, { preconnect: () => {} }) as typeof fetch

async function fetchSimulated(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const simulation = served()
  const serve = servers.get(String(url))
  if (!simulation || !serve) throw new Error(`nobody serves ${url}`)
  const process = currentProcess()
  const sent = { text: String(init?.body), headers: new Headers(init?.headers) }
  const body = JSON.parse(sent.text) as { method?: string }
  passSeam(simulation, `asks ${new URL(String(url)).host} for ${body.method ?? "something"}`)
  return await new Promise((resolve, reject) => {
    const { signal } = init ?? {}
    signal?.addEventListener("abort", () => reject(signal.reason))
    const answer = (said: Said) => {
      simulation.busy -= 1
      if (said === "silent") return
      scheduleIn(simulation, simulation.schedule.between(fastest, slowest), process, () => {
        try {
          passSeam(simulation, `is answered ${said.status}`)
          resolve(responseOf(said))
        } catch {
          // It died before it could send the response.
        }
      })
    }
    scheduleIn(simulation, simulation.schedule.between(fastest, slowest), null, () => {
      simulation.busy += 1
      serve(body, process, sent).then(answer, (error) => {
        simulation.busy -= 1
        reject(error)
      })
    })
  })
}

/** Without a real stream, which would be read on the real event loop. Only the body of an error is read piece by piece. */
function responseOf({ status, body }: { status: number; body: string }): Response {
  const ok = status < 300
  return {
    ok,
    status,
    statusText: "",
    headers: new Headers({ "content-type": "application/json" }),
    body: ok ? null : inOnePiece(body),
    text: async () => body,
    json: async () => JSON.parse(body),
  } as Response
}

function inOnePiece(text: string): Response["body"] {
  const pieces = [new TextEncoder().encode(text)]
  const read = async () => {
    const value = pieces.shift()
    return { value, done: value === undefined }
  }
  return { getReader: () => ({ read, cancel: async () => {} }) } as unknown as Response["body"]
}
