import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { privateKeyToAddress } from "viem/accounts"
import { type Cluster, databaseName, type Launch, type Member, startCluster } from "../harness/cluster.ts"
import { brokenPromises, startLoad, untilSettled } from "../harness/cluster-load.ts"

/**
 * Builds both targets of the Dockerfile on a local Debian with this Bun, without a Docker engine, and takes units
 * through their lifecycle on the images. Run manually, as root: bun run images [--mirror URL]
 */
const { values } = parseArgs({ options: { mirror: { type: "string" } } })
const root = join(import.meta.dir, "../..")
const folder = mkdtempSync(join(tmpdir(), "images-"))
const buildah = [
  "buildah",
  "--storage-driver",
  "vfs",
  "--root",
  join(folder, "storage"),
  "--runroot",
  join(folder, "run"),
]
let exitCode = 0
try {
  for (const program of ["buildah", "debootstrap"])
    if (!Bun.which(program)) fail(`${program} is missing: apt-get install buildah debootstrap`)
  await buildBase()
  for (const target of ["api", "worker"]) await buildTarget(target)
  await run([...buildah, "images"])
  await useImages()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  exitCode = 1
} finally {
  Bun.spawnSync([...buildah, "umount", "--all"])
  Bun.spawnSync([...buildah, "rm", "--all"])
  rmSync(folder, { recursive: true, force: true })
}
process.exit(exitCode)

async function buildBase(): Promise<void> {
  const base = join(folder, "base")
  const mirror = values.mirror ? [values.mirror] : []
  // What debootstrap mounts inside the base disappears with its own mount namespace, however it ends.
  await run([
    "unshare",
    "--mount",
    "debootstrap",
    "--variant=minbase",
    "--include=ca-certificates",
    "bookworm",
    base,
    ...mirror,
  ])
  cpSync(process.execPath, join(base, "usr/local/bin/bun"), { dereference: true })
  // The base trusts the certificates of this machine, which may fetch packages through its own proxy.
  const certificates = "/etc/ssl/certs/ca-certificates.crt"
  cpSync(certificates, join(base, certificates), { dereference: true })
  for (const unused of [
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
  ])
    rmSync(join(base, unused), { recursive: true, force: true })
  await run(["tar", "-C", base, "-cf", `${base}.tar`, "."])
  const container = await output([...buildah, "from", "scratch"])
  await run([...buildah, "add", container, `${base}.tar`, "/"])
  await run([...buildah, "config", "--env", `NODE_EXTRA_CA_CERTS=${certificates}`, container])
  await run([...buildah, "commit", "--rm", container, "service-base"])
  for (const used of [base, `${base}.tar`]) rmSync(used, { recursive: true, force: true })
}

async function buildTarget(target: string): Promise<void> {
  const npmrc = join(homedir(), ".npmrc")
  const secret = (await Bun.file(npmrc).exists()) ? ["--secret", `id=npmrc,src=${npmrc}`] : []
  const options = ["--isolation", "chroot", "--format", "docker", "--target", target, ...secret]
  const base = ["--build-arg", "BASE_IMAGE=localhost/service-base"]
  await run([...buildah, "build", ...options, ...base, "-t", `service-${target}`, root])
}

/** Runs containers of both images as their Dockerfile says, next to a Postgres, a Redis and a chain of this machine. */
async function useImages(): Promise<void> {
  const containers = { api: await openContainer("api"), worker: await openContainer("worker") }
  const checks: string[][] = []
  const launch: Launch = (kind, { DATA_DIR: _, ...settings }) => {
    const container = containers[kind]
    const chains = settings.CHAINS ?? fail("the cluster names no file of chains")
    mkdirSync(dirname(join(container.folder, chains)), { recursive: true })
    cpSync(chains, join(container.folder, chains))
    const inContainer = (command: string[]) => commandInside(container, settings, command)
    checks.push(inContainer(container.settings.Healthcheck.Test.slice(1)))
    return inContainer([...(container.settings.Entrypoint ?? []), ...container.settings.Cmd])
  }
  const cluster = await startCluster({ apis: 1, workers: 1 }, launch)
  try {
    for (const container of Object.values(containers)) await checkContent(container)
    await useCommands(containers.api, cluster)
    const load = await startLoad(cluster, { clients: 2 })
    await load.untilProgress(2)
    for (const [index, member] of [...cluster.apis, ...cluster.workers].entries())
      await replace(member, checks[index] ?? [])
    await load.untilProgress(2)
    await load.finish()
    await untilSettled(cluster)
    const broken = await brokenPromises(cluster, load.promises)
    if (broken.length > 0) fail(broken.join("\n"))
    say(`${load.promises.claims.length} units claimed on the images, and every promise kept`)
  } finally {
    await cluster.stop()
  }
}

type Container = { image: string; folder: string; settings: ImageSettings }

type ImageSettings = {
  Cmd: string[]
  Entrypoint: string[] | null
  Env: string[]
  User: string
  WorkingDir: string
  Healthcheck: { Test: string[] }
}

async function openContainer(kind: "api" | "worker"): Promise<Container> {
  const image = `service-${kind}`
  const described = JSON.parse(await output([...buildah, "inspect", "--type", "image", image]))
  const folder = await output([...buildah, "mount", await output([...buildah, "from", image])])
  return { image, folder, settings: described.Docker.config }
}

/**
 * The command that runs another one inside a container, with the image's own user, folder and variables, as process 1
 * of its own namespace. An engine does the same, and process 1 ignores signals that it does not handle.
 */
