import { createSocket } from "node:dgram"
import { setServers } from "node:dns"
import { resolveHost } from "../../src/platform/public-address.ts"

/**
 * A process of `addresses.test.ts`: its name server does not respond to queries for names that begin with `silent`.
 * Looks up many of them, then another name, and prints that one's addresses and how many of the silent lookups had
 * timed out by then.
 */
const server = createSocket("udp4")
server.on("message", (question, { port, address }) => {
  const end = question.indexOf(0, 12) + 5
  if (question.toString("latin1", 13, 19) === "silent") return
  const type = question.readUInt16BE(end - 4)
  const found = type === 1 ? "5db8d822" : "26064700000000000000000000001111"
  const record = `c00c${hex(type)}000100000001${hex(found.length / 2)}${found}`
  // A response with the question and one record for the same name.
  const head = `${question.toString("hex", 0, 2)}81800001000100000000`
  server.send(Buffer.from(`${head}${question.toString("hex", 12, end)}${record}`, "hex"), port, address)
})
await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve))
setServers([`127.0.0.1:${server.address().port}`])
let given_up = 0
for (let number = 0; number < 48; number++)
  resolveHost(`silent${number}.test`).catch(() => {
    given_up++
  })
await Bun.sleep(100)
const addresses = await resolveHost("hook.test").catch(String)
process.stdout.write(JSON.stringify({ addresses, given_up }))
process.exit(0)

function hex(number: number): string {
  return number.toString(16).padStart(4, "0")
}
