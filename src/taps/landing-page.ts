import { createHash } from "node:crypto"
import type { PageAnswer } from "../http/page.ts"

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #f6f7f8; --card: #ffffff; --line: #d9dee3 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eceff2; --soft: #a3adb8; --paper: #14171a; --card: #1c2024; --line: #343b42 }
}
* { box-sizing: border-box }
body {
  margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem;
  background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 28rem; padding: 2.5rem 2rem; background: var(--card); border: 1px solid var(--line); border-radius: 1rem }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; text-wrap: balance }
p { margin: 0 0 .75rem }
p:last-child { margin: 0; color: var(--soft); font-size: .9375rem }
`

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Nothing is set up for this tag yet</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Nothing is set up for this tag yet</h1>
<p>Your phone read the tag, but no page has been chosen for it.</p>
<p>If you bought something that carries this tag, please ask the brand. Opening this page has not used the tag: you can tap it again at any time.</p>
</main>
</body>
</html>
`

const styleHash = createHash("sha256").update(style).digest("base64")

/** Where a tap leads that leads nowhere: the same for a chip without redirect and for one that does not exist. */
export const landingPage: PageAnswer = {
  status: 200,
  headers: {
    "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  },
  html,
}