function commandInside(
  { folder, settings }: Container,
  variables: Record<string, string>,
  command: string[],
): string[] {
  const mountSystem = 'for one in dev proc; do mount --rbind "/$one" "$0/$one" || exit; done; exec "$@"'
  // Waits again if the signal has interrupted the first wait.
  const passOnStop = `"$@" & child=$!; trap 'kill "$child"' TERM
while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done; exit "$code"`
  const [user, group] = settings.User.split(":")
  const environment = [...settings.Env, ...Object.entries(variables).map((pair) => pair.join("="))]
  return [
    ...["unshare", "--mount", "sh", "-c", mountSystem, folder],
    ...["unshare", "--pid", "sh", "-c", passOnStop, "sh"],
    ...["chroot", folder, "setpriv", `--reuid=${user}`, `--regid=${group}`, "--clear-groups"],
    // Set after the change of user, which resets it.
    ...["--pdeathsig=KILL", "env", "--ignore-environment", `--chdir=${settings.WorkingDir}`],
    ...[...environment, ...command],
  ]
}

/** The container runs as process 1 of a user without write access, and contains nothing that only development needs. */
async function checkContent(container: Container): Promise<void> {
  const mayNothing = '[ $$ = 1 ] && [ "$(id -u)" != 0 ] && [ ! -w . ] && [ ! -w src/main.ts ] && [ -w /data ]'
  await run(commandInside(container, {}, ["sh", "-c", mayNothing]))
  const inside = readdirSync(join(container.folder, container.settings.WorkingDir)).sort()
  const wanted = readFileSync(join(root, ".dockerignore"), "utf8")
    .split("\n")
    .flatMap((line) => /^!([^/]+)/.exec(line)?.[1] ?? [])
  if (!Bun.deepEquals(inside, [...wanted, "node_modules", "sbom.cdx.json"].sort()))
    fail(`${container.image} holds ${inside.join(", ")}`)
  const { dependencies, devDependencies } = await Bun.file(join(root, "package.json")).json()
  const packages = join(container.folder, container.settings.WorkingDir, "node_modules")
  const isInside = (name: string) => existsSync(join(packages, name))
  const missing = Object.keys(dependencies).filter((name) => !isInside(name))
  const needed = neededIn(packages)
  const needless = Object.keys(devDependencies).filter((name) => isInside(name) && !needed.has(name))
  if (missing.length > 0) fail(`${container.image} lacks ${missing.join(", ")}`)
  if (needless.length > 0)
    fail(`${container.image} holds ${needless.join(", ")}, which only development needs`)
  say(`${container.image} runs as ${container.settings.User} and holds nothing that only development needs`)
}

/** What the packages of a folder name as their own dependencies: a package of development may be one of them. */
function neededIn(packages: string): Set<string> {
  const files = ["*/package.json", "@*/*/package.json"].flatMap((each) => [
    ...new Bun.Glob(each).scanSync(packages),
  ])
  const dependencies = (file: string) =>
    Object.keys(JSON.parse(readFileSync(join(packages, file), "utf8")).dependencies ?? {})
  return new Set(files.flatMap(dependencies))
}

/** The commands that an operator runs in a container: the deployment of the factory and the operator CLI. */
async function useCommands(container: Container, { postgres, chain }: Cluster): Promise<void> {
  const key = "/deployer.key"
  // The first account of every local chain.
  const deployer = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
  writeFileSync(join(container.folder, key), deployer)
  const authorizer = privateKeyToAddress(chain.authorizer_key)
  const operators = chain.signer_keys.map(privateKeyToAddress).join(",")
  const options = ["--rpc-url", chain.rpc_url, "--key-file", key, "--authorizer", authorizer]
  const deploy = ["bun", "src/deploy-factory.ts", ...options, "--operators", operators]
  await run(commandInside(container, {}, deploy))
  const settings = {
    DATABASE_URL: postgres.url(databaseName),
    SERVICE_SECRET: "a secret of tests that is long enough",
  }
  await run(commandInside(container, settings, ["bun", "src/operator.ts", "stuck"]))
  say(`${container.image} deploys the factory and has the operator CLI`)
}

/** Asks a running process to stop, as an engine does, and starts it again. */
async function replace(member: Member, check: string[]): Promise<void> {
  // The default after which an engine kills what has not ended.
  const graceMilliseconds = 10_000
  await run(check)
  const begin = performance.now()
  const exitCode = await Promise.race([member.stop(), Bun.sleep(graceMilliseconds)])
  const seconds = ((performance.now() - begin) / 1_000).toFixed(1)
  if (exitCode === undefined) fail(`${member.name} was still there ${seconds} s after SIGTERM`)
  if (exitCode !== 0)
    fail(`${member.name} ended with ${exitCode} after SIGTERM:\n${member.log().slice(-2_000)}`)
  if (Bun.spawnSync(check).success) fail(`${member.name} is healthy although it has ended`)
  await member.start()
  await run(check)
  say(`${member.name} was healthy, ended with 0 in ${seconds} s after SIGTERM at work, and is back`)
}

function say(line: string): void {
  process.stdout.write(`✓ ${line}\n`)
}

async function run(command: string[]): Promise<void> {
  process.stdout.write(
    `▸ ${command
      .filter((part) => !part.includes("="))
      .join(" ")
      .slice(0, 150)}\n`,
  )
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [printed, complaint, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (exitCode !== 0)
    throw new Error(
      `${command[0]} ended with ${exitCode}:\n${printed.slice(-2_000)}\n${complaint.slice(-2_000)}`,
    )
  if (command.includes("images")) process.stdout.write(printed)
}

async function output(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  const printed = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed`)
  return printed.trim()
}

function fail(line: string): never {
  throw new Error(line)
}
