import { createHash } from "node:crypto"
import { parseAccept } from "hono/utils/accept"
import type { PageAnswer } from "../../http/page.ts"
import { html, trusted, webPage } from "../../platform/html.ts"
import { look } from "../../platform/look/look.ts"
import { type LandingText, type Language, landingTexts } from "./landing-texts.ts"

const languages = Object.keys(landingTexts) as Language[]

/**
 * Returns the page for a tap without a redirect, in the language that the phone asks for; the same if the chip does not
 * exist.
 */
export function landingPage(acceptLanguage: string): PageAnswer {
  const language = languageFor(acceptLanguage)
  return {
    status: 200,
    headers: {
      "content-language": language,
      "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      vary: "Accept-Language, Origin",
    },
    body: landingHtml[language],
  }
}

/** The page itself, by language. */
export const landingHtml = Object.fromEntries(
  languages.map((language) => [language, htmlOf(language, landingTexts[language])]),
) as Record<Language, string>

function htmlOf(language: string, { title, what, next }: LandingText): string {
  return webPage({
    language,
    title,
    head: html`<meta name="robots" content="noindex">
<style>${trusted(look)}</style>`,
    body: html`<main class="card" dir="auto">
<h1>${title}</h1>
<p>${what}</p>
<p class="quiet">${next}</p>
</main>`,
  })
}

const styleHash = createHash("sha256").update(look).digest("base64")

/** Returns the first language of the header (RFC 9110, section 12.5.4) that the page has; English if there is none. */
function languageFor(acceptLanguage: string): Language {
  for (const { type, q } of parseAccept(acceptLanguage.slice(0, mostCharacters))) {
    const language = q > 0 && languageByScript.get(writtenIn(type))
    if (language) return language
  }
  return "en"
}

/** No browser sends more; reading a longer header would take time from others. */
const mostCharacters = 500

/**
 * Returns the language and script of a tag, such as `zh-Hant` for `zh-TW`; an empty text if it is no language. Some apps
 * send `zh_TW`.
 */
function writtenIn(tag: string): string {
  try {
    const { language, script } = new Intl.Locale(tag.replaceAll("_", "-")).maximize()
    return `${language}-${script}`
  } catch {
    return ""
  }
}

const languageByScript = new Map(languages.map((language) => [writtenIn(language), language]))
