import { startWorkers } from "../workers/start.ts"
import { startServer } from "./api/server.ts"
import { type DevService, startDev } from "./dev/start.ts"
import { startOperatorPort } from "./operator/port/start.ts"
import { processEnvironment } from "./platform/config.ts"
import { runUntilStopped, say } from "./platform/run.ts"

await runUntilStopped(async () => {
  say("starting the local chain, the database, the workers and the API …")
  const { service, folder, stop } = await startDev(processEnvironment, {
    startServer,
    startWorkers,
    startOperatorPort,
  })
  greet(service, folder)
  return stop
})

function greet(service: DevService, folder: string): void {
  const { base_url, api_key, chain, wallets } = service
  say(`
Next:

  1. Tap a jacket in the shop, and claim it:  ${service.shop_url}
  2. Follow the quick start, your key filled in:
     ${base_url}/docs#key=${api_key}
  3. Or ask the API yourself, first for a collection:
     curl ${base_url}/v1/collections -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' -d '{"name":"Autumn Jackets"}'
  4. Watch every step of the demo:  bun run demo, and ${service.operator_url}/console

The service is ready at ${base_url}

  local chain       ${chain.rpc_url} (chain id ${chain.id})
  a wallet          ${wallets[0]?.address}
  its private key   ${wallets[0]?.private_key}
  publishable key   ${service.publishable_key}
  API key           ${api_key}

All of it is kept in ${folder}, these lines in its dev.json. Ctrl-C stops it; nothing is lost.
`)
}
