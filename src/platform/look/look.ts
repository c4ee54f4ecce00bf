import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fontFaces } from "./fonts.ts"

/** The style that all pages for people share: colours for light and dark, type, buttons, focus. */
export const look = `${fontFaces}${readFileSync(join(import.meta.dir, "look.css"), "utf8")}`

export const icon = readFileSync(join(import.meta.dir, "icon.svg"), "utf8")
