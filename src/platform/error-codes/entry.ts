/** The definition of an error code: its response, and the text of its page. */
export type ErrorEntry<Code extends string = string> = {
  status: number
  /** Whether the same request may succeed later. */
  retryable: boolean
  /** The default message. */
  title: string
  happened: string
  /** What to do, one step per sentence. */
  fix: string
  /** The operation whose example shows a request that works. */
  operation: string
  /** Similar codes. */
  related: readonly Code[]
}

/** A family of codes and their definitions. */
export type ErrorEntries = Record<string, ErrorEntry>
