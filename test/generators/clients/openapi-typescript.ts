import createClient from "openapi-fetch"
import type { paths } from "../generated/openapi-typescript/api"
import type { Calls } from "../walk"

export function calls(apiKey: string, baseUrl: string): Calls {
  const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${apiKey}` } })
  return {
    createCollection: async (name) => got((await api.POST("/v1/collections", { body: { name } })).data),
    collectionStatus: async (collection_id) =>
      got((await api.GET("/v1/collections/{collection_id}", { params: { path: { collection_id } } })).data)
        .contract.status,
    createUnit: async (collection_id) => got((await api.POST("/v1/units", { body: { collection_id } })).data),
    pairTestChip: async (unit_id) =>
      got((await api.POST("/v1/chips", { body: { unit_id, is_test: true } })).data),
    tokenStatus: async (unit_id) =>
      (await api.GET("/v1/units/{unit_id}", { params: { path: { unit_id } } })).data?.collection?.token
        .status,
    testTap: async (chip_id) => got((await api.POST("/v1/test-helpers/taps", { body: { chip_id } })).data),
    tap: async (body) => (await api.POST("/v1/taps", { body })).data?.session_token?.token,
    claim: async (session, unit_id, recipient) =>
      got(
        (
          await api.POST("/v1/units/{unit_id}/claims", {
            params: { path: { unit_id } },
            headers: { Authorization: `Bearer ${session}` },
            body: { recipient },
          })
        ).data,
      ),
    claimStatus: async (unit_id, claim_id) => {
      const params = { path: { unit_id, claim_id } }
      return got((await api.GET("/v1/units/{unit_id}/claims/{claim_id}", { params })).data).status
    },
    codeOf: async (body) => (await api.POST("/v1/taps", { body })).error?.error.code,
  }
}

function got<Data>(data: Data | undefined): Data {
  if (data === undefined) throw new Error("the service refused")
  return data
}
