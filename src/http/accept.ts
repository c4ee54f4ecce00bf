/** Whether an `Accept` header is that of a browser that opens a page; programs that take anything want JSON. */
export function wantsHtml(accept: string): boolean {
  return /\btext\/html\b/i.test(accept)
}
