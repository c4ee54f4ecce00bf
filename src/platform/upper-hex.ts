/** Bytes as chips, manifests and the API show them: upper-case hexadecimal digits, two for each. */
export function upperHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase()
}
