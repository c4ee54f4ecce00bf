/** Whether an `Accept` header comes from a browser opening a page; programs that accept anything want JSON. */
export function wantsHtml(accept: string): boolean {
  return qualityOf(accept, "text/html") > qualityOf(accept, "application/json")
}

/** The quality of a named media type (RFC 9110, section 12.4.2); 0 if it is not named. */
function qualityOf(accept: string, mediaType: string): number {
  for (const range of accept.toLowerCase().split(",")) {
    const [name, ...parameters] = range.split(";").map((part) => part.trim())
    if (name !== mediaType) continue
    const quality = parameters.find((parameter) => parameter.startsWith("q="))
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0
  }
  return 0
}
