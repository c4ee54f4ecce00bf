import { withDevEnvironment } from "./dev/environment.ts"
import { runOperator } from "./operator/commands/run-operator.ts"
import { processEnvironment } from "./platform/config.ts"
import { keepFilesPrivate, reachThisMachineDirectly } from "./platform/run.ts"

keepFilesPrivate()
reachThisMachineDirectly()
let otherwise: string | undefined
const terminal = {
  print(text: string, ifUnseen?: string) {
    otherwise = ifUnseen
    return new Promise<void>((written) => process.stdout.write(text, () => written()))
  },
  complain: (text: string) => void process.stderr.write(text),
}
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  const then = otherwise === undefined ? "" : `; ${otherwise}`
  // Without one, the reader, such as `head`, has enough.
  if (error.code !== "EPIPE" || then)
    terminal.complain(`operator: the output cannot be written: ${error.message}${then}\n`)
  process.exit(1)
})
const readEnvironment = () => withDevEnvironment(processEnvironment)
process.exitCode = await runOperator(readEnvironment, terminal, process.argv.slice(2))
