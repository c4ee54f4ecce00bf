import { createHash } from "node:crypto"
import { html, type Markup, trusted } from "../../platform/html.ts"
import { titleOf } from "./present.ts"
import type { PublicCollection, PublicToken } from "./service.ts"

/**
 * Draws an image for a token without one: its name, with arcs and colours derived from its chain, contract and serial.
 */
export function drawToken(token: PublicToken): string {
  const { collection, serial } = token
  const palette = paletteOf(seedOf(collection, "colours"))
  return draw(palette, seedOf(collection, `${serial}`), {
    title: titleOf(token),
    below: token.name === null ? collection.symbol : collection.name,
    mark: `№ ${serial}`,
  })
}

/** Draws an image for a collection without one, in the colours of its tokens. */
export function drawCollection(collection: PublicCollection): string {
  const palette = paletteOf(seedOf(collection, "colours"))
  return draw(palette, seedOf(collection, "collection"), {
    title: collection.name,
    below: collection.symbol,
    mark: "",
  })
}

type Words = { title: string; below: string; mark: string }

function draw(palette: Palette, seed: Buffer, { title, below, mark }: Words): string {
  const lines = linesOf(title)
  const top = lines.length === 1 ? 868 : 838
  const titles = lines.map(
    (line, index) =>
      html`<text x="60" y="${top + 62 * index}" font-size="50" font-weight="600">${inText(line)}</text>`,
  )
  // Attributes instead of a style sheet, which wallets on phones ignore in images.
  return String(html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000" width="1000" height="1000" role="img" aria-label="${printed(title)}">
<defs><linearGradient id="ground" x2="1" y2="1"><stop stop-color="${palette.ground}"/><stop offset="1" stop-color="${palette.deep}"/></linearGradient></defs>
<rect width="1000" height="1000" fill="url(#ground)"/>
${tiles(palette, seed)}
<g font-family="system-ui,-apple-system,Segoe UI,Roboto,Noto Sans,sans-serif" fill="${palette.paper}">
${titles}
<text x="60" y="950" font-size="34" opacity="0.78">${inText(fitting(printed(below), mostBelow))}</text>
<text x="940" y="950" font-size="34" opacity="0.78" text-anchor="end">${mark}</text>
</g>
</svg>
`)
}

/** Leaves quotation marks and apostrophes alone, since wallets on phones show entities as they are. */
function inText(text: string): Markup {
  return trusted(text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"))
}

const across = 5
const down = 4
const side = 176
const margin = 60

/**
 * Draws the tiles. One byte per tile selects shape, rotation and colours; quarter circles meet those of the neighbours.
 */
function tiles(palette: Palette, seed: Buffer): Markup {
  const drawn = Array.from({ length: across * down }, (_, index) => {
    const byte = seed[index] ?? 0
    const [x, y] = [margin + side * (index % across), margin + side * Math.floor(index / across)]
    const colours = [palette.tints[byte % 4], palette.tints[(byte >> 2) % 4]]
    return `<g transform="translate(${x} ${y}) rotate(${90 * ((byte >> 4) % 4)} ${side / 2} ${side / 2})">${figure(byte >> 6, colours as [string, string])}</g>`
  })
  return trusted(drawn.join("\n"))
}

function figure(kind: number, [one, other]: [string, string]): string {
  const half = side / 2
  if (kind === 0)
    return `<path d="M0 0H${side}A${side} ${side} 0 0 1 0 ${side}Z" fill="${one}"/><path d="M0 0H${half}A${half} ${half} 0 0 1 0 ${half}Z" fill="${other}"/>`
  if (kind === 1)
    return `<path d="M${half} 0A${half} ${half} 0 0 1 0 ${half}M${side} ${half}A${half} ${half} 0 0 0 ${half} ${side}" fill="none" stroke="${one}" stroke-width="44"/>`
  if (kind === 2)
    return `<path d="M0 0A${side} ${side} 0 0 1 ${side} ${side}A${side} ${side} 0 0 1 0 0Z" fill="${one}"/><circle cx="${half}" cy="${half}" r="22" fill="${other}"/>`
  return `<circle cx="${half}" cy="${half}" r="${half}" fill="${one}"/><path d="M${half} 0A${half} ${half} 0 0 1 ${half} ${side}Z" fill="${other}"/>`
}

type Palette = { ground: string; deep: string; paper: string; tints: string[] }

/** Returns a dark background and four tints that are close on the colour wheel, so that they always go together. */
function paletteOf(seed: Buffer): Palette {
  const hue = (seed.readUInt16BE(0) * 360) / 65_536
  const turn = 24 + ((seed[2] ?? 0) % 24)
  return {
    ground: colour(hue, 0.4, 0.19),
    deep: colour(hue + turn, 0.45, 0.1),
    paper: "#ffffff",
    tints: [
      colour(hue + turn, 0.62, 0.62),
      colour(hue - turn, 0.5, 0.5),
      colour(hue + 2 * turn, 0.7, 0.76),
      colour(hue, 0.42, 0.34),
    ],
  }
}

/** Converts hue (degrees), saturation and lightness to hexadecimal, which every SVG renderer supports. */
function colour(hue: number, saturation: number, lightness: number): string {
  const part = (offset: number) => {
    const place = (offset + hue / 30 + 24) % 12
    const chroma = saturation * Math.min(lightness, 1 - lightness)
    const value = lightness - chroma * Math.max(-1, Math.min(place - 3, 9 - place, 1))
    return Math.round(255 * value)
      .toString(16)
      .padStart(2, "0")
  }
  return `#${part(0)}${part(8)}${part(4)}`
}

function seedOf({ chain_id, address }: PublicCollection, purpose: string): Buffer {
  return createHash("sha256").update(`${chain_id} ${address.toLowerCase()} ${purpose}`).digest()
}

/** In letter widths: what fits on a line of the title, and next to the serial. */
const mostTitle = 27
const mostBelow = 38

/** Splits the title into at most two lines, at a space. */
function linesOf(title: string): string[] {
  const text = printed(title)
  if (widthOf(text) <= mostTitle) return [text]
  let first = ""
  for (const word of text.split(" ")) {
    const longer = first === "" ? word : `${first} ${word}`
    if (widthOf(longer) > mostTitle) break
    first = longer
  }
  if (first === "") first = cut(text, mostTitle)
  return [first, fitting(text.slice(first.length).trim(), mostTitle)]
}

function fitting(text: string, most: number): string {
  return widthOf(text) <= most ? text : `${cut(text, most - 1)}…`
}

/** Returns the longest beginning that fits. */
function cut(text: string, most: number): string {
  let kept = ""
  let width = 0
  for (const { segment } of characters.segment(text)) {
    width += widthOfCharacter(segment)
    if (width > most) break
    kept += segment
  }
  return kept
}

const characters = new Intl.Segmenter("en", { granularity: "grapheme" })

function widthOf(text: string): number {
  let width = 0
  for (const { segment } of characters.segment(text)) width += widthOfCharacter(segment)
  return width
}

/** Returns a width in letters: two for Chinese, Japanese, Korean and pictographs, a quarter more for capitals. */
function widthOfCharacter(character: string): number {
  if (doubleWidth.test(character)) return 2
  return /\p{Lu}/u.test(character) ? 1.25 : 1
}

const doubleWidth =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|\p{Extended_Pictographic}/u

/** Removes what XML cannot contain and what would change the direction of the surrounding text. */
function printed(text: string): string {
  return text.replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\p{Cc}/gu, " ").trim()
}
