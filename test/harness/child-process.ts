/** A command that is killed when its parent dies, if the system supports that. */
export function tiedToParent(command: string[]): string[] {
  return Bun.which("setpriv") ? ["setpriv", "--pdeathsig=KILL", ...command] : command
}
