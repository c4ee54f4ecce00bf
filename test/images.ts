import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { type Launch, startCluster } from "./cluster.ts"
import { brokenPromises, startLoad, untilSettled } from "./cluster-load.ts"

/**
 * Builds both targets of the Dockerfile on a Debian of our own with the Bun that runs this, without a Docker engine,
 * and takes units through their life on the images. By hand, as root: bun run images [--mirror URL]
 */
const { values } = parseArgs({ options: { mirror: { type: "string" } } })
for (const program of ["buildah", "debootstrap"])
  if (!Bun.which(program)) fail(`${program} is missing: apt-get install buildah debootstrap`)

const root = join(import.meta.dir, "..")
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
try {
  await buildBase()
  for (const target of ["api", "worker"]) await buildTarget(target)
  await run([...buildah, "images"])
  await useImages()
} finally {
  Bun.spawnSync([...buildah, "rm", "--all"])
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)

async function buildBase(): Promise<void> {
  const base = join(folder, "base")
  const mirror = values.mirror ? [values.mirror] : []
  // What debootstrap mounts inside the base is gone with its own mount namespace, however it ends.
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
  // The base trusts whom this machine trusts, which may fetch packages through a proxy of its own.
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

/** Starts a container of each image as its Dockerfile says, beside a Postgres, a Redis and a chain of this machine. */
async function useImages(): Promise<void> {
  const containers = new Map<string, string>()
  for (const kind of ["api", "worker"])
    containers.set(kind, await output([...buildah, "from", `service-${kind}`]))
  const commands = new Map<string, ImageSettings>()
  for (const kind of containers.keys())
    commands.set(
      kind,
      JSON.parse(await output([...buildah, "inspect", "--type", "image", `service-${kind}`])).Docker.config,
    )

  const inContainer = (kind: string, settings: Record<string, string>, files: string) => [
    ...[...buildah, "run", "--isolation", "chroot", "--volume", `${files}:${files}:ro`],
    ...Object.entries(settings).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
    ...[containers.get(kind) ?? "", "--"],
  ]
  const checks: string[][] = []
  const launch: Launch = (kind, settings, files) => {
    chmodSync(files, 0o755)
    const { Cmd, Healthcheck, User } = commands.get(kind) as ImageSettings
    if (User !== "10001:10001") fail(`the image of ${kind} runs as ${User}`)
    const given = { ...settings, DATA_DIR: "/data" }
    checks.push([...inContainer(kind, given, files), ...Healthcheck.Test.slice(1)])
    return [...inContainer(kind, given, files), ...Cmd]
  }
  const cluster = await startCluster({ apis: 1, workers: 1 }, launch)
  try {
    for (const check of checks) await run(check)
    const load = await startLoad(cluster, { clients: 2 })
    await load.untilProgress(4)
    await load.finish()
    await untilSettled(cluster)
    const broken = await brokenPromises(cluster, load.promises)
    if (broken.length > 0) fail(broken.join("\n"))
    process.stdout.write(`✓ ${load.promises.claims.length} units claimed on the images\n`)
  } finally {
    await cluster.stop()
  }
}

type ImageSettings = { Cmd: string[]; User: string; Healthcheck: { Test: string[] } }

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
  process.stderr.write(`${line}\n`)
  process.exit(1)
}
