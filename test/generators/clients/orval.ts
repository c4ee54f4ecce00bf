import * as api from "../generated/orval/api"
import type { Calls } from "../walk"

export function calls(apiKey: string): Calls {
  const as = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
  const ours = as(apiKey)
  return {
    createCollection: async (name) => created(await api.createCollection({ name }, ours)),
    collectionStatus: async (id) => read(await api.getCollection(id, ours)).contract.status,
    createUnit: async (collection_id) => created(await api.createUnit({ collection_id }, ours)),
    pairTestChip: async (unit_id) => created(await api.pairChip({ unit_id, is_test: true }, ours)),
    tokenStatus: async (id) => read(await api.getUnit(id, ours)).collection?.token.status,
    testTap: async (chip_id) => created(await api.createTestTap({ chip_id }, ours)),
    tap: async (body) => created(await api.createTap(body, ours)).session_token.token,
    claim: async (session, unit_id, recipient) =>
      created(await api.createClaim(unit_id, { recipient }, as(session))),
    claimStatus: async (unit_id, claim_id) => read(await api.getClaim(unit_id, claim_id, ours)).status,
    codeOf: async (body) => {
      const answer = await api.createTap(body, ours)
      return answer.status === 409 ? answer.data.error.code : undefined
    },
  }
}

/** Narrows the generated union by its status: 201 of a tap has a session, 200 has none. */
function created<Answer extends { status: number }>(answer: Answer) {
  if (answer.status !== 201) throw new Error(`the service answered ${answer.status}`)
  return (answer as Extract<Answer, { status: 201 }> & { data: unknown }).data as Extract<
    Answer,
    { status: 201; data: unknown }
  >["data"]
}

function read<Answer extends { status: number }>(answer: Answer) {
  if (answer.status !== 200) throw new Error(`the service answered ${answer.status}`)
  return (answer as Extract<Answer, { status: 200 }> & { data: unknown }).data as Extract<
    Answer,
    { status: 200; data: unknown }
  >["data"]
}
