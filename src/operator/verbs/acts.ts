import { hostname, userInfo } from "node:os"
import { operatorActs } from "../../db/operator-schema.ts"
import type { Turn } from "../../db/turn.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { newId } from "../../platform/ids.ts"

/** What an operator does, and to what: an id as it was given. */
type Act = { act: string; subject: string }

/** Runs `work` in one database transaction, which also records who did it. */
export async function inAct<T>(
  context: Context,
  act: Act,
  work: (turn: Turn) => Promise<T>,
  actor = whoRunsThis(),
): Promise<T> {
  return await inTurn(context, `operator_${newId()}`, async (turn) => {
    const outcome = await work(turn)
    await turn.tx.insert(operatorActs).values({ id: newId(), at: turn.at, actor, ...act })
    return outcome
  })
}

function whoRunsThis(): string {
  const { username, uid } = userInfo()
  // Bun takes the name from USER, which is unset in containers and timers.
  return `${username === "unknown" ? `user ${uid}` : username} on ${hostname()}`
}
