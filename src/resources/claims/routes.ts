import { listRoute } from "../../http/list.ts"
import { type Route, readRoute, writeRoute } from "../../http/route.ts"
import { checkOf, formThen } from "../../http/validate.ts"
import { pathId } from "../../platform/fields.ts"
import { requireRecipient } from "../ownership/rules.ts"
import { type CreateClaimBody, claimResource, createClaimBody } from "./model.ts"
import { presentClaim } from "./present.ts"
import { createClaim, getClaim, listClaims, prepareClaim } from "./service.ts"

export const claimRoutes: Route[] = [
  writeRoute({
    operation: "createClaim",
    summary: "Claim a unit to a recipient's wallet",
    description:
      "Hands the tapped unit from the service's custody to a recipient. With `service_relay` the service sends the transaction; with `client_broadcast` the response has a `transaction` for the recipient's wallet to send within 30 minutes. Poll the claim until it is `claimed`, `expired` or `failed`.",
    method: "POST",
    path: "/v1/units/{unit_id}/claims",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["session_token"],
    idempotent: true,
    body: createClaimBody,
    checkBody: formThen(checkOf(createClaimBody), ({ recipient }: CreateClaimBody) =>
      requireRecipient(recipient),
    ),
    status: 201,
    response: claimResource,
    errors: [
      "unit.not_found",
      "session_token.wrong_chip",
      "unit.not_minted",
      "unit.issuance_pending",
      "claim.in_progress",
      "chip_replacement.in_progress",
      "claim.owner_unknown",
      "claim.already_to_recipient",
      "claim.already_claimed",
    ],
    prepare: (context, caller, { params, body }) => prepareClaim(context, caller, params.unit_id, body),
    async write(turn, { caller, params, body, prepared }) {
      const claim = await createClaim(turn, caller, { ...params, body, prepared })
      return { body: presentClaim(claim), location: `/v1/units/${claim.unit_id}/claims/${claim.id}` }
    },
  }),
  listRoute({
    operation: "listClaims",
    summary: "List a unit's claims",
    description: "The unit's claims and their outcomes, newest first.",
    path: "/v1/units/{unit_id}/claims",
    params: { unit_id: pathId("The unit's id.") },
    credentials: ["api_key", "session_token"],
    plural: "claims",
    entries: "Claims, newest first.",
    item: claimResource,
    errors: ["unit.not_found", "session_token.wrong_chip"],
    read: (context, caller, _filters, page, params) =>
      listClaims(context.db.read, caller, params.unit_id, page),
    present: presentClaim,
  }),
  readRoute({
    operation: "getClaim",
    summary: "Get a claim",
    description: "One claim. `claimed` means that the chain has confirmed it.",
    path: "/v1/units/{unit_id}/claims/{claim_id}",
    params: { unit_id: pathId("The unit's id."), claim_id: pathId("The claim's id.") },
    credentials: ["api_key", "session_token"],
    response: claimResource,
    errors: ["unit.not_found", "session_token.wrong_chip", "claim.not_found"],
    async read(context, caller, { params }) {
      const claim = await getClaim(context.db.read, caller, params.unit_id, params.claim_id)
      return { body: presentClaim(claim) }
    },
  }),
]
