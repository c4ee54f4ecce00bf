/**
 * Why an operator's request is not done: one line with the cause and the next step. Only the terminal and the console
 * show it, never the API. `code` is for `--json`.
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

/** `not_found.resource`: nothing has the id, or what has it cannot be retried. */
type RefusalCode =
  | "not_found.resource"
  | "lane.is_open"
  | "transaction.is_settled"
  | "transaction.on_its_way"
  | "chip.not_paired"
  | "chain.not_configured"
  | "factory.first_generation"
  | "authorizer.is_named"
  | "order.incomplete"
  | "metadata_base.not_set"
  | "file"
