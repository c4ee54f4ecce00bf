/** The Public Suffix List as tldts ships it: a trie in flat arrays, from the last label of a name to its first. */
declare module "tldts/dist/es6/src/data/trie.js" {
  export const rulesRoot: number
  /** Where the edges of each node begin; those of the next node begin where they end. */
  export const edgeStart: Uint16Array
  export const edgeChild: Uint16Array
  export const edgeLength: Uint8Array
  /** The labels of all edges, one after the other. */
  export const labelText: string
}
