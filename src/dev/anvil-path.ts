import { StartError } from "../platform/start-error.ts"

/** The anvil of this system, from its npm package. Throws `StartError` where there is none. */
export function anvilPath(): string {
  const arch = process.arch === "x64" ? "amd64" : process.arch
  try {
    return Bun.resolveSync(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`, import.meta.dir)
  } catch {
    throw new StartError(`there is no anvil for ${process.platform} ${process.arch}; run "bun install" first`)
  }
}
