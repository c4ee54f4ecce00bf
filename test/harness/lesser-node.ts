export type Call = { id: number; method: string; params?: unknown[] }

/** A node's own response, under an HTTP status. */
export type Said = ({ result: unknown } | { error: { code: number; message: string } }) & { status?: number }

/** A node that forwards to another one, except for calls that `lack` answers itself; it returns null for the rest. */
export function startLesserNode(
  url: string,
  lack: (call: Call) => Said | null,
): { url: string; stop(): Promise<void> } {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const call = (await request.json()) as Call
      const said = lack(call)
      if (said) {
        const { status = 200, ...answer } = said
        return Response.json({ jsonrpc: "2.0", id: call.id, ...answer }, { status })
      }
      const headers = { "content-type": "application/json" }
      return await fetch(url, { method: "POST", headers, body: JSON.stringify(call) })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

/** Rejects requests for the pending block, as nodes without a pool do. */
export function withoutPending({ params }: Call): Said | null {
  return params?.[1] === "pending" ? { error: { code: -32_602, message: "invalid block tag" } } : null
}
