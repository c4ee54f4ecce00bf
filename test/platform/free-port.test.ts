import { expect, test } from "bun:test"
import { type AddressInfo, createServer } from "node:net"
import { freePort } from "../../src/platform/free-port.ts"

test("a port is given once, and lies below those that the system gives by itself", async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort))
  expect(new Set(ports).size).toBe(50)
  const { port, stop } = await listen(0)
  stop()
  expect(Math.max(...ports)).toBeLessThan(port)
})

test("a port that is in use is not given", async () => {
  const { port, stop } = await listen((await freePort()) + 1)
  expect(await freePort()).not.toBe(port)
  stop()
})

/** Listens on a port, unless somebody else already does. */
async function listen(wanted: number): Promise<{ port: number; stop: () => void }> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.once("error", () => resolve())
    server.listen(wanted, "127.0.0.1", resolve)
  })
  const address = server.address() as AddressInfo | null
  return { port: address?.port ?? wanted, stop: () => server.close() }
}
