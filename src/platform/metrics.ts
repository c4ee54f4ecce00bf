import { Counter, Gauge, Histogram, Registry } from "prom-client"

/** What this process counts and measures itself. Other metrics are read on request from elsewhere. */
export const registry = new Registry()

const requests = new Counter({
  name: "service_requests_total",
  help: "HTTP requests",
  labelNames: ["operation", "status"],
  registers: [registry],
})
const seconds = new Histogram({
  name: "service_request_seconds",
  help: "Time from a request to its response, in seconds",
  labelNames: ["operation"],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  registers: [registry],
})
const taps = new Counter({
  name: "service_taps_total",
  help: "Taps by outcome: recorded, dry_run, or the error code",
  labelNames: ["outcome"],
  registers: [registry],
})
// An alert compares these two, and would not fire while one of them has never been counted.
for (const outcome of ["recorded", "chip.invalid_e_value"]) taps.inc({ outcome }, 0)
// Another one looks at an increase, which the first count of all would not be.
taps.inc({ outcome: "quota.exceeded" }, 0)
const deliveries = new Counter({
  name: "service_webhook_deliveries_total",
  help: "Attempts to deliver an event to a webhook endpoint, by outcome: delivered or failed",
  labelNames: ["outcome"],
  registers: [registry],
})
new Gauge({
  name: "service_memory_bytes",
  help: "Resident memory of the process, in bytes",
  registers: [registry],
  collect() {
    this.set(process.memoryUsage.rss())
  },
})

/** Counts one request with its response; `operation` is null for an unknown path. */
export function countRequest(request: {
  operation: string | null
  status: number
  code: string | null
  milliseconds: number
}): void {
  const operation = request.operation ?? "none"
  requests.inc({ operation, status: String(request.status) })
  seconds.observe({ operation }, request.milliseconds / 1000)
  if (operation !== "createTap") return
  taps.inc({ outcome: request.code ?? (request.status === 201 ? "recorded" : "dry_run") })
}

/** Counts one attempt to deliver an event. */
export function countDelivery({ error }: { error: string | null }): void {
  deliveries.inc({ outcome: error === null ? "delivered" : "failed" })
}
