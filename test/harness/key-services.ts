import { secp256k1 } from "@noble/curves/secp256k1"
import { type Hex, hexToBytes } from "viem"

/** A key service that implements its cloud's own protocol; each signature has its own k, and low or high s. */
export type FakeKeyService = {
  url: string
  /** Requests in order: the operation, or the path. */
  asked: string[]
  /** How many of the next signature requests are throttled. */
  throttles: number
  /** How many of the next signature requests get no answer. */
  silent: number
  /** How long each signature takes. */
  delay_milliseconds: number
  /** What it signs instead of the requested digest; null to sign that. */
  signs_instead: Uint8Array | null
  stop(): void
}

/** AWS KMS: JSON 1.1 over POST, the operation in a header. */
export function startAwsKms(privateKey: Hex): FakeKeyService {
  return start(async (service, request) => {
    const operation = request.headers.get("x-amz-target")?.replace("TrentService.", "") ?? ""
    const { KeyId, Message } = (await request.json()) as { KeyId: string; Message?: string }
    service.asked.push(operation)
    const says = (answer: object, status = 200) =>
      Response.json(answer, { status, headers: { "content-type": "application/x-amz-json-1.1" } })
    if (!request.headers.get("authorization")?.startsWith("AWS4-HMAC-SHA256 "))
      return says({ __type: "MissingAuthenticationTokenException" }, 400)
    if (operation === "GetPublicKey")
      return says({ KeyId, KeySpec: "ECC_SECG_P256K1", PublicKey: base64(publicKeyInfo(privateKey)) })
    if (service.throttles > 0) {
      service.throttles -= 1
      return says({ __type: "ThrottlingException", message: "Rate exceeded" }, 400)
    }
    await hesitate(service)
    const digest = service.signs_instead ?? new Uint8Array(Buffer.from(Message ?? "", "base64"))
    return says({ KeyId, Signature: base64(signatureOf(digest, privateKey)) })
  })
}

/** Google Cloud KMS over REST, and the metadata server that authenticates its callers. */
export function startGcpKms(privateKey: Hex): FakeKeyService {
  return start(async (service, request) => {
    const { pathname } = new URL(request.url)
    const headers = { "Metadata-Flavor": "Google" }
    if (pathname.endsWith("/token"))
      return Response.json({ access_token: "here", expires_in: 3_600, token_type: "Bearer" }, { headers })
    if (pathname.startsWith("/computeMetadata/")) return new Response("project", { headers })
    service.asked.push(pathname)
    if (request.headers.get("authorization") !== "Bearer here") return Response.json({}, { status: 401 })
    if (pathname.endsWith("/publicKey")) {
      const lines = base64(publicKeyInfo(privateKey)).match(/.{1,64}/g) ?? []
      return Response.json({
        pem: ["-----BEGIN PUBLIC KEY-----", ...lines, "-----END PUBLIC KEY-----", ""].join("\n"),
      })
    }
    if (service.throttles > 0) {
      service.throttles -= 1
      return Response.json({ error: { code: 429, message: "Quota exceeded" } }, { status: 429 })
    }
    await hesitate(service)
    const { digest } = (await request.json()) as { digest: { sha256: string } }
    const asked = new Uint8Array(Buffer.from(digest.sha256, "base64"))
    return Response.json({ signature: base64(signatureOf(service.signs_instead ?? asked, privateKey)) })
  })
}

function start(answer: (service: FakeKeyService, request: Request) => Promise<Response>): FakeKeyService {
  const service: FakeKeyService = {
    url: "",
    asked: [],
    throttles: 0,
    silent: 0,
    delay_milliseconds: 0,
    signs_instead: null,
    stop: () => {},
  }
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(service, request) })
  service.url = `http://127.0.0.1:${server.port}`
  service.stop = () => server.stop(true)
  return service
}

async function hesitate(service: FakeKeyService): Promise<void> {
  if (service.silent > 0) {
    service.silent -= 1
    await new Promise(() => {})
  }
  await Bun.sleep(service.delay_milliseconds)
}

/** RFC 5480: the OIDs of an elliptic-curve key and of secp256k1, and the uncompressed point. */
function publicKeyInfo(privateKey: Hex): Uint8Array {
  const header = Buffer.from("3056301006072a8648ce3d020106052b8104000a034200", "hex")
  return Buffer.concat([header, secp256k1.getPublicKey(hexToBytes(privateKey), false)])
}

function signatureOf(digest: Uint8Array, privateKey: Hex): Uint8Array {
  return secp256k1.sign(digest, hexToBytes(privateKey), { lowS: false, extraEntropy: true }).toDERRawBytes()
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64")
}
