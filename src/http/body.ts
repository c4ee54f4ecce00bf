import { ApiError, formError } from "../platform/errors.ts"
import { type JsonObject, parseJsonObject } from "./json.ts"

/**
 * Returns the JSON object in a request's body; an empty body counts as `{}`. Throws `request.unsupported_media_type`,
 * `request.too_large` or `validation.failed`.
 */
export async function readBody(request: Request): Promise<JsonObject> {
  const encoding = request.headers.get("content-encoding")
  if (encoding && encoding.toLowerCase() !== "identity")
    throw new ApiError("request.unsupported_media_type", "Send the body without Content-Encoding.")
  const bytes = await readBytes(request)
  if (bytes?.length === 0) return {}
  const mediaType = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase()
  if (mediaType !== "application/json")
    throw new ApiError("request.unsupported_media_type", "Send the body as application/json.")
  if (!bytes) throw new ApiError("request.too_large")
  return parseJsonObject(decode(bytes))
}

const maxBytes = 64 * 1024

/** Returns the bytes of the body, or null if there are too many. Throws `validation.failed` if it is cut off. */
async function readBytes(request: Request): Promise<Uint8Array | null> {
  if (!request.body) return new Uint8Array()
  const declared = request.headers.get("content-length")
  if (declared && Number(declared) > maxBytes) return null
  try {
    return declared ? new Uint8Array(await request.arrayBuffer()) : await readStream(request.body)
  } catch {
    throw formError("The body ended before it was complete.")
  }
}

async function readStream(body: ReadableStream<Uint8Array>): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Decodes UTF-8 and drops a byte order mark. Throws `validation.failed`. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw formError("The body is not valid UTF-8.")
  }
}
