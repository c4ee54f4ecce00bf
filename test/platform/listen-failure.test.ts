import { expect, test } from "bun:test"
import { listenFailure } from "../../src/platform/listen-failure.ts"
import { StartError } from "../../src/platform/start-error.ts"

// Failures that can be produced for real, such as a port in use, are tested in test/processes.

const place = {
  port: "port 80",
  another: "set PORT to another one",
  host: { variable: "HOST", value: "::1" },
}
const failure = (code: string) => Object.assign(new Error("it does not go"), { code })

test("a port that needs a privilege names the privilege and the variable", () => {
  expect(listenFailure(failure("EACCES"), place)).toEqual(
    new StartError(
      "port 80 is not permitted for this process; grant it CAP_NET_BIND_SERVICE, or set PORT to another one",
    ),
  )
})

test.each([
  ["a host of an unsupported address family", "EAFNOSUPPORT"],
  ["a host name that cannot be resolved", "ENOENT"],
])("%s names its variable", (_what, code) => {
  expect(listenFailure(failure(code), place)).toEqual(
    new StartError(
      'HOST takes an IP address or name of this machine, not "::1"; 0.0.0.0 means all addresses',
    ),
  )
})

test("an error that no setting can fix stays as it is, and so does a host error if no variable sets the host", () => {
  const { port, another } = place
  const [few, unknown] = [failure("EMFILE"), failure("EADDRNOTAVAIL")]
  expect(listenFailure(few, place)).toBe(few)
  expect(listenFailure(unknown, { port, another })).toBe(unknown)
})
