import { raw, html as template } from "hono/html"

/** Complete, safe HTML as made by `html`; `String(markup)` is its text. */
export type Markup = { readonly isEscaped: true }

/** What `html` can interpolate: text is escaped, lists are joined, null, undefined and false render nothing. */
export type Shown = string | number | null | undefined | false | Markup | Shown[]

/** Builds HTML with Hono's template, which escapes everything interpolated that is not HTML itself. */
export function html(parts: TemplateStringsArray, ...shown: Shown[]): Markup {
  // The template returns a promise only for promises, which `Shown` excludes.
  return template(parts, ...shown) as Markup
}

/** Marks markup made by this program, such as a drawing, as safe. Never use it for anything from outside. */
export function trusted(markup: string): Markup {
  return raw(markup)
}

type WebPage = { title: string; head: Markup; body: Markup; language?: string }

/** Returns a complete page from its title and the parts of its head and body; in English, unless it has a language. */
export function webPage({ title, head, body, language = "en" }: WebPage): string {
  return String(html`<!doctype html>
<html lang="${language}">
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
