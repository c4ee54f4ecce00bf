/** A command that ends with whoever started it, however that ended, where the system can do that. */
export function tiedToParent(command: string[]): string[] {
  return Bun.which("setpriv") ? ["setpriv", "--pdeathsig=KILL", ...command] : command
}
