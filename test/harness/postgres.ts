import {
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { freePort } from "../../src/platform/free-port.ts"

export type Cluster = {
  /** The URL of a database of this cluster, for its superuser. */
  url(database: string): string
  /** The path of one of PostgreSQL's programs, such as `pg_dump`. */
  program(name: string): string
  /** Kills the server and starts it again on the same files and port, by default as a primary. */
  restart(as?: "primary" | "standby"): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a separate PostgreSQL on a free port. Its temporary files are removed after `stop`, or when this process
 * ends, however it does. `fsync` is on only to measure its cost.
 */
export async function startPostgres({ fsync }: { fsync: "on" | "off" } = { fsync: "off" }): Promise<Cluster> {
  const binaries = findBinaries()
  const folder = mkdtempSync(join(tmpdir(), "postgres-"))
  const account = serverAccount()
  if (account) chownSync(folder, account.uid, account.gid)
  const sweeper = removeAtTheEnd(folder)
  const files = join(folder, "files")
  const initdb = [join(binaries, "initdb"), "--pgdata", files, "--username", user, "--auth", "trust"]
  const making = [...initdb, "--encoding", "UTF8", "--locale", "C", "--no-sync"]
  await run(account, making, join(folder, "initdb.log"))
  const port = await freePort()
  const postgres = [join(binaries, "postgres"), "-D", files, "-k", folder, "-h", "127.0.0.1", "-p", `${port}`]
  async function startServer() {
    const log = join(folder, "log")
    const options = ["-c", `fsync=${fsync}`, "-c", "timezone=America/New_York"]
    const server = spawn(account, [...postgres, ...options], log)
    // It outlives the test file that first requested it, and must not keep the process alive.
    server.unref()
    await untilReady(server, log)
    return server
  }
  let server = await startServer()

  return {
    url: (database) => `postgres://${user}@127.0.0.1:${port}/${database}`,
    program: (name) =>
      Bun.which(name, { PATH: `${binaries}:${process.env.PATH}:${newestPackage()}` }) ?? name,
    async restart(as = "primary") {
      server.kill("SIGQUIT")
      await server.exited
      const signal = join(files, "standby.signal")
      if (as === "standby") writeFileSync(signal, "")
      else rmSync(signal, { force: true })
      server = await startServer()
    },
    async stop() {
      server.kill("SIGINT")
      await server.exited
      rmSync(folder, { recursive: true, force: true })
      sweeper.kill()
    },
  }
}

const user = "tester"
const debianFolder = "/usr/lib/postgresql"

/** The folder of the server's programs: from `PATH`, else the newest of Debian's packages. */
function findBinaries(): string {
  const onPath = Bun.which("postgres")
  if (onPath && Bun.which("initdb", { PATH: dirname(onPath) })) return dirname(onPath)
  const newest = newestPackage()
  if (newest) return newest
  throw new Error("these tests need the PostgreSQL server, 15 or later: apt-get install postgresql")
}

function newestPackage(): string | null {
  const newest = versionsOf(debianFolder).at(-1)
  return newest ? join(debianFolder, newest, "bin") : null
}

function versionsOf(folder: string): string[] {
  try {
    return readdirSync(folder).sort((one, other) => Number(one) - Number(other))
  } catch {
    return []
  }
}

type Account = { uid: number; gid: number }

/** PostgreSQL refuses to run as root, so root uses the account that its package creates. */
function serverAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const id = (flag: string) => Number(Bun.spawnSync(["id", flag, "postgres"]).stdout.toString().trim() || "x")
  const account = { uid: id("-u"), gid: id("-g") }
  if (Number.isNaN(account.uid)) throw new Error("root needs an account named postgres to run PostgreSQL")
  return account
}

/** Runs one of PostgreSQL's programs, with its output in the file `log`. */
function spawn(account: Account | null, command: string[], log: string) {
  const as = account
    ? ["setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups", "--pdeathsig=INT"]
    : []
  const file = openSync(log, "w")
  const child = Bun.spawn([...as, ...command], {
    cwd: "/",
    env: { PATH: process.env.PATH, LC_ALL: "C" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: file,
  })
  closeSync(file)
  return child
}

/** A process whose standard input closes when this process ends. The server gets a moment to exit first. */
function removeAtTheEnd(folder: string) {
  const command = ["sh", "-c", 'read -r _; sleep 1; rm -rf "$0"', folder]
  const sweeper = Bun.spawn(command, { stdin: "pipe", stdout: "ignore", stderr: "ignore" })
  sweeper.unref()
  return sweeper
}

async function run(account: Account | null, command: string[], log: string): Promise<void> {
  const exitCode = await spawn(account, command, log).exited
  if (exitCode !== 0) throw new Error(`${command[0]} failed: ${readFileSync(log, "utf8")}`)
}

async function untilReady(server: ReturnType<typeof spawn>, log: string): Promise<void> {
  while (!/ready to accept (read-only )?connections/.test(readFileSync(log, "utf8"))) {
    if (server.exitCode !== null || server.signalCode !== null) {
      throw new Error(`PostgreSQL did not start: ${readFileSync(log, "utf8")}`)
    }
    await Bun.sleep(10)
  }
}
