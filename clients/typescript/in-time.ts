/** Settles as `promise` does, or rejects with the error that `late` makes after the time; a later result is ignored. */
export async function inTime<T>(promise: Promise<T>, milliseconds: number, late: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const lateness = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), Math.min(milliseconds, longestTimerMilliseconds))
  })
  try {
    return await Promise.race([promise, lateness])
  } finally {
    clearTimeout(timer)
  }
}

/** A longer timer, as of a caller with endless patience, would fire at once. */
const longestTimerMilliseconds = 2 ** 31 - 1

/** One of several attempts, with a signal of its own. */
type Attempt = {
  signal: AbortSignal
  abort(): void
  /** From then on, the caller's signal does not abort it any more. */
  leave(): void
}

/** Begins an attempt that the caller's signal aborts, too. */
export function attemptUnder(caller: AbortSignal | undefined): Attempt {
  // Not `AbortSignal.any`, which Node 20.2 and Safari 17.3 lack.
  const controller = new AbortController()
  const follow = () => controller.abort(caller?.reason)
  const leave = () => caller?.removeEventListener("abort", follow)
  if (caller?.aborted) follow()
  caller?.addEventListener("abort", follow)
  return {
    signal: controller.signal,
    abort() {
      leave()
      controller.abort()
    },
    leave,
  }
}
