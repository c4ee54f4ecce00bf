/** A start that failed for a reason its operator can put right: one line with the cause and the next step. */
export class StartError extends Error {
  override name = "StartError"
}
