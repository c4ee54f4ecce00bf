import { expect, test } from "bun:test"
import { listenFailure } from "../../src/platform/listen-failure.ts"
import { StartError } from "../../src/platform/start-error.ts"

// Where a real one can be had, as of a port that is taken, test/processes has it.

const place = {
  port: "port 80",
  another: "set PORT to another one",
  host: { variable: "HOST", value: "::1" },
}
const failure = (code: string) => Object.assign(new Error("it does not go"), { code })

test("a port that takes rights names the right and the variable", () => {
  expect(listenFailure(failure("EACCES"), place)).toEqual(
    new StartError(
      "port 80 is closed to this process; grant it CAP_NET_BIND_SERVICE, or set PORT to another one",
    ),
  )
})

test.each([
  ["a host of a kind that the machine has not", "EAFNOSUPPORT"],
  ["a host that no file and no server of names knows", "ENOENT"],
])("%s names its variable", (_what, code) => {
  expect(listenFailure(failure(code), place)).toEqual(
    new StartError(
      'HOST takes an IP address or name of this machine, not "::1"; 0.0.0.0 means all addresses',
    ),
  )
})

test("what no setting mends stays as it is, and so does what the host is to blame for where nobody sets it", () => {
  const { port, another } = place
  const [few, unknown] = [failure("EMFILE"), failure("EADDRNOTAVAIL")]
  expect(listenFailure(few, place)).toBe(few)
  expect(listenFailure(unknown, { port, another })).toBe(unknown)
})
