import { createHash } from "node:crypto"
import * as compiler from "@typescript/typescript6"

/** One fault: a range of one file, and its replacement. */
export type Fault = {
  file: string
  line: number
  /** The text of that line. */
  on: string
  start: number
  end: number
  instead: string
  /** In words, such as `< for <=` or `the step left out`. */
  kind: string
}

/** Every single fault of these kinds that a TypeScript file can have, in the file's order. */
export function faultsOf(file: string, text: string): Fault[] {
  const source = compiler.createSourceFile(file, text, compiler.ScriptTarget.Latest, true)
  const found: Fault[] = []
  const add = (node: { start: number; end: number }, instead: string, kind: string) => {
    found.push({ file, ...lineAt(text, node.start), ...node, instead, kind })
  }
  const visit = (node: compiler.Node): void => {
    // Types have no effect, and error texts are for people.
    if (compiler.isTypeNode(node) || compiler.isImportDeclaration(node)) return
    for (const [span, instead, kind] of faultsAt(node, source)) add(span, instead, kind)
    if (!compiler.isThrowStatement(node)) compiler.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** The number and the text of the line at a position. */
export function lineAt(text: string, place: number): Pick<Fault, "line" | "on"> {
  const line = text.slice(0, place).split("\n").length
  return { line, on: text.split("\n")[line - 1] ?? "" }
}

/** The text with the fault in it. */
export function withFault(text: string, { start, end, instead }: Fault): string {
  return text.slice(0, start) + instead + text.slice(end)
}

/** Picks `most` of the faults, the same for the same seed whatever else the files contain. */
export function drawn(faults: readonly Fault[], most: number, seed: string): Fault[] {
  const ticket = ({ file, start, instead }: Fault) =>
    createHash("sha256").update(`${seed} ${file} ${start} ${instead}`).digest("hex")
  return faults
    .map((fault) => ({ fault, at: ticket(fault) }))
    .sort((one, other) => (one.at < other.at ? -1 : 1))
    .slice(0, most)
    .map(({ fault }) => fault)
}

type Span = { start: number; end: number }
type Found = [span: Span, instead: string, kind: string]

function faultsAt(node: compiler.Node, source: compiler.SourceFile): Found[] {
  const span = (each: compiler.Node): Span => ({ start: each.getStart(source), end: each.end })
  if (compiler.isBinaryExpression(node)) {
    const operator = node.operatorToken
    // Next to another operator it needs parentheses.
    if (operator.kind === compiler.SyntaxKind.QuestionQuestionToken) {
      const [left, right] = [node.left.getText(source), node.right.getText(source)]
      return [[span(node), `(${left} && ${right})`, "&& for ??"]]
    }
    const instead = otherOperators[operator.getText(source)]
    return instead ? [[span(operator), instead, `${instead} for ${operator.getText(source)}`]] : []
  }
  if (compiler.isPrefixUnaryExpression(node) && node.operator === compiler.SyntaxKind.ExclamationToken)
    return [[span(node), node.operand.getText(source), "not negated"]]
  if (node.kind === compiler.SyntaxKind.TrueKeyword) return [[span(node), "false", "false for true"]]
  if (node.kind === compiler.SyntaxKind.FalseKeyword) return [[span(node), "true", "true for false"]]
  if (compiler.isNumericLiteral(node)) return [[span(node), `(${node.getText(source)} + 1)`, "one more"]]
  if (compiler.isIfStatement(node))
    return [[span(node.expression), "false", `never: if (${shown(node.expression, source)})`]]
  if (compiler.isConditionalExpression(node)) {
    const [yes, no] = [node.whenTrue.getText(source), node.whenFalse.getText(source)]
    return [
      [{ start: node.whenTrue.getStart(source), end: node.end }, `${no} : ${yes}`, "the other way round"],
    ]
  }
  if (compiler.isExpressionStatement(node) && !compiler.isYieldExpression(node.expression))
    return [[span(node), ";", `left out: ${shown(node, source)}`]]
  if (compiler.isCallExpression(node)) return faultsOfCall(node, source, span)
  if (compiler.isPropertyAssignment(node) && ofMachines.has(node.name.getText(source)))
    return [[span(node), "...{}", `without: ${shown(node, source)}`]]
  return []
}

/** A condition of a query may be missing or compare differently. */
function faultsOfCall(
  node: compiler.CallExpression,
  source: compiler.SourceFile,
  span: (node: compiler.Node) => Span,
): Found[] {
  const name = node.expression.getText(source)
  const instead = otherCalls[name]
  if (instead) return [[span(node.expression), instead, `${instead} for ${name}`]]
  if (name !== "and" || node.arguments.length < 2) return []
  return node.arguments.map((each) => [span(each), "undefined", `without: ${shown(each, source)}`])
}

function shown(node: compiler.Node, source: compiler.SourceFile): string {
  return shortened(node.getText(source))
}

/** Code on one line, as it is printed. */
export function shortened(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, 60)
}

export const otherOperators: Record<string, string> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
}

const otherCalls: Record<string, string> = {
  eq: "ne",
  ne: "eq",
  lt: "lte",
  lte: "lt",
  gt: "gte",
  gte: "gt",
  asc: "desc",
  desc: "asc",
  isNull: "isNotNull",
  isNotNull: "isNull",
}

const ofMachines = new Set(["guard", "actions", "target", "onError", "after"])
