import { Encrypter } from "age-encryption"
import { inParts, writeWhole } from "../../../platform/whole-file.ts"
import type { ManifestLine } from "./manifest.ts"

/** A file of recipients that cannot be used; the message is one line that says why. */
export class RecipientError extends Error {
  override name = "RecipientError"
}

/**
 * Writes a manifest as JSON lines, in constant memory. The file appears at `path` complete or not at all. With
 * `recipients` it is encrypted to them in the age format (age-encryption.org/v1), readable by any age tool.
 */
export async function writeManifest(
  path: string,
  lines: AsyncIterable<ManifestLine> | Iterable<ManifestLine>,
  recipients: readonly string[] = [],
): Promise<void> {
  const text = streamOf(inParts(linesOf(lines)))
  await writeWhole(path, recipients.length === 0 ? text : await sealer(recipients).encrypt(text))
}

/**
 * Parses a file of public keys: one `age1…` per line; empty lines and `#` comments are
 * ignored. Throws `RecipientError`.
 */
export function parseRecipients(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const recipients = lines.filter((line) => line !== "" && !line.startsWith("#"))
  if (recipients.length === 0) throw new RecipientError("the file has no public key: age-keygen makes one")
  if (recipients.some((line) => line.startsWith("AGE-SECRET-KEY-")))
    throw new RecipientError("the file has a secret key: give the public one, which begins with age1")
  sealer(recipients)
  return recipients
}

/** Takes the next part only on demand, so that at most one waits in memory. */
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
