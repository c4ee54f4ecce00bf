import { partsOf } from "../../platform/parts.ts"

/**
 * Asks one after the other until one answers: the next one as soon as one failed, or has been silent for so long, when
 * the answer of either is taken. An error that `isAnswer` is one, too. Throws the `mostTelling` error where all fail.
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
 * What all answer, without those that are silent so long after the first answer. Throws the `mostTelling` error where all
 * fail.
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

/** What is answered to each, in their order, where no more than so many are asked at the same time. Throws the first error. */
export async function someAtATime<One, Answer>(
  all: readonly One[],
  atOnce: number,
  ask: (one: One) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const part of partsOf(all, atOnce)) answers.push(...(await Promise.all(part.map(ask))))
  return answers
}
