import { chownSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

export type Cluster = {
  /** The address of a database of this cluster, for its superuser. */
  url(database: string): string
  /** The path of one of PostgreSQL's programs, such as `pg_dump`. */
  program(name: string): string
  /** Ends the server as a crash would and starts it again on the same files and port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Starts a PostgreSQL of our own on a free port, its files in a temporary folder, gone after `stop`. */
export async function startPostgres(): Promise<Cluster> {
  const binaries = findBinaries()
  const folder = mkdtempSync(join(tmpdir(), "postgres-"))
  const account = serverAccount()
  if (account) chownSync(folder, account.uid, account.gid)
  const files = join(folder, "files")
  const initdb = [join(binaries, "initdb"), "--pgdata", files, "--username", user, "--auth", "trust"]
  await run(account, [...initdb, "--encoding", "UTF8", "--locale", "C", "--no-sync"])
  const port = freePort()
  const postgres = [join(binaries, "postgres"), "-D", files, "-k", folder, "-h", "127.0.0.1", "-p", `${port}`]
  // The files are thrown away with the tests: nothing is gained by waiting for the disk.
  async function startServer() {
    const server = spawn(account, [...postgres, "-c", "fsync=off", "-c", "timezone=America/New_York"])
    await untilReady(server)
    return server
  }
  let server = await startServer()

  return {
    url: (database) => `postgres://${user}@127.0.0.1:${port}/${database}`,
    program: (name) =>
      Bun.which(name, { PATH: `${binaries}:${process.env.PATH}:${newestPackage()}` }) ?? name,
    async restart() {
      server.kill("SIGQUIT")
      await server.exited
      server = await startServer()
    },
    async stop() {
      server.kill("SIGINT")
      await server.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const user = "tester"
const debianFolder = "/usr/lib/postgresql"

/** The folder of the server's programs: from the path, else the newest that Debian's packages have put aside. */
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

/** PostgreSQL refuses to run as root: then the account runs it that its package has made. */
function serverAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const id = (flag: string) => Number(Bun.spawnSync(["id", flag, "postgres"]).stdout.toString().trim() || "x")
  const account = { uid: id("-u"), gid: id("-g") }
  if (Number.isNaN(account.uid)) throw new Error("root needs an account named postgres to run PostgreSQL")
  return account
}

function spawn(account: Account | null, command: string[]) {
  const as = account
    ? ["setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups", "--pdeathsig=INT"]
    : []
  return Bun.spawn([...as, ...command], {
    cwd: "/",
    env: { PATH: process.env.PATH, LC_ALL: "C" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  })
}

async function run(account: Account | null, command: string[]): Promise<void> {
  const child = spawn(account, command)
  const complaint = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${complaint}`)
}

/** Follows the server's log until it takes connections, and goes on reading it so that it never blocks. */
async function untilReady(server: ReturnType<typeof spawn>): Promise<void> {
  const reader = server.stderr.pipeThrough(new TextDecoderStream()).getReader()
  let log = ""
  while (!log.includes("ready to accept connections")) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`PostgreSQL did not start: ${log}`)
    log += value
  }
  void drain(reader)
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
