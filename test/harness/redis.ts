import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Redis } from "ioredis"
import { freePort } from "../../src/platform/free-port.ts"
import { tiedToParent } from "./child-process.ts"

export type RedisServer = {
  url: string
  /** Kills the server; `start` uses the same port. */
  kill(): Promise<void>
  start(): Promise<void>
  flush(): Promise<void>
  keys(): Promise<string[]>
  /** Runs a command written as for `redis-cli`. */
  command(words: string): Promise<void>
  stop(): Promise<void>
}

/** Starts a separate Redis on a free port; its temporary files are removed after `stop`. */
export async function startRedis(): Promise<RedisServer> {
  const binary = Bun.which("redis-server")
  if (!binary) throw new Error("these tests need Redis, 7 or later: apt-get install redis-server")
  const folder = mkdtempSync(join(tmpdir(), "redis-"))
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  let server: Bun.Subprocess | undefined

  async function ask<T>(question: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: 100 })
    redis.on("error", () => {})
    try {
      return await question(redis)
    } finally {
      redis.disconnect()
    }
  }

  const running: RedisServer = {
    url,
    async kill() {
      server?.kill("SIGKILL")
      await server?.exited
      server = undefined
    },
    async start() {
      const settings = [
        "--port",
        `${port}`,
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--save",
        "",
        "--appendonly",
        "no",
      ]
      server = Bun.spawn(tiedToParent([binary, ...settings]), {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      })
      await ask((redis) => redis.ping())
    },
    async flush() {
      await ask((redis) => redis.flushall())
    },
    keys: () => ask((redis) => redis.keys("*")),
    async command(words) {
      const [name = "", ...given] = words.split(" ")
      await ask((redis) => redis.call(name, ...given))
    },
    async stop() {
      await running.kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await running.start()
  return running
}
