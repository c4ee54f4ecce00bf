import { expect, test } from "bun:test"
import { chipReplacementMachine } from "../../machines/chip-replacement.ts"
import { claimMachine } from "../../machines/claim.ts"
import { collectionContractMachine } from "../../machines/collection-contract.ts"
import { metadataRefreshMachine } from "../../machines/metadata-refresh.ts"
import { sessionTokenMachine } from "../../machines/session-token.ts"
import { transferMachine } from "../../machines/transfer.ts"
import { unitTokenMachine } from "../../machines/unit-token.ts"
import { webhookEndpointMachine } from "../../machines/webhook-endpoint.ts"
import {
  chipReplacementStatuses,
  claimStatuses,
  collectionStatuses,
  metadataRefreshStatuses,
  sessionTokenStatuses,
  tokenStatuses,
  transferStatuses,
  webhookEndpointStatuses,
} from "../../src/db/statuses.ts"

test.each([
  ["collection contract", collectionContractMachine, collectionStatuses],
  ["unit token", unitTokenMachine, tokenStatuses],
  ["session token", sessionTokenMachine, sessionTokenStatuses],
  ["claim", claimMachine, claimStatuses],
  ["transfer", transferMachine, transferStatuses],
  ["chip replacement", chipReplacementMachine, chipReplacementStatuses],
  ["metadata refresh", metadataRefreshMachine, metadataRefreshStatuses],
  [
    "webhook endpoint, apart from hidden ones,",
    webhookEndpointMachine,
    [...webhookEndpointStatuses, "deleted"],
  ],
])("the statuses of a %s are the top-level states of its machine", (_name, machine, statuses) => {
  expect<string[]>([...statuses]).toEqual(Object.keys(machine.states))
})
