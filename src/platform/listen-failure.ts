import { StartError } from "./start-error.ts"

/** Where a process was to listen, in the words of the settings. */
type Place = {
  /** Such as "port 9090 for operators". */
  port: string
  /** How it gets another port, such as "set PORT to another one". */
  another: string
  /** What sets the host; left out where nothing does. */
  host?: { variable: string; value: string }
}

/** Why a process cannot listen: a `StartError` where its operator can fix it, else the error itself. */
export function listenFailure(error: unknown, { port, another, host }: Place): unknown {
  const { code = "" } = error as NodeJS.ErrnoException
  if (code === "EADDRINUSE") return new StartError(`${port} is in use; free it, or ${another}`)
  if (code === "EACCES")
    return new StartError(`${port} is closed to this process; grant it CAP_NET_BIND_SERVICE, or ${another}`)
  if (!host || !wrongHost.includes(code)) return error
  return new StartError(
    `${host.variable} takes an IP address or name of this machine, not ${JSON.stringify(host.value)}; 0.0.0.0 means all addresses`,
  )
}

/** Bun reports an unknown name as an invalid argument or as not found, on some machines like a missing file. */
const wrongHost = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL", "ENOENT", "ENOTFOUND"]
