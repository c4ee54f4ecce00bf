/** Returns whether an `Accept` header prefers HTML to JSON, as browsers do. Clients that accept anything get JSON. */
export function wantsHtml(accept: string): boolean {
  return qualityOf(accept, "text/html") > qualityOf(accept, "application/json")
}

/** Returns the quality of a media type that is named exactly (RFC 9110, section 12.4.2), else 0. */
function qualityOf(accept: string, mediaType: string): number {
  for (const range of accept.toLowerCase().split(",")) {
    const [name, ...parameters] = range.split(";").map((part) => part.trim())
    if (name !== mediaType) continue
    const quality = parameters.find((parameter) => parameter.startsWith("q="))
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0
  }
  return 0
}
