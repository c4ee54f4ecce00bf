import { createServer } from "node:http"
import { Webhook } from "standardwebhooks"

const webhook = new Webhook(process.env.WEBHOOK_SECRET)
createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  try {
    const event = webhook.verify(body, request.headers)
    process.stdout.write(`${event.id} ${event.type} ${event.unit_id}\n`)
    response.writeHead(204).end()
  } catch (error) {
    process.stderr.write(`rejected: ${error.message}\n`)
    response.writeHead(400).end()
  }
}).listen(Number(process.env.PORT ?? 4000))
