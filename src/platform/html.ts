import { raw, html as template } from "hono/html"

/** HTML that is whole and safe, such as `html` makes; `String(markup)` is its text. */
export type Markup = { readonly isEscaped: true }

/** What may be put into `html`: text is escaped, lists are joined, null and false show nothing. */
export type Shown = string | number | null | undefined | false | Markup | Shown[]

/** Builds HTML by Hono's template, which escapes everything put into it that is not HTML itself. */
export function html(parts: TemplateStringsArray, ...shown: Shown[]): Markup {
  // A promise, which the template could wait for, is not among what may be shown.
  return template(parts, ...shown) as Markup
}

/** HTML made elsewhere in this program, such as a drawing; never anything that came from outside. */
export function trusted(markup: string): Markup {
  return raw(markup)
}

/** A whole page: what every page has in common, with what this one has in its head and body. */
export function webPage({ title, head, body }: { title: string; head: Markup; body: Markup }): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`)
}
