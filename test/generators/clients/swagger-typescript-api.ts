import { Api, type ErrorResponse, type HttpResponse } from "../generated/swagger-typescript-api/api"
import type { Calls } from "../walk"

export function calls(apiKey: string): Calls {
  const api = new Api<string>({
    securityWorker: (token) => ({ headers: { Authorization: `Bearer ${token}` } }),
  })
  api.setSecurityData(apiKey)
  const { v1 } = api
  return {
    createCollection: async (name) => (await v1.createCollection({ name })).data,
    collectionStatus: async (id) => (await v1.getCollection(id)).data.contract.status,
    createUnit: async (collection_id) => (await v1.createUnit({ collection_id })).data,
    pairTestChip: async (unit_id) => (await v1.pairChip({ unit_id, is_test: true })).data,
    tokenStatus: async (id) => (await v1.getUnit(id)).data.collection?.token.status,
    testTap: async (chip_id) => (await v1.createTestTap({ chip_id })).data,
    tap: async (body) => (await v1.createTap(body)).data.session_token?.token,
    claim: async (session, unit_id, recipient) => {
      const headers = { Authorization: `Bearer ${session}` }
      return (await v1.createClaim(unit_id, { recipient }, { secure: false, headers })).data
    },
    claimStatus: async (unit_id, claim_id) => (await v1.getClaim(unit_id, claim_id)).data.status,
    codeOf: async (body) => {
      const refused = await v1.createTap(body).then(
        () => undefined,
        (answer: HttpResponse<unknown, ErrorResponse>) => answer.error,
      )
      return refused?.error.code
    },
  }
}
