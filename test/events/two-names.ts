import { readFileSync } from "node:fs"
import { join } from "node:path"
import tls from "node:tls"
import { sendWebhook } from "../../workers/webhooks/send.ts"

/**
 * A process of `addresses.test.ts`: sends to two names that share an address, and prints which connection each request
 * used.
 */
const folder = String(process.argv[2])
const secureOf = (name: string) => ({
  key: readFileSync(join(folder, `${name}.key`)),
  cert: readFileSync(join(folder, `${name}.crt`)),
})
const taken: [number, unknown, string | undefined][] = []
let connections = 0
const server = tls.createServer(
  {
    ...secureOf("a.test"),
    SNICallback: (name, answer) => answer(null, tls.createSecureContext(secureOf(name))),
  },
  (socket) => {
    const number = ++connections
    const name = (socket as unknown as { servername: unknown }).servername
    socket.on("error", () => {})
    socket.on("data", (received) => {
      const host = /^host: (?<name>[^:\r]+)/im.exec(String(received))?.groups?.name
      if (host) taken.push([number, name, host])
      socket.write("HTTP/1.1 204 No Content\r\n\r\n")
    })
  },
)
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const { port } = server.address() as { port: number }
for (const name of ["a.test", "a.test", "b.test", "a.test", "b.test"]) {
  const message = {
    url: `https://${name}:${port}/`,
    event_id: "x",
    body: "{}",
    secrets: ["whsec_AAAA"],
    at: new Date(0),
  }
  const reach = { allowLoopback: true, resolve: async () => ["127.0.0.1"], patience_milliseconds: 5_000 }
  const { error } = await sendWebhook(message, reach)
  if (error !== null) throw new Error(error)
}
process.stdout.write(JSON.stringify(taken))
process.exit(0)
