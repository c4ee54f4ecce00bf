import { escaped } from "../charts/svg.ts"

/** HTML that is whole and safe, such as `html` makes. */
export type Markup = { readonly markup: string }

/** What may be put into `html`: text is escaped, lists are joined, null and false show nothing. */
export type Shown = string | number | null | undefined | false | Markup | Shown[]

/** Builds HTML; everything put into it is escaped unless it is HTML itself. */
export function html(parts: TemplateStringsArray, ...values: Shown[]): Markup {
  return {
    markup: parts.map((part, index) => part + (index < values.length ? render(values[index]) : "")).join(""),
  }
}

/** HTML made elsewhere in this program, such as a drawing; never anything that came from outside. */
export function trusted(markup: string): Markup {
  return { markup }
}

/** A whole page. */
export function page(title: string, body: Markup): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · lifecycle console</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/console.css">
<script type="module" src="/console/browser.js"></script>
</head>
<body>
${body}
</body>
</html>
`.markup
}

function render(value: Shown): string {
  if (value === null || value === undefined || value === false) return ""
  if (Array.isArray(value)) return value.map(render).join("")
  return typeof value === "object" ? value.markup : escaped(String(value))
}
