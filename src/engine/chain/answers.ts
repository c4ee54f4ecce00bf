import type { Hex } from "viem"
import { partsOf } from "../../platform/parts.ts"

/**
 * Calls `asks` in turn until one responds: the next as soon as one fails or has been silent for too long;
 * then the first response counts. An error that `isAnswer` accepts counts as a response. Throws the
 * `mostTelling` error if all fail.
 */
export function firstAnswer<T>(
  asks: (() => Promise<T>)[],
  isAnswer: (error: unknown) => boolean,
  mostTelling: (errors: unknown[]) => unknown,
  patienceMilliseconds: number,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const waiting = [...asks]
  const failures: unknown[] = []
  let isSettled = false
  let timer: Timer | undefined

  function askNext(): void {
    clearTimeout(timer)
    const ask = isSettled ? undefined : waiting.shift()
    if (!ask) return
    if (waiting.length > 0) timer = setTimeout(askNext, patienceMilliseconds)
    ask().then(resolve, noteFailure)
  }

  function noteFailure(error: unknown): void {
    failures.push(error)
    if (isAnswer(error)) reject(error)
    else if (failures.length === asks.length) reject(mostTelling(failures))
    else askNext()
  }

  askNext()
  return promise.finally(() => {
    isSettled = true
    clearTimeout(timer)
  })
}

/**
 * Returns all responses except those that come too long after the first. Throws the `mostTelling` error if all fail.
 */
export async function timelyAnswers<T>(
  asked: Promise<T>[],
  mostTelling: (errors: unknown[]) => unknown,
  patienceMilliseconds: number,
): Promise<T[]> {
  await Promise.any(asked).catch(({ errors }: AggregateError) => Promise.reject(mostTelling(errors)))
  const patience = Promise.withResolvers<null>()
  const timer = setTimeout(patience.resolve, patienceMilliseconds, null)
  const inTime = asked.map((answer) => {
    const given = answer.then(
      (value) => ({ value }),
      () => null,
    )
    return Promise.race([given, patience.promise])
  })
  const answers = await Promise.all(inTime)
  clearTimeout(timer)
  return answers.flatMap((answer) => (answer ? [answer.value] : []))
}

/** Returns the results in order, asking for at most `atOnce` at the same time. Throws the first error. */
export async function someAtATime<One, Answer>(
  all: readonly One[],
  atOnce: number,
  ask: (one: One) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const part of partsOf(all, atOnce)) answers.push(...(await Promise.all(part.map(ask))))
  return answers
}

/** Returns the number that a provider says; null if it says none, such as null or 0x. */
export function amountIn(said: unknown): bigint | null {
  try {
    return BigInt(said as Hex)
  } catch {
    return null
  }
}
