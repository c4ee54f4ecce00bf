import { connect, createServer, type Socket } from "node:net"
import { Transform } from "node:stream"

/** A connection to a local port that can go silent, as if the machine at the other end were gone. */
export type Line = {
  port: number
  /** Nothing is transmitted any more, and neither side is told; new connections are not affected. */
  fallSilent(): void
  stop(): void
}

/** `change`, if given, is applied to each chunk sent towards the port. */
export async function startLine(to: number, change = (sent: Buffer) => sent): Promise<Line> {
  const connected: { near: Socket; far: Socket }[] = []
  const server = createServer((near) => {
    const far = connect(to, "127.0.0.1")
    connected.push({ near, far })
    for (const end of [near, far]) end.on("error", () => {})
    const changed = new Transform({ transform: (sent, _, done) => done(null, change(sent)) })
    near.pipe(changed).pipe(far)
    far.pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as { port: number }).port,
    fallSilent() {
      for (const { near, far } of connected) {
        near.unpipe().resume()
        far.unpipe(near).resume()
      }
    },
    stop() {
      server.close()
      for (const { near, far } of connected) {
        near.destroy()
        far.destroy()
      }
    },
  }
}
