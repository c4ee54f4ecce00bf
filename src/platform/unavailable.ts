/** Something outside the service that a request needs does not answer now; the message is for the log. */
export class Unavailable extends Error {
  override name = "Unavailable"
}
