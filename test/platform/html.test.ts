import { expect, test } from "bun:test"
import fc from "fast-check"
import { html, type Shown, trusted, webPage } from "../../src/platform/html.ts"

const letters: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }

test("any text in HTML is read by a browser as that text, and ends no tag or attribute", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...`<>&"'\`ax/=;`) }), (text) => {
      const escaped = String(html`${text}`)
      expect(escaped).not.toMatch(/[<>"']/)
      expect(escaped.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => letters[name] ?? "")).toBe(text)
    }),
  )
})

test("HTML in HTML stays as it is, arrays are joined, and null, undefined and false produce nothing", () => {
  const items: Shown[] = ["<a>", html`<b>${1}</b>`, [null, undefined, false, 0, ""]]
  expect(String(html`<p>${items}${trusted("<i>&</i>")}</p>`)).toBe("<p>&lt;a&gt;<b>1</b>0<i>&</i></p>")
})

test("a page's title is escaped; its head and body are not", () => {
  const page = webPage({ title: "<x>", head: html`<meta name="robots">`, body: html`<main></main>` })
  expect(page).toContain('<title>&lt;x&gt;</title>\n<meta name="robots">\n</head>\n<body>\n<main></main>')
})
