/** The Public Suffix List as tldts ships it: a trie in flat arrays, from a name's last label to its first. */
declare module "tldts/dist/es6/src/data/trie.js" {
  export const rulesRoot: number
  /** Where the edges of each node begin; they end where those of the next node begin. */
  export const edgeStart: Uint16Array
  export const edgeChild: Uint16Array
  export const edgeLength: Uint8Array
  /** The concatenated labels of all edges. */
  export const labelText: string
}
