/**
 * Reads the body of a response as text, at most about `mostBytes` of it, and leaves the rest unread: the sender decides
 * how long it is, and how much of it a few compressed bytes become.
 */
export async function readBounded({ body }: Response, mostBytes: number): Promise<BoundedText> {
  if (!body) return { text: "", is_whole: true }
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  for (let read = 0; read <= mostBytes; ) {
    const { value, done } = await reader.read()
    if (done) return { text: text + decoder.decode(), is_whole: true }
    read += value.byteLength
    text += decoder.decode(value.subarray(0, mostBytes), { stream: true })
  }
  // A rejected cancellation only says that the connection failed.
  await reader.cancel().catch(() => {})
  return { text, is_whole: false }
}

/** `is_whole`: the body ended within the limit. */
type BoundedText = { text: string; is_whole: boolean }
