/** Letter widths in pixels, generous enough for every monospaced font. */
export const letterWidth = { state: 8, label: 6.7 }
export const lineHeight = 16
/** Room for a six-digit count beside a state's name. */
export const countWidth = 62
export const dotSize = 10

/** The node from which transitions start that every state inside can take. */
export const anywhereText = "in any state"
