import { createServer } from "node:net"
import type { Environment } from "./config.ts"

/** The environment with a free port in place of `PORT=0`, which no address that the service shows could hold. */
export async function withFreePort(environment: Environment): Promise<Environment> {
  return environment.PORT === "0" ? { ...environment, PORT: String(await freePort()) } : environment
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (!address || typeof address === "string") throw new Error("no port was given")
  return address.port
}
