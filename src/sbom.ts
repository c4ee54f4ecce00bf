import { join } from "node:path"
import { cycloneDx, licenceLines, shippedPackages } from "./operator/shipped-packages.ts"
import { complain, say } from "./platform/run.ts"

const usage = `bun src/sbom.ts [--licences]

Prints what is shipped beside this project, as a CycloneDX document: every package that bun.lock names for production
and that is installed here, with its licence and hash. --licences prints the licences alone.`

const words = process.argv.slice(2)
if (words.some((word) => word !== "--licences")) {
  complain(usage)
  process.exit(words.includes("--help") ? 0 : 2)
}
const root = join(import.meta.dir, "..")
const shipped = shippedPackages(root)
say(words.includes("--licences") ? licenceLines(shipped) : JSON.stringify(cycloneDx(root, shipped), null, 2))
