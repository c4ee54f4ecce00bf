/** Something outside the service that a request needs does not answer now; the message, for the log, says what. */
export class Unavailable extends Error {
  override name = "Unavailable"
}
