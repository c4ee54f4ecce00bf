/** All there is to know of an error code: how it is answered, and what its page says. */
export type ErrorEntry<Code extends string = string> = {
  status: number
  /** Whether the same request may succeed later. */
  retryable: boolean
  /** The message of a refusal that has no better one. */
  title: string
  happened: string
  /** What to do, a step in each sentence. */
  fix: string
  /** The operation whose example is a request that works. */
  operation: string
  /** Other codes that are close to it. */
  related: readonly Code[]
}

/** A family of codes, each with its entry. */
export type ErrorEntries = Record<string, ErrorEntry>
