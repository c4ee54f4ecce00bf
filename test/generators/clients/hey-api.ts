import * as api from "../generated/hey-api/sdk.gen"
import type { Calls } from "../walk"

export function calls(apiKey: string): Calls {
  const ok = { auth: apiKey, throwOnError: true } as const
  return {
    createCollection: async (name) => (await api.createCollection({ ...ok, body: { name } })).data,
    collectionStatus: async (collection_id) =>
      (await api.getCollection({ ...ok, path: { collection_id } })).data.contract.status,
    createUnit: async (collection_id) => (await api.createUnit({ ...ok, body: { collection_id } })).data,
    pairTestChip: async (unit_id) => (await api.pairChip({ ...ok, body: { unit_id, is_test: true } })).data,
    tokenStatus: async (unit_id) =>
      (await api.getUnit({ ...ok, path: { unit_id } })).data.collection?.token.status,
    testTap: async (chip_id) => (await api.createTestTap({ ...ok, body: { chip_id } })).data,
    tap: async (body) => (await api.createTap({ ...ok, body })).data.session_token?.token,
    claim: async (session, unit_id, recipient) =>
      (await api.createClaim({ ...ok, auth: session, path: { unit_id }, body: { recipient } })).data,
    claimStatus: async (unit_id, claim_id) =>
      (await api.getClaim({ ...ok, path: { unit_id, claim_id } })).data.status,
    codeOf: async (body) => (await api.createTap({ auth: apiKey, body })).error?.error.code,
  }
}
