/** A setting that prevents the start. The message is one line: the variable, what is wrong, and what it takes. */
export class ConfigError extends Error {
  override name = "ConfigError"
}
