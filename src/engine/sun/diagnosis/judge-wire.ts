import { decryptFileContent, tamperOf } from "../file-content.ts"
import type { SunMessage } from "../message.ts"
import type { ExpectedTag, Opening } from "./question.ts"
import type { Judgement } from "./verdicts.ts"

/** Checks the wire status in `enc`; null if the tag was ordered without one. */
export function judgeWire(
  expected: ExpectedTag,
  message: SunMessage,
  { uid, counter }: Opening,
): Judgement | null {
  const { keys, has_tamper } = expected
  const fileKey = keys.keyAt(keys.roles.file_read, { ...expected, uid })
  if (message.enc === undefined || !fileKey || !has_tamper) return null
  const content = decryptFileContent({ uid, metaKey: fileKey, fileKey }, counter, message.enc)
  const status = tamperOf(content)
  const said = content.toString("latin1", 0, 2)
  if (status !== "unknown")
    return { verdict: null, detail: `the tag reports its tamper wire as ${status} (${said})` }
  if (said === "II")
    return { verdict: "wire_off", detail: "the tag reports II for its tamper wire, which is not enabled" }
  return {
    verdict: "wire_unreadable",
    detail: `the tag reports ${/^[\x21-\x7e]{2}$/.test(said) ? said : "unreadable bytes"} instead of a status of its tamper wire`,
  }
}
