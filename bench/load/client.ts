import type { Socket } from "bun"

/** One request as it goes over the wire. */
export type WireRequest = Uint8Array | string

export type Load = {
  answers: number
  /** How many responses had each status. */
  statuses: Record<string, number>
  seconds: number
  /** From the moment a request was due to its last byte. */
  milliseconds: number[]
}

type Connection = {
  socket: Socket | null
  due: number
  head: string
  bodyBytesLeft: number
  status: string
  isBusy: boolean
}

/** The text of a request to `path`; `body` is sent as JSON. */
export function wireRequest(method: string, path: string, token: string, body?: unknown): string {
  const text = body === undefined ? "" : JSON.stringify(body)
  const type =
    body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${type}\r\n${text}`
}

/**
 * Keeps `connections` connections of this machine busy for a time, each with its next request as soon as the last one
 * is answered; or, with a `rate` a second, sends each request when it is due, whether others are answered or not.
 */
export async function load(options: {
  port: number
  connections: number
  seconds: number
  rate?: number
  nextRequest: () => WireRequest
}): Promise<Load> {
  const { port, connections, seconds, rate, nextRequest } = options
  const milliseconds: number[] = []
  const statuses: Record<string, number> = {}
  const idle: Connection[] = []
  let isOver = false
  let failure: Error | null = null
  /** When the requests that wait for a connection were due. */
  const overdue: number[] = []

  function send(connection: Connection, due: number): void {
    Object.assign(connection, { due, head: "", bodyBytesLeft: -1, isBusy: true })
    connection.socket?.write(nextRequest() as string)
  }

  function answered(connection: Connection): void {
    connection.isBusy = false
    milliseconds.push(performance.now() - connection.due)
    statuses[connection.status] = (statuses[connection.status] ?? 0) + 1
    if (isOver) return
    const due = rate === undefined ? performance.now() : overdue.shift()
    if (due === undefined) idle.push(connection)
    else send(connection, due)
  }

  const failed = (error: Error) => {
    if (!isOver) failure ??= error
  }
  const all = await Promise.all(
    Array.from({ length: connections }, () => openConnection(port, answered, failed)),
  )
  const begin = performance.now()
  if (rate === undefined) for (const connection of all) send(connection, begin)
  else idle.push(...all)
  for (let sent = 0; performance.now() - begin < seconds * 1_000 && !failure; ) {
    if (rate !== undefined)
      for (; sent < ((performance.now() - begin) / 1_000) * rate; sent++) {
        const due = begin + (sent / rate) * 1_000
        const connection = idle.pop()
        if (connection) send(connection, due)
        else overdue.push(due)
      }
    await Bun.sleep(rate === undefined ? 20 : 1)
  }
  isOver = true
  const took = (performance.now() - begin) / 1_000
  const answers = milliseconds.length
  const patience = performance.now() + 5_000
  while (all.some(({ isBusy }) => isBusy) && performance.now() < patience && !failure) await Bun.sleep(5)
  for (const { socket } of all) socket?.end()
  if (failure) throw failure
  return { answers, statuses, seconds: took, milliseconds }
}

async function openConnection(
  port: number,
  answered: (connection: Connection) => void,
  failed: (error: Error) => void,
): Promise<Connection> {
  const connection: Connection = {
    socket: null,
    due: 0,
    head: "",
    bodyBytesLeft: -1,
    status: "",
    isBusy: false,
  }
  connection.socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_socket, bytes) {
        receive(connection, bytes as Buffer)
        if (connection.bodyBytesLeft === 0) answered(connection)
      },
      error: (_socket, error) => failed(error),
      close: () => failed(new Error("the server closed a connection")),
    },
  })
  return connection
}

/** Reads on in a response, whose body has no bytes left once it is whole. */
function receive(connection: Connection, bytes: Buffer): void {
  if (connection.bodyBytesLeft >= 0) {
    connection.bodyBytesLeft -= bytes.length
    return
  }
  connection.head += bytes.toString("latin1")
  const end = connection.head.indexOf("\r\n\r\n")
  if (end < 0) return
  connection.status = connection.head.slice(9, 12)
  const length = /\r\ncontent-length: *(\d+)/i.exec(connection.head)?.[1] ?? "0"
  connection.bodyBytesLeft = Number(length) - (connection.head.length - end - 4)
}

/** The value below which a share of the values lies. */
export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
