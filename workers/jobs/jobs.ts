import type { Jobs } from "../../src/engine/jobs/job.ts"
import { deployCollections } from "./deploy-collections.ts"
import { issueUnits } from "./issue-units.ts"
import { refreshMetadata } from "./refresh-metadata.ts"
import { relayClaims } from "./relay-claims.ts"
import { replaceChips } from "./replace-chips.ts"

/** What lanes do for the machines, by the name under which machines invoke it. */
export const jobs = {
  deployCollection: deployCollections,
  issueUnit: issueUnits,
  relayClaim: relayClaims,
  replaceChip: replaceChips,
  refreshMetadata,
} satisfies Jobs
