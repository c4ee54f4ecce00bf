/** Something outside the service that a request needs is unavailable for now. The message is for the log. */
export class Unavailable extends Error {
  override name = "Unavailable"
}
