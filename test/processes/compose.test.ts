import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getContractAddress, type Hex } from "viem"
import { privateKeyToAddress } from "viem/accounts"
import { scripts } from "../../package.json"
import { loadConfig } from "../../src/platform/config.ts"

const root = join(import.meta.dir, "../..")
const readText = (path: string) => readFileSync(join(root, path), "utf8")
const compose = Bun.YAML.parse(readText("compose.yaml")) as Compose
const dockerfile = readText("Dockerfile")
const services = Object.entries(compose.services)
const built = services.flatMap(([name, { build }]) => (build ? [{ name, target: build.target }] : []))
const completed = "service_completed_successfully"
const processes = ["api", "worker"]
const folder = mkdtempSync(join(tmpdir(), "compose-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("compose.yaml", () => {
  test("builds stages that the Dockerfile has", () => {
    const stages = [...dockerfile.matchAll(/^FROM .+ AS (\w+)$/gm)].map(([, stage]) => stage)
    for (const { target } of built) expect(stages).toContain(target)
  })

  test("pins a version of every other image", () => {
    const images = services.flatMap(([, { image }]) => image ?? [])
    expect(images).toHaveLength(services.length - built.length)
    for (const image of images) expect(image).toMatch(/:v?\d[\w.]*$/)
  })

  test("waits for services that exist, and for health only if there is a health check", () => {
    for (const [, { depends_on }] of services)
      for (const [awaited, { condition }] of Object.entries(depends_on ?? {})) {
        const service = compose.services[awaited]
        if (condition === "service_healthy") expect(service?.healthcheck?.test).toBeArray()
        else expect([awaited, condition, service?.restart]).toEqual(["factory", completed, undefined])
      }
  })

  test("restarts its processes together with what they depend on, as after a reboot", () => {
    const awaited = services.flatMap(([, { depends_on }]) => Object.entries(depends_on ?? {}))
    for (const [name, { condition }] of awaited)
      if (condition === "service_healthy")
        expect([name, serviceNamed(name).restart]).toEqual([name, serviceNamed("api").restart])
  })

  test("refers to existing configs and volumes", () => {
    for (const [, { configs, volumes }] of services) {
      for (const { source } of configs ?? []) expect(compose.configs[source]?.content).toBeString()
      for (const volume of volumes ?? []) expect(compose.volumes).toContainKey(volume.split(":")[0] ?? "")
    }
  })

  test("publishes no port with publicly known keys to other machines", () => {
    for (const [, { ports }] of services)
      for (const port of ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  test.each(processes)("gives the %s longer to stop than it needs, and restarts it", (name) => {
    const { stop_grace_period, restart } = serviceNamed(name)
    expect(Number(/^(\d+)s$/.exec(stop_grace_period ?? "")?.[1])).toBeGreaterThan(10)
    expect(restart).toBe("unless-stopped")
  })

  test.each(processes)("gives the %s settings that the configuration accepts", (name) => {
    const config = loadConfig(withChainsFile(environmentOf(name)))
    expect(config.database_url).toMatch(/@postgres\//)
    expect(config.redis_url).toMatch("//redis:")
    expect(config.chains.map(({ rpc_urls }) => rpc_urls)).toEqual([["http://chain:8545"]])
    expect(config.port).toBe(3000)
    expect(config.operator_token).toBeString()
  })

  test("deploys the factory for the service's keys, to the address in CHAINS", () => {
    const { signer_keys, authorizer_key, chains } = loadConfig(withChainsFile(environmentOf("api")))
    const words = serviceNamed("factory").command ?? []
    const option = (name: string) => words.find((word) => word.startsWith(`--${name}=`))?.split("=")[1]
    if (!authorizer_key) throw new Error("there is no AUTHORIZER_KEY")
    expect(option("authorizer")).toBe(privateKeyToAddress(authorizer_key))
    expect(option("operators")).toBe(signer_keys.map((key) => privateKeyToAddress(key as Hex)).join(","))
    expect(option("rpc-url")).toBe(chains[0]?.rpc_urls[0])
    const [config] = serviceNamed("factory").configs ?? []
    expect(option("key-file")).toBe(config?.target)
    const deployer = compose.configs.deployer?.content as `0x${string}`
    const from = privateKeyToAddress(deployer)
    const [factory, desk] = [0n, 1n].map((nonce) => getContractAddress({ from, nonce }))
    expect(chains[0]).toMatchObject({ factory_address: factory, desk_address: desk })
    expect(option("metadata-base-url")).toBe(
      loadConfig(withChainsFile(environmentOf("api"))).metadata_base_url,
    )
  })

  test("publishes the ports that the API listens on and states in its URL", () => {
    const { api_base_url, port, operator_port } = loadConfig(withChainsFile(environmentOf("api")))
    expect(serviceNamed("api").ports).toEqual(
      [port, operator_port].map((each) => `127.0.0.1:${each}:${each}`),
    )
    expect(api_base_url).toBe(`http://localhost:${port}`)
  })
})

describe("environment variables:", () => {
  const known = [
    ...readText("src/platform/config.ts").matchAll(/"([A-Z][A-Z_]+)"|environment\.([A-Z][A-Z_]+)/g),
  ].map(([, quoted, named]) => quoted ?? named)
  /** Read by the dev service. */
  const elsewhere = ["DEV_CHAIN_PORT"]

  test.each(processes)("every one that compose.yaml sets for the %s is read", (name) => {
    for (const variable of Object.keys(environmentOf(name))) expect(known).toContain(variable)
  })

  const documented = [...readText(".env.example").matchAll(/^#([A-Z][A-Z_]+)=(.*)$/gm)]

  test("every one in .env.example is read", () => {
    for (const [, variable] of documented) expect([...known, ...elsewhere]).toContain(variable ?? "")
  })

  test("every one that is read is in .env.example", () => {
    const names = documented.map(([, variable]) => variable)
    for (const variable of known) expect(names).toContain(variable)
  })

  test("the defaults in .env.example are those of the configuration", () => {
    const fallbacks = documented.filter(
      ([, name = ""]) =>
        !/^(API_BASE_URL|METADATA_BASE_URL|DOCS_URL|DATABASE_URL|REDIS_URL|CHAINS|OTEL_.*|.*(KEYS?|SECRET|TOKEN))$/.test(
          name,
        ),
    )
    const SERVICE_SECRET = "a secret of tests that is long enough"
    const written = Object.fromEntries(fallbacks.map(([, name = "", value = ""]) => [name, value]))
    expect(loadConfig({ ...written, SERVICE_SECRET })).toEqual(loadConfig({ SERVICE_SECRET }))
    expect(fallbacks.length).toBeGreaterThan(8)
  })
})

describe("the images", () => {
  const commands = [...dockerfile.matchAll(/^CMD (\[.+\])$/gm)].map(
    ([, list = ""]) => JSON.parse(list) as string[],
  )
  const copied = readText(".dockerignore")
    .split("\n")
    .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : []))

  test("run files that are copied into them", () => {
    const composed = services.flatMap(([name, { command }]) =>
      built.some((each) => each.name === name) && command ? [command] : [],
    )
    for (const [program, file = ""] of [...commands, ...composed]) {
      expect(program).toBe("bun")
      expect(copied).toContain(file.split("/")[0] ?? "")
      expect(existsSync(join(root, file))).toBe(true)
    }
    expect(commands).toHaveLength(2)
  })

  test("are built from what is in the repository", () => {
    for (const path of copied) expect(existsSync(join(root, path))).toBe(true)
  })

  test("run the version of Bun in package.json", async () => {
    const { engines } = await Bun.file(join(root, "package.json")).json()
    expect(dockerfile).toMatch(`oven/bun:${engines.bun}-slim`)
  })

  test("allow as many concurrent HTTP requests as the scripts of package.json do", async () => {
    const name = "BUN_CONFIG_MAX_HTTP_REQUESTS"
    const [, setting] = dockerfile.match(`ENV ${name}=(\\d+)`) ?? []
    for (const script of ["start", "work"] as const)
      expect(scripts[script]).toContain(`&& ${name}=$(bun -p 'process.env.${name} || "${setting}"') bun `)
  })

  test("take that number from .env, too, like the processes that run without a script", async () => {
    const name = "BUN_CONFIG_MAX_HTTP_REQUESTS"
    const start = scripts.start.replace("bun src/install.ts && ", "").replace("src/main.ts", "told.ts")
    writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts: { start } }))
    writeFileSync(join(folder, "told.ts"), `console.log(process.env.${name})`)
    const told = async (set: Record<string, string>) => {
      const { [name]: _, ...others } = process.env
      const env = { ...others, ...set }
      return await Bun.spawn([process.execPath, "run", "start"], { cwd: folder, env }).stdout.text()
    }
    expect(await told({})).toBe("2048\n")
    expect(await told({ FORCE_COLOR: "1" })).toBe("2048\n")
    writeFileSync(join(folder, ".env"), `${name}=512\n`)
    expect(await told({})).toBe("512\n")
    expect(await told({ [name]: "128" })).toBe("128\n")
  })

  const checks = [...dockerfile.matchAll(/^ {2}CMD (\["bun", "-e".+\])$/gm)].map(
    ([, list = ""]) => JSON.parse(list) as string[],
  )

  test.each([
    ["OPERATOR_PORT", "/livez", 200, 0],
    ["OPERATOR_PORT", "/livez", 503, 1],
    ["PORT", "/health", 200, 0],
    ["PORT", "/health", 503, 1],
  ])(
    "have a health check on %s at %s: a response of %d is exit code %d",
    async (variable, path, status, exitCode) => {
      const server = Bun.serve({
        port: 0,
        fetch: ({ url }) => new Response("", { status: new URL(url).pathname === path ? status : 404 }),
      })
      const check = checks.find((command) => command.at(-1)?.includes(path)) ?? []
      const child = Bun.spawn([process.execPath, ...check.slice(1)], {
        env: { [variable]: String(server.port) },
      })
      expect(await child.exited).toBe(exitCode)
      await server.stop(true)
    },
  )
})

type Compose = {
  services: Record<string, Service>
  configs: Record<string, { content?: string }>
  volumes: Record<string, unknown>
}

type Service = {
  build?: { target: string }
  image?: string
  command?: string[]
  environment?: Record<string, string>
  configs?: { source: string; target: string }[]
  volumes?: string[]
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test?: string[]; disable?: boolean }
  restart?: string
  stop_grace_period?: string
}

function serviceNamed(name: string): Service {
  const service = compose.services[name]
  if (!service) throw new Error(`there is no service ${name}`)
  return service
}

/** The environment of a service with the default settings. */
function environmentOf(name: string): Record<string, string> {
  const pairs = Object.entries(serviceNamed(name).environment ?? {})
  return Object.fromEntries(pairs.map(([key, value]) => [key, value.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1")]))
}

/** Replaces the path of the CHAINS file in the container by one that can be read here. */
function withChainsFile(environment: Record<string, string>): Record<string, string> {
  const source = serviceNamed("api").configs?.find(({ target }) => target === environment.CHAINS)?.source
  const path = join(folder, "chains.json")
  writeFileSync(path, compose.configs[source ?? ""]?.content ?? "")
  return { ...environment, CHAINS: path }
}
