/** A setting that stops the start: one line that names the variable, what is wrong and what it takes. */
export class ConfigError extends Error {
  override name = "ConfigError"
}
