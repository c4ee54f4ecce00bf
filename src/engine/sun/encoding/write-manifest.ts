import { Encrypter } from "age-encryption"
import { inParts, writeWhole } from "../../../platform/whole-file.ts"
import type { ManifestLine } from "./manifest.ts"

/** A file of recipients that cannot be used: one line that says why. */
export class RecipientError extends Error {
  override name = "RecipientError"
}

/**
 * Writes a manifest as JSON lines, in constant memory; it appears at `path` complete, or not at all. With `recipients`
 * it is sealed to them in the age format (age-encryption.org/v1), for any age tool.
 */
export async function writeManifest(
  path: string,
  lines: AsyncIterable<ManifestLine> | Iterable<ManifestLine>,
  recipients: readonly string[] = [],
): Promise<void> {
  const text = streamOf(inParts(linesOf(lines)))
  await writeWhole(path, recipients.length === 0 ? text : await sealer(recipients).encrypt(text))
}

/** The public keys in a file: one `age1…` a line, without empty lines and `#` comments. Throws `RecipientError`. */
export function parseRecipients(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const recipients = lines.filter((line) => line !== "" && !line.startsWith("#"))
  if (recipients.length === 0) throw new RecipientError("the file has no public key: age-keygen makes one")
  if (recipients.some((line) => line.startsWith("AGE-SECRET-KEY-")))
    throw new RecipientError("the file has a secret key: give the public one, which begins with age1")
  sealer(recipients)
  return recipients
}

/** Takes the next part only when asked, so that at most one waits. */
function streamOf(parts: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await parts.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

async function* linesOf(lines: AsyncIterable<ManifestLine> | Iterable<ManifestLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`
}

function sealer(recipients: readonly string[]): Encrypter {
  const encrypter = new Encrypter()
  for (const [index, recipient] of recipients.entries()) {
    try {
      encrypter.addRecipient(recipient)
    } catch {
      throw new RecipientError(`key ${index + 1} of the file is not an age public key (age1…)`)
    }
  }
  return encrypter
}
