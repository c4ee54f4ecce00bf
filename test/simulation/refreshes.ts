import { type Asking, endOf, type Made, type Stage, until } from "./asking.ts"
import { untilActive } from "./collections.ts"
import { make, read } from "./errands.ts"
import { streamOf } from "./streams.ts"

/** A brand requests a metadata refresh of one of its collections, and waits for the end. */
export async function askForRefresh(stage: Stage, salt: number, asking: Asking): Promise<void> {
  await until(stage, async () => asking.collections.length > 0)
  const played = streamOf(BigInt(salt), "refresh").pick(asking.collections)
  await untilActive(stage, played)
  const path = `/v1/collections/${played.id}/metadata-refreshes`
  const { id } = await make<Made>(stage, { token: played.key, path, body: {} })
  await until(stage, async () => endOf(await read<Made>(stage, played.key, `${path}/${id}`)) !== null)
}
