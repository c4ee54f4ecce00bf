import { createServer } from "node:net"
import type { Environment } from "./config.ts"

/** Returns the environment with a free port in place of `PORT=0`, which the service could not show in its URLs. */
export async function withFreePort(environment: Environment): Promise<Environment> {
  return environment.PORT === "0" ? { ...environment, PORT: String(await freePort()) } : environment
}

/** Returns a port of 127.0.0.1 that is free right now. */
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
