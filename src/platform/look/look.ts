import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fontFaces } from "./fonts.ts"

/** The fonts and colours of every page, for light and dark mode. */
export const palette = `${fontFaces}${asset("palette.css")}`

/** The styles shared by the public pages: palette, type, buttons, focus. */
export const look = `${palette}${asset("look.css")}`

export const icon = asset("icon.svg")

function asset(name: string): string {
  return readFileSync(join(import.meta.dir, name), "utf8")
}
