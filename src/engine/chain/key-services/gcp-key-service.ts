import type { KeyService } from "./key-service-account.ts"

const scopes = ["https://www.googleapis.com/auth/cloudkms"]
const timeoutMilliseconds = 5_000

/**
 * Opens a key version of Google Cloud KMS by its resource name, of the algorithm EC_SIGN_SECP256K1_SHA256. Credentials
 * are found as by every Google Cloud tool. Loads only the auth client: the two requests are plain REST, because the
 * full KMS client brings gRPC and three times the size.
 */
export async function gcpKeyService(
  name: string,
  endpoint = "https://cloudkms.googleapis.com",
): Promise<KeyService> {
  const { GoogleAuth } = await import("google-auth-library")
  const auth = new GoogleAuth({ scopes, projectId: name.split("/")[1] ?? "" })
  const url = `${endpoint}/v1/${name}`
  const common = { timeout: timeoutMilliseconds, retryConfig: { httpMethodsToRetry: ["GET", "POST"] } }
  return {
    async publicKey() {
      const { data } = await auth.request<{ pem: string }>({ ...common, url: `${url}/publicKey` })
      return fromBase64(data.pem.replaceAll(/-----[A-Z ]+-----|\s/g, ""))
    },
    async sign(digest) {
      const body = { digest: { sha256: Buffer.from(digest).toString("base64") } }
      const { data } = await auth.request<{ signature: string }>({
        ...common,
        url: `${url}:asymmetricSign`,
        method: "POST",
        data: body,
      })
      return fromBase64(data.signature)
    },
  }
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"))
}
