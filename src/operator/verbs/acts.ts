import { hostname, userInfo } from "node:os"
import { operatorActs } from "../../db/operator-schema.ts"
import type { Turn } from "../../db/turn.ts"
import { type Context, inTurn } from "../../platform/context.ts"
import { newId } from "../../platform/ids.ts"

/** What an operator does, and to what: an id as it was given. The actor is whoever runs this, unless named. */
type Act = { act: string; subject: string; actor?: string }

/** Runs `work` on the act's subject in one database transaction, which also records who did it. */
export async function inAct<T>(
  context: Context,
  { act, subject, actor = whoRunsThis() }: Act,
  work: (turn: Turn, subject: string) => Promise<T>,
): Promise<T> {
  return await inTurn(context, `operator_${newId()}`, async (turn) => {
    const outcome = await work(turn, subject)
    await turn.tx.insert(operatorActs).values({ id: newId(), at: turn.at, actor, act, subject })
    return outcome
  })
}

function whoRunsThis(): string {
  const { username, uid } = userInfo()
  // Bun takes the name from USER, which is unset in containers and timers.
  return `${username === "unknown" ? `user ${uid}` : username} on ${hostname()}`
}
