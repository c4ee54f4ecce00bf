import { deployCollections } from "./deploy-collections.ts"
import { issueUnits } from "./issue-units.ts"
import type { Job } from "./job.ts"
import { relayClaims } from "./relay-claims.ts"
import { replaceChips } from "./replace-chips.ts"

const jobs: Job[] = [deployCollections, issueUnits, relayClaims, replaceChips]

/** The job of an effect's `src`, which is also a transaction's `kind`. */
export function jobFor(src: string): Job {
  const job = jobs.find((each) => each.src === src)
  if (!job) throw new Error(`no lane knows how to do ${src}`)
  return job
}
