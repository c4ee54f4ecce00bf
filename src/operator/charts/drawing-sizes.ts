/** Widths of a letter in pixels, generous enough for every monospaced font. */
export const letterWidth = { state: 8, label: 6.7 }
export const lineHeight = 16
/** Room for a count of six digits beside a state's name. */
export const countWidth = 62
export const dotSize = 10

/** Stands for what every state inside can do: a node of its own, from which those transitions go. */
export const anywhereText = "in any state"
