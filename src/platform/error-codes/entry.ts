/** All there is to know about an error code: its response, and what its page says. */
export type ErrorEntry<Code extends string = string> = {
  status: number
  /** Whether the same request may succeed later. */
  retryable: boolean
  /** The message of a refusal that has no better one. */
  title: string
  happened: string
  /** What to do, one step per sentence. */
  fix: string
  /** The operation whose example is a request that works. */
  operation: string
  /** Similar codes. */
  related: readonly Code[]
}

/** A family of codes, each with its entry. */
export type ErrorEntries = Record<string, ErrorEntry>
