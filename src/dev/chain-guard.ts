/**
 * A proxy that refuses web pages: anvil would otherwise obey any page that a developer visits. Browsers name the page
 * that asks; programs name none. `onSend` gets the chain's response to whatever sends a transaction.
 */
export function startChainGuard(
  port: number,
  anvilUrl: string,
  onSend: (answer: Promise<unknown>) => void,
): { port: number; stop(): Promise<void> } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 60,
    async fetch(request) {
      if (/^(https?:|null)/.test(request.headers.get("origin") ?? ""))
        return new Response("Web pages may not use this chain.\n", { status: 403 })
      const { method, headers } = request
      const body = await request.text()
      const type = { "content-type": headers.get("content-type") ?? "application/json" }
      const asked = fetch(anvilUrl, { method, headers: type, ...(body && { body }) })
      if (body.includes("_send")) onSend(asked)
      const answer = await asked
      return new Response(answer.body, {
        status: answer.status,
        headers: { "content-type": "application/json" },
      })
    },
  })
  return { port: server.port ?? port, stop: () => server.stop(true) }
}
