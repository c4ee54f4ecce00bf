/** A failed start that its operator can fix. The message is one line with the cause and the next step. */
export class StartError extends Error {
  override name = "StartError"
}
