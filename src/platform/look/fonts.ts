import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

/** A font file. Its path contains a hash of its content, so that browsers can cache it for good. */
type Font = { path: string; content: Uint8Array<ArrayBuffer> }

type Face = { family: string; from: string; subset: string; weights: string; kind: string }

const sans = { family: "IBM Plex Sans", from: "@fontsource-variable/ibm-plex-sans", kind: "wght-normal" }
const mono = { family: "IBM Plex Mono", from: "@fontsource/ibm-plex-mono", subset: "latin" }

const faces: Face[] = [
  { ...sans, subset: "latin", weights: "100 700" },
  { ...sans, subset: "latin-ext", weights: "100 700" },
  { ...mono, kind: "400-normal", weights: "400" },
  { ...mono, kind: "600-normal", weights: "600" },
]

const read = faces.map((face) => ({ ...face, ...readFont(face), letters: lettersOf(face) }))

/** The fonts of all pages, served by the service itself. */
export const fonts: readonly Font[] = read.map(({ path, content }) => ({ path, content }))

/** The CSS of the fonts. Until they are loaded, browsers show a local font. */
export const fontFaces = `/* IBM Plex, copyright IBM Corp., under the SIL Open Font License 1.1 */
${read.map(faceOf).join("")}`

export const fontHeaders = {
  "content-type": "font/woff2",
  "cache-control": "public, max-age=31536000, immutable",
}

/** Returns the response with the font at a path, or null. */
export function fontAt(path: string): Response | null {
  const font = fonts.find((each) => each.path === path)
  return font ? new Response(font.content, { headers: fontHeaders }) : null
}

function readFont({ from, subset, kind }: Face): Font {
  const name = `${from.replace(/.*\//, "")}-${subset}-${kind}`
  const content = new Uint8Array(readFileSync(inPackage(`${from}/files/${name}.woff2`)))
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12)
  return { path: `/fonts/${name}-${hash}.woff2`, content }
}

function lettersOf({ from, subset }: Face): string {
  const bySubset = JSON.parse(readFileSync(inPackage(`${from}/unicode.json`), "utf8"))
  return bySubset[subset]
}

function inPackage(file: string): string {
  return Bun.resolveSync(file, import.meta.dir)
}

function faceOf({ family, weights, path, letters }: (typeof read)[number]): string {
  return `@font-face {
  font-family: "${family}";
  font-weight: ${weights};
  font-display: swap;
  src: url("${path}") format("woff2");
  unicode-range: ${letters};
}
`
}
