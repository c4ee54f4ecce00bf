/**
 * Returns whether a text has around it what nobody means: quotation marks, as `docker run --env-file` keeps them, or
 * white space, such as the line break that `echo` puts into a file or the mark at the beginning of a file from Windows.
 */
export function hasStrayEnds(text: string): boolean {
  return text !== text.trim() || /^["'`]|["'`]$/.test(text)
}

export const strayEnds =
  "begins or ends with a quotation mark, a space or a line break, which counts as part of it: remove that"
