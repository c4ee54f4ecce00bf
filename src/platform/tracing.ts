import type { DiagLogger } from "@opentelemetry/api"
import type { SpanExporter } from "@opentelemetry/sdk-trace"
import { within } from "./deadline.ts"
import { type Log, loggable } from "./log.ts"

/** Sends spans to an OpenTelemetry collector. `noTracing` costs nothing. */
export type Tracing = {
  record(span: FinishedSpan): void
  /** Sends the remaining spans, for at most a second. */
  close(): Promise<void>
}

/** A span that has ended. */
export type FinishedSpan = {
  name: string
  kind: "server" | "internal"
  /** When it began, in milliseconds of `performance.now()`. */
  since: number
  /** Never secrets or text from callers. */
  attributes: Record<string, string | number | string[]>
  is_failed: boolean
  /** The header of that name (W3C Trace Context, section 3.2), which places the span in its caller's trace. */
  traceparent: string | null
}

export const noTracing: Tracing = { record: () => {}, close: async () => {} }

/**
 * Sends spans by OTLP over HTTP to `<url>/v1/traces`, in batches every few seconds. Spans that the collector rejects,
 * or is too slow for, are dropped and logged. The OpenTelemetry packages are loaded only here.
 */
export async function createTracing(url: string, log: Log): Promise<Tracing> {
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, defaultTextMapGetter, diag, DiagLogLevel } = await import(
    "@opentelemetry/api"
  )
  const { W3CTraceContextPropagator } = await import("@opentelemetry/core")
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http")
  const { resourceFromAttributes } = await import("@opentelemetry/resources")
  const { BatchSpanProcessor, TracerProvider } = await import("@opentelemetry/sdk-trace")

  const exporter = saying(log, new OTLPTraceExporter({ url: `${url}/v1/traces`, timeoutMillis: 5_000 }))
  diag.setLogger(lossesTo(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": "service-api" }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: 6_000 })],
  })
  const tracer = provider.getTracer("service-api")
  const propagator = new W3CTraceContextPropagator()
  return {
    record({ name, kind, since, attributes, is_failed, traceparent }) {
      const parent = propagator.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter)
      const span = tracer.startSpan(
        name,
        { kind: kind === "server" ? SpanKind.SERVER : SpanKind.INTERNAL, startTime: since, attributes },
        parent,
      )
      if (is_failed) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(performance.now())
    },
    async close() {
      const sent = provider
        .shutdown()
        .catch((error) => log.warn(loggable(error), "the last traces could not be sent"))
      await within(sent, stopPatienceMilliseconds, "the collector did not answer").catch(() => {})
    },
  }
}

/** A process has ten seconds to stop, and its last requests may need most of them. */
const stopPatienceMilliseconds = 1_000

/**
 * Logs once when spans are rejected and once when they are accepted again, without the collector's message, which could
 * contain anything.
 */
function saying(log: Log, exporter: SpanExporter): SpanExporter {
  let isTaken = true
  return {
    shutdown: () => exporter.shutdown(),
    export(spans, done) {
      exporter.export(spans, (result) => {
        const wasTaken = isTaken
        isTaken = result.code === 0
        if (wasTaken && !isTaken)
          log.warn({}, "the collector does not accept traces, and they are dropped: check the collector")
        if (!wasTaken && isTaken) log.info({}, "the collector accepts traces again")
        done(result)
      })
    },
  }
}

/**
 * Logs, at most once a minute, that OpenTelemetry warns of lost spans. Its texts could contain anything that the
 * collector sent.
 */
function lossesTo(log: Log): DiagLogger {
  let said_at = Number.NEGATIVE_INFINITY
  const ignore = () => {}
  return {
    warn() {
      if (performance.now() - said_at < 60_000) return
      said_at = performance.now()
      log.warn({}, "some traces may be lost: the collector rejects spans, or is too slow for them")
    },
    // Failed exports, of which the exporter has told.
    error: ignore,
    info: ignore,
    debug: ignore,
    verbose: ignore,
  }
}
