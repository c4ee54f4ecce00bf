import { createServer } from "node:net"
import type { Environment } from "./config.ts"

// Systems choose from higher ones for connections and for servers that let them choose.
const lowest = 11_000
const count = 5_000
let next = (process.pid * 997) % count

/** Returns the environment with a free port in place of `PORT=0`, which the service could not show in its URLs. */
export async function withFreePort(environment: Environment): Promise<Environment> {
  return environment.PORT === "0" ? { ...environment, PORT: String(await freePort()) } : environment
}

/** Returns a port of 127.0.0.1 that is free, and that the system gives to nobody before a server has it. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < count; tried++) {
    const port = lowest + next
    next = (next + 1) % count
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${lowest} to ${lowest + count - 1} is free`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return await new Promise((resolve) => {
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })
}
