/**
 * Why what an operator asked for is not done: one line that names the cause and the next step. It is for whoever is at
 * the terminal or the console; callers of the API never meet it. `code` is what `--json` shows.
 */
export class OperatorRefusal extends Error {
  override name = "OperatorRefusal"
  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message)
  }
}

/** `not_found.resource`: nothing has the id, or nothing of what has it can be retried. */
type RefusalCode =
  | "not_found.resource"
  | "lane.is_open"
  | "transaction.is_settled"
  | "transaction.on_its_way"
  | "chip.not_paired"
  | "chain.not_configured"
  | "factory.first_generation"
  | "authorizer.is_named"
