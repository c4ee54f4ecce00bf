import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fontFaces } from "./fonts.ts"

/** The fonts of every page, and its colours for light and dark. */
export const palette = `${fontFaces}${asset("palette.css")}`

/** The style that the pages for people outside share: palette, type, buttons, focus. */
export const look = `${palette}${asset("look.css")}`

export const icon = asset("icon.svg")

function asset(name: string): string {
  return readFileSync(join(import.meta.dir, name), "utf8")
}
