/** Returns bytes as upper-case hexadecimal digits, as chips, manifests and the API show them. */
export function upperHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase()
}
