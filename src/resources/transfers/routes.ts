import { listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { pathId } from "../../platform/fields.ts"
import { requireRecipient } from "../ownership/rules.ts"
import { type CreateTransferBody, createTransferBody, transferResource } from "./model.ts"
import { presentTransfer } from "./present.ts"
import { createTransfer, getTransfer, listTransfers, prepareTransfer } from "./service.ts"

export const transferRoutes: Route[] = [
  writeRoute({
    operation: "createTransfer",
    summary: "Authorize the owner to transfer a unit",
    description:
      "Returns a `transaction` that only the unit's current owner can send, within 30 minutes; the service never sends it. Poll the transfer until it is `confirmed`, `expired` or `failed`.",
    method: "POST",
    path: "/v1/units/{unit_id}/transfers",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["session_token"],
    idempotent: true,
    body: createTransferBody,
    checkBody: formThen(checkOf(createTransferBody), ({ recipient }: CreateTransferBody) =>
      requireRecipient(recipient),
    ),
    status: 201,
    response: transferResource,
    errors: [
      "unit.not_found",
      "session_token.wrong_chip",
      "unit.not_minted",
      "unit.issuance_pending",
      "transfer.in_progress",
      "transfer.owner_unknown",
      "transfer.already_to_recipient",
    ],
    prepare: (context, caller, { params, body }) => prepareTransfer(context, caller, params.unit_id, body),
    async write(turn, { caller, params, body, prepared }) {
      const transfer = await createTransfer(turn, caller, { ...params, body, prepared })
      const location = `/v1/units/${transfer.unit_id}/transfers/${transfer.id}`
      return { body: presentTransfer(transfer), location }
    },
  }),
  listRoute({
    operation: "listTransfers",
    summary: "List a unit's transfers",
    description: "The unit's transfers and their outcomes, newest first.",
    path: "/v1/units/{unit_id}/transfers",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key", "session_token"],
    plural: "transfers",
    entries: "Transfers, newest first.",
    item: transferResource,
    errors: ["unit.not_found", "session_token.wrong_chip"],
    read: (context, caller, _filters, page, params) =>
      listTransfers(context.db.read, caller, params.unit_id, page),
    present: presentTransfer,
  }),
  readRoute({
    operation: "getTransfer",
    summary: "Get a transfer",
    description: "One transfer. `confirmed` means that the chain has confirmed it.",
    path: "/v1/units/{unit_id}/transfers/{transfer_id}",
    params: { unit_id: pathId("The unit's id."), transfer_id: pathId("The transfer's id.") },
    credentials: ["api_key", "session_token"],
    response: transferResource,
    errors: ["unit.not_found", "session_token.wrong_chip", "transfer.not_found"],
    async read(context, caller, { params }) {
      const transfer = await getTransfer(context.db.read, caller, params.unit_id, params.transfer_id)
      return { body: presentTransfer(transfer) }
    },
  }),
]
