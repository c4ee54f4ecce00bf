import { connect, createServer, type Socket } from "node:net"
import { Transform } from "node:stream"

/** A line to a port of this machine that can fall silent, as when the machine at its other end is gone. */
export type Line = {
  port: number
  /** Nothing comes through any more, and nobody is told; what is connected from now on is not concerned. */
  fallSilent(): void
  stop(): void
}

/** `change`, if given, is asked for each piece that is sent towards the port. */
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
