/** Whether an `Accept` header is that of a browser that opens a page; programs that take anything want JSON. */
export function wantsHtml(accept: string): boolean {
  return qualityOf(accept, "text/html") > qualityOf(accept, "application/json")
}

/** How much a media type that is named is wanted (RFC 9110, section 12.4.2); 0 where it is not named. */
function qualityOf(accept: string, mediaType: string): number {
  for (const range of accept.toLowerCase().split(",")) {
    const [name, ...parameters] = range.split(";").map((part) => part.trim())
    if (name !== mediaType) continue
    const quality = parameters.find((parameter) => parameter.startsWith("q="))
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0
  }
  return 0
}
