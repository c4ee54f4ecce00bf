/** Files that are mutated, with the test files that must detect it, the quickest first. */
export type Area = {
  name: string
  files: string[]
  /** The program that builds from them what is run. */
  build?: string
  tests: string[]
}

export const areas: Area[] = [
  {
    name: "machines",
    files: ["machines/*.ts"],
    tests: ["machines/machines", "machines/snapshots", "machines/migrations"],
  },
  {
    name: "runtime",
    files: ["src/engine/actors/*.ts"],
    tests: [
      "engine/actors",
      "machines/migrations",
      "http/open-work",
      "events/webhooks",
      "resources/chip-replacements",
      "resources/unsent-authorizations",
      "resources/ownership",
      "operator/finding",
      "events/feed",
      "engine/owners",
    ],
  },
  {
    name: "sun",
    files: ["src/engine/sun/*.ts", "src/engine/sun/*/*.ts"],
    tests: [
      "engine/sun",
      "engine/sun-property",
      "engine/key-schemes",
      "engine/encoding",
      "engine/diagnosis",
      "engine/manifest-file",
    ],
  },
  {
    name: "http",
    files: ["src/http/*.ts"],
    tests: [
      "http/order",
      "http/bodies",
      "http/answers",
      "http/lists",
      "http/cors",
      "http/credentials",
      "http/rate-limits",
      "http/idempotency",
      "http/day-two",
      "http/transport",
      "http/open-work",
      "http/bad-inputs",
    ],
  },
  {
    name: "lanes",
    files: ["src/engine/lanes/*.ts"],
    tests: [
      "engine/next-move",
      "engine/turns",
      "engine/fees",
      "engine/findings",
      "engine/lane-rows",
      "engine/push-on",
      "engine/lanes",
      "engine/moves",
      "engine/engine",
      "engine/rotation",
      "engine/worker-traces",
    ],
  },
  {
    name: "contracts",
    files: ["contracts/*.sol"],
    build: "contracts/compile.ts",
    tests: [
      "contracts/authorizers",
      "contracts/stores",
      "contracts/desk",
      "contracts/stolen-keys",
      "contracts/gas",
      "contracts/factory",
      "contracts/contracts",
      "contracts/property",
    ],
  },
]
