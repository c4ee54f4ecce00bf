import { StartError } from "./start-error.ts"

/** Where a process was told to listen, in terms of its settings. */
type Place = {
  /** Such as "port 9090 for operators". */
  port: string
  /** How to choose another port, such as "set PORT to another one". */
  another: string
  /** The variable that sets the host, if any. */
  host?: { variable: string; value: string }
}

/** Explains why a process cannot listen. Returns a `StartError` if its operator can fix it, else the error itself. */
export function listenFailure(error: unknown, { port, another, host }: Place): unknown {
  const { code = "" } = error as NodeJS.ErrnoException
  if (code === "EADDRINUSE") return new StartError(`${port} is in use; free it, or ${another}`)
  if (code === "EACCES")
    return new StartError(
      `${port} is not permitted for this process; grant it CAP_NET_BIND_SERVICE, or ${another}`,
    )
  if (!host || !wrongHost.includes(code)) return error
  return new StartError(
    `${host.variable} takes an IP address or name of this machine, not ${JSON.stringify(host.value)}; 0.0.0.0 means all addresses`,
  )
}

/** Bun reports an unknown host name as an invalid argument or as not found; on some machines as a missing file. */
const wrongHost = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL", "ENOENT", "ENOTFOUND"]
