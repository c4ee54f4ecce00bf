import { loadCompiler } from "../../contracts/compile.ts"
import { type Fault, lineAt, otherOperators, shortened } from "./faults.ts"

/** Every single fault of these kinds that a Solidity file can have. Some of them do not compile. */
export function faultsOfContract(file: string, text: string): Fault[] {
  const bytes = Buffer.from(text)
  // The compiler counts bytes.
  const placeOf = (offset: number) => bytes.toString("utf8", 0, offset).length
  const spanOf = ({ src }: Node): Span => {
    const [begin = 0, length = 0] = src.split(":").map(Number)
    const [start, end] = [placeOf(begin), placeOf(begin + length)]
    return { start, end, text: text.slice(start, end) }
  }
  return nodesIn(treeOf(file, text)).flatMap((node) =>
    faultsAt(node, spanOf).map(([{ start, end }, instead, kind]) => {
      return { file, ...lineAt(text, start), start, end, instead, kind }
    }),
  )
}

type Node = { nodeType: string; src: string; [field: string]: unknown }
type Span = { start: number; end: number; text: string }
type Found = [span: Pick<Span, "start" | "end">, instead: string, kind: string]

/** The syntax tree before the compiler resolves any other file. */
function treeOf(file: string, text: string): unknown {
  const input = {
    language: "Solidity",
    sources: { [file]: { content: text } },
    settings: { stopAfter: "parsing", outputSelection: { "*": { "": ["ast"] } } },
  }
  const said = loadCompiler().compile(JSON.stringify(input), { import: () => ({ contents: "" }) })
  const { sources } = JSON.parse(said) as { sources: Record<string, { ast: unknown }> }
  return sources[file]?.ast
}

function nodesIn(value: unknown): Node[] {
  if (typeof value !== "object" || value === null) return []
  const inside = Object.values(value).flatMap(nodesIn)
  return "nodeType" in value ? [value as Node, ...inside] : inside
}

function faultsAt(node: Node, spanOf: (node: Node) => Span): Found[] {
  const span = spanOf(node)
  const part = (name: string) => spanOf(node[name] as Node)
  switch (node.nodeType) {
    case "BinaryOperation": {
      const operator = String(node.operator)
      const instead = otherOperators[operator] ?? operatorsOfContracts[operator]
      const start = span.start + span.text.indexOf(operator, part("leftExpression").end - span.start)
      return instead ? [[{ start, end: start + operator.length }, instead, `${instead} for ${operator}`]] : []
    }
    case "UnaryOperation":
      return node.operator === "!" ? [[span, part("subExpression").text, "not negated"]] : []
    case "Literal":
      if (span.text === "true") return [[span, "false", "false for true"]]
      if (span.text === "false") return [[span, "true", "true for false"]]
      return node.kind === "number" ? [[span, `(${span.text} + 1)`, "one more"]] : []
    case "YulLiteral":
      return node.kind === "number" ? [[span, `add(${span.text}, 1)`, "one more"]] : []
    case "YulFunctionCall": {
      const name = part("functionName")
      const instead = otherInstructions[name.text]
      return instead ? [[name, instead, `${instead} for ${name.text}`]] : []
    }
    case "IfStatement": {
      const condition = part("condition")
      return [[condition, `false && (${condition.text})`, `never: if (${shortened(condition.text)})`]]
    }
    case "Conditional": {
      const [yes, no] = [part("trueExpression"), part("falseExpression")]
      return [[{ start: yes.start, end: no.end }, `${no.text} : ${yes.text}`, "the other way round"]]
    }
    case "ExpressionStatement":
    case "EmitStatement":
      return [[span, `if (false) ${span.text}`, `left out: ${shortened(span.text)}`]]
    default:
      return []
  }
}

const operatorsOfContracts: Record<string, string> = {
  "==": "!=",
  "!=": "==",
  "&": "|",
  "|": "&",
  "<<": ">>",
  ">>": "<<",
  "/": "*",
}

const otherInstructions: Record<string, string> = {
  add: "sub",
  sub: "add",
  and: "or",
  or: "and",
  lt: "gt",
  gt: "lt",
  shl: "shr",
  shr: "shl",
}
