import { join } from "node:path"
import { type BrokenRule, breakRule, copyProject, removeCopy } from "../harness/project-copy.ts"

/** A rule broken on purpose, and the scenario or the test that must notice. */
export type Mutation = BrokenRule & { noticed_by: { scenario: string } | { file: string; test: string } }

const lanes = "test/engine/lanes.test.ts"
const mixedForks = "test/engine/mixed-forks.test.ts"
const depths = "test/engine/watch-depths.test.ts"
const giveResults = "src/engine/lanes/give-results.ts"
const providers = "src/engine/chain/providers.ts"
const lane = "src/engine/lanes/lane.ts"
const nonces = "src/engine/lanes/nonces.ts"
const pushOn = "src/engine/lanes/push-on.ts"
const sendEffects = "src/engine/lanes/send-effects.ts"
const watch = "workers/watches/watch-authorizations.ts"
const cursor = "workers/watches/chain-cursor.ts"
const overtaken = "test/engine/overtaken.test.ts"
const undoneIssuances = "test/engine/undone-issuances.test.ts"
const issueOrder = "workers/jobs/issue-order.ts"
const metNothing = "test/engine/met-nothing.test.ts"
const refused = "test/engine/refused.test.ts"
const besideReleased = "test/engine/beside-released.test.ts"
const relayClaims = "workers/jobs/relay-claims.ts"
const sendAnew = "src/engine/lanes/send-anew.ts"
const outcome = "workers/watches/authorization-outcome.ts"
const authorizer = "test/engine/authorizer.test.ts"
const headerChain = "src/engine/chain/headers.ts"
const headers = "test/engine/headers.test.ts"
const longLife = "test/db/long-life.test.ts"
const nextMove = "src/engine/lanes/next-move.ts"
const openNonce = {
  file: "test/engine/open-nonce.test.ts",
  test: "a nonce is used in the end, whatever a pool holds of it",
}

export const mutations: Mutation[] = [
  {
    name: "broadcast before storing",
    file: "src/engine/lanes/broadcast.ts",
    replace: [
      [
        "  const stored = await inLane(",
        "  await lane.chain.providers.send(raw)\n  const stored = await inLane(",
      ],
    ],
    noticed_by: { scenario: "nothing" },
  },
  {
    name: "a null receipt taken for dropped",
    file: pushOn,
    replace: [
      ["import { isGivenUp,", "import { displaceTransaction, isGivenUp,"],
      [
        "  if (transaction.attempts.length === 0) return nothing\n",
        "  if (transaction.attempts.length === 0) return nothing\n  if (transaction.status === 'sent' && Number(lane.head) - Number(transaction.sent_block) > 1) {\n    await inLane(lane, (turn) => displaceTransaction(turn, lane.lease, transaction, { status: 'final' }))\n    return nothing\n  }\n",
      ],
    ],
    noticed_by: { scenario: "only provider five blocks behind" },
  },
  {
    name: "no re-send",
    file: pushOn,
    replace: [["blocksSince(transaction.sent_block) >= resendBlocks", "transaction.sent_block === null"]],
    noticed_by: { scenario: "pool evicts" },
  },
  {
    name: "a bump from the estimate only",
    file: nextMove,
    replace: [["replacementFees(feesOf(attempt), gas, market, within)", "firstFees(gas, market, within)"]],
    noticed_by: { scenario: "prices rise" },
  },
  {
    name: "what a pool refused is offered again and again",
    file: nextMove,
    replace: [["if (!before) return", "if (before !== last) return"]],
    noticed_by: {
      file: "test/engine/next-move.test.ts",
      test: "alternates between a price that a pool refused and the better one rejected as",
    },
  },
  {
    name: "what a pool refused for something else that it holds takes turns with the last",
    file: nextMove,
    replace: [["if (raised) return", "if (raised && best === last) return"]],
    noticed_by: openNonce,
  },
  {
    name: "an offer that a pool refused is taken for what it holds once the last is too cheap",
    file: nextMove,
    replace: [[" || isGone(minable)", ""]],
    noticed_by: openNonce,
  },
  {
    name: "an offer that a pool refused is taken for what it holds once the last costs too much",
    file: nextMove,
    replace: [["if (own && !isGone(own) && ", "if (own && "]],
    noticed_by: openNonce,
  },
  {
    name: "a price that a node found too high is offered again, not a lower one",
    file: nextMove,
    replace: [['if (before.last_outcome === "fee_too_high") {', 'if (before.last_outcome === "wait") {']],
    noticed_by: openNonce,
  },
  {
    name: "what a pool holds no more is replaced, not what it holds instead",
    file: nextMove,
    replace: [["return isGone(held)\n", "return held.send_count < 0\n"]],
    noticed_by: openNonce,
  },
  {
    name: "a call that is held back takes turns with the empty transaction in its place",
    file: nextMove,
    replace: [["held?.is_cancel === is_given_up ? held : undefined", "held"]],
    noticed_by: openNonce,
  },
  {
    name: "what a pool once took is taken for what it holds",
    file: nextMove,
    replace: [["  if (isGone(held)) return true\n", ""]],
    noticed_by: {
      file: "test/engine/next-move.test.ts",
      test: "is a higher tip if the price is at its limit and a pool holds an unknown transaction",
    },
  },
  {
    name: "one nonce at a time is raised",
    file: nextMove,
    replace: [
      ["if (isPricedOut(feesOf(last), market))", "if (is_waiting_long && isPricedOut(feesOf(last), market))"],
    ],
    noticed_by: { scenario: "blocks ten times as dear for a full window" },
  },
  {
    name: "confirmed a block early",
    file: giveResults,
    replace: [["isOpen && depth < confirmation_depth", "isOpen && depth < confirmation_depth - 1"]],
    noticed_by: { file: lanes, test: "at the confirmation depth, and not a block before it" },
  },
  {
    name: "providers need not agree",
    file: providers,
    replace: [["return hashes.every(", "return true || hashes.every("]],
    noticed_by: { file: lanes, test: "only if all providers have the same block" },
  },
  {
    name: "what waits is judged before what it waits for, round after round",
    file: giveResults,
    replace: [[" || lastTurn(one) - lastTurn(other)", ""]],
    noticed_by: { file: lanes, test: "also for what another one waits for, however long that one takes" },
  },
  {
    name: "whoever a round did not reach counts as new in the next one",
    file: giveResults,
    replace: [
      ["new Map(seen.map((each) => [each.transaction.id, lastTurn(each)]))", "new Map<string, number>()"],
    ],
    noticed_by: {
      file: "test/engine/findings.test.ts",
      test: "transactions take turns if a round has time for one only, new ones first",
    },
  },
  {
    name: "whose turn it was is forgotten after each round",
    file: lane,
    replace: [["  memory.judged = new Map([...first.judged, ...last.judged])\n", ""]],
    noticed_by: { file: lanes, test: "also for what another one waits for, however long that one takes" },
  },
  {
    name: "what reverted has failed at once",
    file: giveResults,
    replace: [["if (!(await isFinal(lane, place))) return false", ""]],
    noticed_by: {
      file: lanes,
      test: "fails only when no reorganization can turn it into a success any more",
    },
  },
  {
    name: "what another transaction has done is final at once",
    file: giveResults,
    replace: [
      [
        "const isSettled = await standsWithBlock(lane, place, mined, results)\n  const stored = isSettled ? place : unsettled(place)\n  await inLane",
        "const isSettled = true\n  const stored = place\n  await inLane",
      ],
    ],
    noticed_by: {
      file: "test/engine/done-by-others.test.ts",
      test: "a chip replacement that another transaction achieved meanwhile is repeated if that transaction is undone, too",
    },
  },
  {
    name: "what another transaction has done is watched no more where one's own was mined without effect",
    file: giveResults,
    replace: [
      [
        "const isSettled = await standsWithBlock(lane, place, mined, results)\n  const stored = isSettled ? place : unsettled(place)\n  lane",
        "const isSettled = true\n  const stored = place\n  lane",
      ],
    ],
    noticed_by: {
      file: "test/engine/done-by-others.test.ts",
      test: "a claim mined before the deployment and then achieved by another transaction is repeated if that one is undone",
    },
  },
  {
    name: "a transaction settles where another fork shows that it did the work itself",
    file: giveResults,
    replace: [
      [
        "results.filter(isOutput).flatMap(",
        "results.filter(isOutput).filter(({ output }) => output.transaction_hash !== place.hash).flatMap(",
      ],
    ],
    noticed_by: {
      file: mixedForks,
      test: "a claim that reverted is repeated even if a node on the previous fork says that it was made",
    },
  },
  {
    name: "an issuance settles by a number of serials read on whatever fork",
    file: "workers/jobs/issue-batches.ts",
    replace: [
      [
        "serials && { serials, block_number: Number(receipt.blockNumber) }",
        "serials && { serials, block_number: null }",
      ],
    ],
    noticed_by: {
      file: mixedForks,
      test: "an issuance without effect is repeated even if a node on the previous fork says that it has one",
    },
  },
  {
    name: "a claim settles by an owner read on whatever fork",
    file: relayClaims,
    replace: [
      ["&& isMade) return doneBy(receipt)", "&& isMade) return { ...doneBy(receipt), block_number: null }"],
    ],
    noticed_by: {
      file: mixedForks,
      test: "a claim without effect is repeated even if only the owner that a node on the previous fork names tells that it was made",
    },
  },
  {
    name: "a chip replacement settles by a chip read on whatever fork",
    file: "workers/jobs/replace-chips.ts",
    replace: [["isDone ? doneBy(receipt) :", "isDone ? { ...doneBy(receipt), block_number: null } :"]],
    noticed_by: {
      file: mixedForks,
      test: "a chip replacement without effect is repeated even if only the chip that a node on the previous fork names tells that it was made",
    },
  },
  {
    name: "a claim that was told of waits for logs that no provider has",
    file: relayClaims,
    replace: [[": await isSoAsFinal(chain, token, receipt.blockNumber, isIts)", ": false"]],
    noticed_by: {
      file: "test/engine/without-logs.test.ts",
      test: "a claim that was made for its recipient before is not sent over and over if no node tells when",
    },
  },
  {
    name: "what an earlier transaction did is told of before it is final",
    file: sendEffects,
    replace: [["if (earlier && !(await isFinal(lane, earlier))) continue", ""]],
    noticed_by: {
      file: refused,
      test: "is done by this lane if both are undone: a claim whose owner has transferred the unit",
    },
  },
  {
    name: "what was told of is given up for what the newest block refuses",
    file: sendAnew,
    replace: [
      ["return await isRefusedAt(lane, job, call, await lane.chain.headers.finalHeight())", "return true"],
    ],
    noticed_by: { file: refused, test: "is repeated if that block is undone: a claim" },
  },
  {
    name: "what the desk was to do is given up for what the last contract refuses",
    file: "src/engine/lanes/refused.ts",
    replace: [["for (const each of callsIn(call)) {", "for (const each of [call]) {"]],
    noticed_by: {
      file: refused,
      test: "is repeated if another collection's unit, with which the desk claimed it, is somebody else's for good",
    },
  },
  {
    name: "a claim of which no node tells who came first holds up all others",
    file: sendEffects,
    replace: [["if (!(failure instanceof ChainUnreachable)) throw failure", "throw failure"]],
    noticed_by: {
      file: "test/engine/without-logs.test.ts",
      test: "a rejected claim delays no other one if no node tells which transaction came first",
    },
  },
  {
    name: "claims that are refused are sent over and over together",
    file: relayClaims,
    replace: [["const taken = await takenClaims(chain, present)", "const taken: Claim[] = []"]],
    noticed_by: {
      file: "test/engine/without-logs.test.ts",
      test: "rejected claims of a collection are not sent over and over if no node tells who came first",
    },
  },
  {
    name: "operators are told of what had failed as of what was done",
    file: sendAnew,
    replace: [['const done = lost.filter(({ status }) => status === "done")', "const done = mined.effects"]],
    noticed_by: {
      file: besideReleased,
      test: "a claim that failed beside another one is not among those that an operator is told of once that is lost",
    },
  },
  {
    name: "an issuance is sent anew for the collections that have it",
    file: "workers/jobs/issue-units.ts",
    replace: [["  lack: lackOf,\n", ""]],
    noticed_by: {
      file: besideReleased,
      test: "an issuance for two collections of which the chain lost one is sent again once that is back, and not before",
    },
  },
  {
    name: "an effect fails for what the newest block refuses",
    file: "src/engine/lanes/refused.ts",
    replace: [["return await isRefusedAt(lane, job, call, confirmed)", "return true"]],
    noticed_by: {
      file: refused,
      test: "a claim that was often rejected for another reason does not fail because of a claim in the newest block",
    },
  },
  {
    name: "an effect fails whose bytes are out",
    file: "src/engine/lanes/refused.ts",
    replace: [["if (await isSentBefore(lane.context.db.read, lane.chain.chain_id, call)) return false", ""]],
    noticed_by: { file: refused, test: "does not fail before they can no longer bind a chip" },
  },
  {
    name: "an effect fails whose bytes are out among others",
    file: "src/engine/jobs/sent-before.ts",
    replace: [
      ["singleCallsIn({ to: before.to, data: before.call })", "[{ to: before.to, data: before.call }]"],
    ],
    noticed_by: {
      file: refused,
      test: "does not fail before they can no longer claim a unit, among others in the same transaction",
    },
  },
  {
    name: "a claim fails where a node leaves out who claimed the unit first",
    file: relayClaims,
    replace: [
      [
        "  if (!log)\n    throw new ChainUnreachable(",
        "  if (!log) return null\n  if (!log)\n    throw new ChainUnreachable(",
      ],
    ],
    noticed_by: {
      file: "test/engine/done-by-others.test.ts",
      test: "who claimed a unit first is not told by a node that is behind and leaves out that transaction's logs",
    },
  },
  {
    name: "an effect fails whose bytes are on their way for another one",
    file: "src/engine/jobs/sent-before.ts",
    replace: [
      ["and, eq, ne }", "and, eq, or }"],
      [
        'ne(transactions.status, "final")',
        'or(eq(transactions.status, "confirmed"), eq(transactions.status, "reverted"))',
      ],
    ],
    noticed_by: {
      file: besideReleased,
      test: "a claim does not fail while a transaction that is sent again for another one may still make it",
    },
  },
  {
    name: "nobody is told that a receipt is missed of a block that is final",
    file: giveResults,
    replace: [["return withoutReceipt(transaction, place)", "return nothing"]],
    noticed_by: {
      file: lanes,
      test: "is the lane's own if its block was seen before, which is also reported once the block is final",
    },
  },
  {
    name: "a claim is superseded whose bytes are out",
    file: relayClaims,
    replace: [["return await filterAll(superseded, isOver)", "return superseded"]],
    noticed_by: { file: refused, test: "is not superseded before they can no longer claim a unit" },
  },
  {
    name: "what met no contract fails before its bytes can do nothing any more",
    file: giveResults,
    replace: [[" || (results.length > 0 && results.every(isError))", ""]],
    noticed_by: { file: metNothing, test: "and binds no chip after it has failed" },
  },
  {
    name: "what failed beside work that succeeded fails before its bytes can do nothing any more",
    file: giveResults,
    replace: [['byFinal && !isError(byFinal[index]) ? "again"', 'byFinal && !isOpen ? "again"']],
    noticed_by: { file: metNothing, test: "a claim joined with one that succeeds" },
  },
  {
    name: "what succeeded waits for a node that can tell what final blocks show of the rest",
    file: giveResults,
    replace: [["const byFinal = await judgeByFinalIfTold", "const byFinal = await judgeByFinal"]],
    noticed_by: {
      file: metNothing,
      test: "does not delay a claim joined with it that succeeds while no node can read a final block",
    },
  },
  {
    name: "what was told of is lost while its bytes may yet achieve it",
    file: giveResults,
    replace: [["if (lost.length > 0 && !(await areLostByFinal(lane, mined, lost))) return false", ""]],
    noticed_by: {
      file: metNothing,
      test: "is repeated if the other sender's claim is undone: a claim",
    },
  },
  {
    name: "a chip replacement is done by one above it where nobody has the logs of that",
    file: "workers/jobs/replace-chips.ts",
    replace: [
      [
        "(await isSoAsFinal(chain, token, receipt.blockNumber, isBound))",
        "(await tokenAtDepth(chain, token, receipt.blockNumber))?.chip_id === chip_id",
      ],
    ],
    noticed_by: {
      file: "test/engine/done-by-others.test.ts",
      test: "a chip replacement mined before the deployment and then achieved by another transaction is repeated even if no node has the logs of that",
    },
  },
  {
    name: "what was told of is lost for what is not final",
    file: giveResults,
    replace: [["results === null || lostOf(mined, results).length === lost.length", "results !== undefined"]],
    noticed_by: { file: metNothing, test: "is repeated if the other one alone is undone: a claim" },
  },
  {
    name: "a chip replacement is lost for a swap in the newest block",
    file: "workers/jobs/replace-chips.ts",
    replace: [["then === null || then.chip_id === previous_chip_id", "then === null"]],
    noticed_by: {
      file: metNothing,
      test: "is repeated if the other one alone is undone: a chip replacement after a swap",
    },
  },
  {
    name: "an issuance is done by what was issued above it",
    file: "workers/jobs/issue-batches.ts",
    replace: [["issuedOn(chain, contract, blockNumber)", "issuedOn(chain, contract)"]],
    noticed_by: {
      file: metNothing,
      test: "an issuance without effect that another transaction achieved is repeated if only that transaction is undone",
    },
  },
  {
    name: "an issuance that was done is given up where it was planned often",
    file: "workers/jobs/issue-units.ts",
    replace: [['status !== "done" && attempts >= maxPlans', "attempts >= maxPlans"]],
    noticed_by: {
      file: metNothing,
      test: "an issuance without effect is repeated, however often it was planned before",
    },
  },
  {
    name: "a metadata refresh that was done is given up where it was planned often",
    file: "workers/jobs/refresh-metadata.ts",
    replace: [['effect.status === "done" || effect.attempts < maxPlans', "effect.attempts < maxPlans"]],
    noticed_by: {
      file: metNothing,
      test: "a metadata refresh without effect is repeated, however often it was planned before",
    },
  },
  {
    name: "a chip replacement is done by what is in the newest block",
    file: "workers/jobs/replace-chips.ts",
    replace: [["isSuccess && (await isSoAsFinal(chain, token, receipt.blockNumber, isBound))", "isSuccess"]],
    noticed_by: {
      file: metNothing,
      test: "does not succeed because of what another sender did in the newest block",
    },
  },
  {
    name: "a chip replacement that was told of is planned but some times",
    file: "workers/jobs/replace-chips.ts",
    replace: [['effect.status === "done" || effect.attempts < maxPlans', "effect.attempts < maxPlans"]],
    noticed_by: { file: metNothing, test: "without effect is repeated, however often it was planned before" },
  },
  {
    name: "serials of others are taken up before they are final",
    file: "workers/jobs/take-up-serials.ts",
    replace: [["if (!(await areOwn(queries, [...recent.values()]))) return", "if (recent.size < 0) return"]],
    noticed_by: {
      file: depths,
      test: "is not told before it is final even if the unit of its chip waits for it",
    },
  },
  {
    name: "what has no effect since its block was replaced is taken for done where its receipt is missing",
    file: "src/engine/lanes/look.ts",
    replace: [
      ["block_number === null || block_hash !== null) return null", "block_number === null) return null"],
    ],
    noticed_by: {
      file: metNothing,
      test: "a chip replacement that waits to be repeated is not taken for done while no node has its receipt",
    },
  },
  {
    name: "what was told of is looked for by its receipt alone",
    file: "src/engine/lanes/look.ts",
    replace: [["return await finalPlace(lane, transaction)", "return null"]],
    noticed_by: {
      file: "test/engine/done-by-others.test.ts",
      test: "a lane continues if another transaction achieved its claim and no node has the receipt of its own transaction any more",
    },
  },
  {
    name: "an owner that another worker has found meanwhile is written over",
    file: "workers/watches/lost-owners.ts",
    replace: [
      ["if (!now || isOutdated(seen, now) || (owner === null && now.owner !== null)) return false", ""],
      ["{ ...unit, ...now }", "unit"],
    ],
    noticed_by: {
      file: depths,
      test: "keeps the owner that another worker found while an earlier one was being queried",
    },
  },
  {
    name: "blocks are read for owners that do not follow each other",
    file: "workers/watches/ownership-changes.ts",
    replace: [["requireTied(headers, span.before, lastHash)", ""]],
    noticed_by: {
      file: depths,
      test: "was reported differently by a node on another fork",
    },
  },
  {
    name: "nobody is asked again whose owner was found above what was read",
    file: watch,
    replace: [["if (is_ahead) moved = await noteOwnersAsked(turn, chain, deepest)", ""]],
    noticed_by: {
      file: depths,
      test: "has none if its claim was found in a block that was never read and is gone",
    },
  },
  {
    name: "an authorization is judged by a provider on another fork",
    file: outcome,
    replace: [["if (!(await asker.isAgreed())) return providersDisagree", ""]],
    noticed_by: {
      file: depths,
      test: "is not superseded by what only a provider on another fork has",
    },
  },
  {
    name: "lost owners are asked of a provider on the fork before",
    file: "workers/watches/lost-owners.ts",
    replace: [["if (!(await isAgreed())) return\n", ""]],
    noticed_by: {
      file: depths,
      test: "is queried only while providers agree, because one on the previous fork still names the owner",
    },
  },
  {
    name: "uses that were told of are not told of anew",
    file: "workers/watches/told-uses.ts",
    replace: [["    told.push(...(some.flat() as ToldUse[]))\n", ""]],
    noticed_by: {
      file: depths,
      test: "whose use a reorganization moved to another transaction while no worker ran gets that transaction's hash",
    },
  },
  {
    name: "an authorization that was asked for is not asked for where an operator retries it",
    file: "src/operator/verbs/retry.ts",
    replace: [
      [
        ".set({ attempts: 0, due_at: new Date(turn.at.getTime() - longMilliseconds) })",
        ".set({ due_at: turn.at })",
      ],
    ],
    noticed_by: {
      file: depths,
      test: "that was queried, and whose use a node left out of its logs, is queried again when an operator retries it",
    },
  },
  {
    name: "a replacement that had nothing to do names itself",
    file: "workers/jobs/replace-chips.ts",
    replace: [
      [
        "  const search = isSuccess",
        "  if (isSuccess) return { output: { transaction_hash: receipt.transactionHash } }\n  const search = isSuccess",
      ],
    ],
    noticed_by: { file: "test/engine/done-by-others.test.ts", test: "names the transaction that bound it" },
  },
  {
    name: "the chain's id is not asked",
    file: "src/engine/chain/own-chain.ts",
    replace: [["Number(id) !== chain_id", "Number(id) === 0"]],
    noticed_by: { file: lanes, test: "on a chain other than its own" },
  },
  {
    name: "a missing factory goes unnoticed",
    file: lane,
    replace: [["if (!(await reach(() => chain.rpc.getCode({ address }))))", "if (address === undefined)"]],
    noticed_by: { file: lanes, test: "if the factory has no code" },
  },
  {
    name: "what cannot be signed takes a nonce all the same",
    file: lane,
    replace: [["&& !(before.failure instanceof SignerUnavailable)", ""]],
    noticed_by: {
      file: "test/engine/silent-key-services.test.ts",
      test: "a key service that does not sign is asked once in a round, holds back no result, and costs one nonce",
    },
  },
  {
    name: "a key service that does not sign is asked again for each transaction",
    file: "src/engine/chain/key-services/key-service-account.ts",
    replace: [["if (error instanceof SignerUnavailable) unavailable = error", ""]],
    noticed_by: {
      file: "test/engine/key-services.test.ts",
      test: "a round of a lane asks a key service no more once it has failed",
    },
  },
  {
    name: "a key service that does not sign ends the round before it gives results",
    file: sendEffects,
    replace: [
      [
        "await attempt(lane, transaction, () => sendFirst(lane, transaction))",
        "await sendFirst(lane, transaction)",
      ],
    ],
    noticed_by: {
      file: "test/engine/silent-key-services.test.ts",
      test: "a key service that does not sign is asked once in a round, holds back no result, and costs one nonce",
    },
  },
  {
    name: "what an error of a contract names is fetched",
    file: "src/engine/chain/rpc.ts",
    replace: [["ccipRead: false", "ccipRead: undefined"]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "a provider cannot make the service fetch a URL or read a file by an error that names it",
    },
  },
  {
    name: "a provider's redirects are followed",
    file: "src/engine/chain/endpoint.ts",
    replace: [[', redirect: "manual" })', " })"]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "a redirect of a provider is not followed",
    },
  },
  {
    name: "a lane without its key takes back the nonces of a restored back-up",
    file: "src/engine/lanes/without-key.ts",
    replace: [["and(isNull(lanes.restored_at), gt(lanes.next_nonce, nonce))", "gt(lanes.next_nonce, nonce)"]],
    noticed_by: {
      file: "test/engine/lane-rows.test.ts",
      test: "leaves the next nonce as it is if that is",
    },
  },
  {
    name: "a lane with nothing to do looks all the same",
    file: lane,
    replace: [["!(await hasWork(lane.context.db.read, row.id))", "lane.memory === null"]],
    noticed_by: { file: lanes, test: "make no requests to their chain" },
  },
  {
    name: "a window without an end",
    file: sendEffects,
    replace: [
      ["if (inFlight.length >= maxInFlight) return", ""],
      ["let room = maxInFlight - inFlight.length", "let room = 99"],
    ],
    noticed_by: {
      file: lanes,
      test: "beyond the window that public pools guarantee, which no organization gets to itself",
    },
  },
  {
    name: "money on its way counts as free",
    file: sendEffects,
    replace: [[" - reservedWei(inFlight)", ""]],
    noticed_by: { file: lanes, test: "for work that it cannot pay for in addition to what is in flight" },
  },
  {
    name: "a role that a key lacks hides everything else that its lane lacks",
    file: sendEffects,
    replace: [["yield noticed(lack)", "yield { ...nothing, pause: lack }"]],
    noticed_by: {
      file: "test/engine/missing-roles.test.ts",
      test: "money that a key lacks is reported although it lacks the role for other work, too",
    },
  },
  {
    name: "a call that reverts fails at its first try",
    file: sendEffects,
    replace: [["({ attempts }) => attempts >= confirmation_depth)", "({ attempts }) => attempts >= 0)"]],
    noticed_by: {
      file: lanes,
      test: "is retried for as many blocks as the confirmation depth before it fails",
    },
  },
  {
    name: "a work whose session Postgres ended meanwhile is not done again",
    file: "src/db/postgres-errors.ts",
    replace: [['["40001", "40P01", endedSession, ...violations]', '["40001", "40P01", ...violations]']],
    noticed_by: {
      file: "test/db/database.test.ts",
      test: "transaction whose session it ended while the whole process was suspended",
    },
  },
  {
    name: "a connection to Postgres that does not come about is a fault of the request",
    file: "src/db/postgres.ts",
    replace: [["throw refusalOf(error) ?? new Data", "throw unavailable(error) ?? new Data"]],
    noticed_by: { file: "test/db/database.test.ts", test: "without TLS" },
  },
  {
    name: "a read is refused where a role has another isolation",
    file: "src/db/postgres.ts",
    replace: [["ask(\"set default_transaction_isolation = 'read committed'\"),", ""]],
    noticed_by: {
      file: "test/db/database.test.ts",
      test: "fails no read because of concurrent writes, whatever isolation level a role has",
    },
  },
  {
    name: "a right that one work lacks fails those beside it",
    file: "src/db/postgres-errors.ts",
    replace: [['ofOneStatement = [cancelled, "42501", "3F000"]', "ofOneStatement = [cancelled]"]],
    noticed_by: {
      file: "test/db/database.test.ts",
      test: "whose role may not write to one table still executes the other transactions",
    },
  },
  {
    name: "a Redis that is gone without a word is waited for",
    file: "src/platform/redis.ts",
    replace: [["silenceMilliseconds = 2_000", "silenceMilliseconds = 2_000_000"]],
    noticed_by: {
      file: "test/http/rate-limits.test.ts",
      test: "give up on a silent Redis connection, log it, and reconnect",
    },
  },
  {
    name: "nobody is told that what is given up needs a key that is gone",
    file: pushOn,
    replace: [
      ["!isGivenUp(transaction) || lastWanted(transaction, true)", "!isGivenUp(transaction) || lane"],
    ],
    noticed_by: {
      file: "test/engine/push-on.test.ts",
      test: "that is given up without its key says that it needs the key, and is sent again unchanged",
    },
  },
  {
    name: "an organization that does not exist has no webhook endpoints",
    file: "src/operator/commands/webhooks.ts",
    replace: [
      ["await requireOrganization(context.db.read, named)", "{ id: named }"],
      ['import { requireOrganization } from "../../resources/organizations/service.ts"\n', ""],
    ],
    noticed_by: {
      file: "test/operator/operator.test.ts",
      test: "listing webhook endpoints of an unknown organization is an error, not an empty list",
    },
  },
  {
    name: "who asks for metrics waits for a database that fell silent",
    file: "src/operator/port/render-metrics.ts",
    replace: [["answer, 8_000,", "answer, 80_000,"]],
    noticed_by: {
      file: "test/operator/metrics.test.ts",
      test: "a silent database is reported before the scraper times out",
    },
  },
  {
    name: "the receipt page calls a genuine receipt invalid where browsers cannot verify",
    file: "src/api/docs/verify-receipt.js",
    replace: [["if (!crypto.subtle)", "if (!crypto)"]],
    noticed_by: {
      file: "test/api/docs.test.ts",
      test: "the receipt page says why it cannot verify where browsers withhold cryptography, as in pages with http:",
    },
  },
  {
    name: "the receipt page shows the verdict on an earlier receipt for another link opened in it",
    file: "src/api/docs/verify-receipt.js",
    replace: [['addEventListener("hashchange", showHanded)\n', ""]],
    noticed_by: {
      file: "test/api/docs.test.ts",
      test: "a second link with a receipt, opened where the first one is shown, shows its own verdict",
    },
  },
  {
    name: "a line that is not JSON gets into the log where Redis deletes keys",
    file: "src/operator/port/wake-up-board.ts",
    replace: [["connection: redis, skipVersionCheck: true", "connection: redis"]],
    noticed_by: {
      file: "test/operator/metrics.test.ts",
      test: "a Redis that deletes keys when it is full is named in the log, and by nothing that is no line of the log",
    },
  },
  {
    name: "metrics say 0 of what nobody could read",
    file: "src/operator/port/render-metrics.ts",
    replace: [["if (labelNames.length === 0) made.remove()", ""]],
    noticed_by: {
      file: "test/operator/metrics.test.ts",
      test: "what only the database knows is absent, not 0, where it does not respond: the alert on events without a place asks for the least",
    },
  },
  {
    name: "no alert is raised when all taps are refused and none was ever recorded",
    file: "src/platform/metrics.ts",
    replace: [['["recorded", "chip.invalid_e_value"]', '["chip.invalid_e_value"]']],
    noticed_by: {
      file: "test/operator/metrics.test.ts",
      test: "outcomes of taps that an alert compares are counted from zero, because nothing is greater than a missing count",
    },
  },
  {
    name: "of a chain that CHAINS has twice only the last entry counts",
    file: "src/platform/chain-settings.ts",
    replace: [["if (repeated === null) return", "if (repeated !== undefined) return"]],
    noticed_by: {
      file: "test/platform/config.test.ts",
      test: "with a chain, or a setting of one, twice stops the start, because only the last would count",
    },
  },
  {
    name: "the address of a provider is printed where it fails to answer a call",
    file: "src/deploy-factory.ts",
    replace: [
      ["await reachContract(async () => {", "await untilThere(async () => {"],
      [
        "await unlessReverted(() => client.call({ to: address, data }), null)",
        "await client.call({ to: address, data })",
      ],
    ],
    noticed_by: {
      file: "test/operator/deploy-factory.test.ts",
      test: "if the chain stops responding midway, without printing the provider's URL",
    },
  },
  {
    name: "a node that lacks a factory when it is called fails its deployment",
    file: "src/deploy-factory.ts",
    replace: [["if (!lacksContract(error) || ", "if (lacksContract(error) || "]],
    noticed_by: {
      file: "test/operator/deploy-factory.test.ts",
      test: "waits for nodes of a provider that lack the factory when they are called",
    },
  },
  {
    name: "a factory is deployed for an operator that is named twice",
    file: "src/deploy-factory.ts",
    replace: [["if (twice === undefined) return", "if (twice !== null) return"]],
    noticed_by: {
      file: "test/operator/deploy-factory.test.ts",
      test: "if an operator is named twice, before anything is sent",
    },
  },
  {
    name: "a guardian whom a factory does not have is passed over in silence",
    file: "src/deploy-factory.ts",
    replace: [["if (parties.guardian && ", "if (!parties.guardian && "]],
    noticed_by: {
      file: "test/operator/deploy-factory.test.ts",
      test: "if the factory exists with another guardian or without one",
    },
  },
  {
    name: "a node that lacks the block of a deployment is believed",
    file: "src/deploy-factory.ts",
    replace: [["const lagMilliseconds = 15_000", "const lagMilliseconds = 0"]],
    noticed_by: {
      file: "test/operator/deploy-factory.test.ts",
      test: "waits for nodes of a provider that lag behind the others",
    },
  },
  {
    name: "a collection is compared by all its units",
    file: "src/operator/verbs/compare-chain.ts",
    replace: [
      [
        "and(inArray(units.serial, serials), eq(units.collection_id, collectionId))",
        "eq(units.collection_id, collectionId)",
      ],
      ["  serials: number[],\n", "  _serials: number[],\n"],
    ],
    noticed_by: {
      file: "test/operator/compare-chain.test.ts",
      test: "only those units of a collection are read whose chip has changed since issuance",
    },
  },
  {
    name: "a sealed row is set as it was read, whoever wrote it meanwhile",
    file: "src/operator/verbs/rewrap.ts",
    replace: [
      [
        "and(eq(webhookEndpoints.id, place), eq(webhookEndpoints.secrets, JSON.parse(sealed)))",
        "sealed ? eq(webhookEndpoints.id, place) : undefined",
      ],
    ],
    noticed_by: {
      file: "test/operator/secrets.test.ts",
      test: "can be rotated while an organization rotates a webhook secret",
    },
  },
  {
    name: "a migration is a serializable database transaction",
    file: "src/db/migrate.ts",
    replace: [['db.transaction(work, "read committed alone")', "db.transaction(work)"]],
    noticed_by: {
      file: "test/db/database.test.ts",
      test: "whose tables are in use serves any number of writes to other tables while the migration waits",
    },
  },
  {
    name: "a manifest is written anew whose order a restored back-up knows in part",
    file: "src/operator/commands/encode-chips.ts",
    replace: [["(await countRegistered(db.read, id)) < size", "(await countRegistered(db.read, id)) === 0"]],
    noticed_by: {
      file: "test/operator/encode-chips.test.ts",
      test: "that was partly lost in a restore, because the back-up was made during registration, keeps its manifest, too",
    },
  },
  {
    name: "the inspector forgets what changed last over what changed just before it was started",
    file: "src/operator/inspection/feed.ts",
    replace: [["recent.length < mostActors ? late", "recent.length > 0 ? late"]],
    noticed_by: {
      file: "test/operator/inspect.test.ts",
      test: "that connects later receives the most recently changed actors, however many changed just before",
    },
  },
  {
    name: "the inspector is told of no change that was begun before the last",
    file: "src/operator/inspection/feed.ts",
    replace: [["const lateMilliseconds = 10_000", "const lateMilliseconds = 0"]],
    noticed_by: {
      file: "test/operator/inspect.test.ts",
      test: "receives each event once, even if its transaction began before one that was already sent and committed after it",
    },
  },
  {
    name: "a worker that is to stop waits for a provider that fell silent",
    file: "workers/start.ts",
    replace: [["const roundMilliseconds = 5_000", "const roundMilliseconds = 50_000"]],
    noticed_by: {
      file: "test/processes/processes.test.ts",
      test: "a worker whose providers have gone silent stops normally, and leaves its lanes to others",
    },
  },
  {
    name: "an empty database is taken for a restored one",
    file: "src/operator/verbs/restored.ts",
    replace: [["rows.length === 0 || !organization", "rows.length === 0"]],
    noticed_by: {
      file: "test/operator/restored.test.ts",
      test: "operator restored rejects a database that nothing was ever sent from",
    },
  },
  {
    name: "what a restored back-up has forgotten is not waited for",
    file: "src/engine/lanes/forgotten.ts",
    replace: [
      ["  if (restored_at === null) return nothing", "  if (restored_at === null || lane) return nothing"],
      ["if (!restored) return null", "return null"],
    ],
    noticed_by: {
      file: "test/engine/restored.test.ts",
      test: "a chip that a lost transaction may yet issue is bound to one serial",
    },
  },
  {
    name: "adopted nonces begin where the chain is",
    file: nonces,
    replace: [
      ["    ...(await pendingNonces(lane)),\n    await nonceAfterLast(read, lane_id),\n", "    0,\n"],
    ],
    noticed_by: {
      file: lanes,
      test: "that is already assigned, after it reads its nonces from the chain again",
    },
  },
  {
    name: "one provider says that a nonce was stolen",
    file: "src/engine/lanes/nonce-use.ts",
    replace: [
      ["counts.length < voices() || ", ""],
      ["receipts.length < voices() || ", ""],
    ],
    noticed_by: { file: lanes, test: "is attributed to another sender only when every provider confirms it" },
  },
  {
    name: "a final block that was replaced halts nobody",
    file: "src/engine/lanes/final-block.ts",
    replace: [["return { ...nothing, halt }", "return nothing"]],
    noticed_by: { file: lanes, test: "halts the lane that remembers them" },
  },
  {
    name: "the oldest that waits is read first, whose ever it is",
    file: "src/engine/lanes/turns.ts",
    replace: [[".orderBy(sql`place`, asc(effects.id))", ".orderBy(asc(effects.id))"]],
    noticed_by: { file: lanes, test: "delays nobody else's work, however much of it waits" },
  },
  {
    name: "a bulk request is joined with what comes next",
    file: issueOrder,
    replace: [["effect.input.bulk_pairing_id !== bulkPairingId", "effect.input.unit_id === bulkPairingId"]],
    noticed_by: { file: lanes, test: "contains a bulk request alone, without the work after it" },
  },
  {
    name: "a key that a sign-in publishes with its private half is taken for a fault of the service",
    file: "src/resources/identity-tokens/service.ts",
    replace: [["error instanceof errors.JWKSInvalid", "false"]],
    noticed_by: {
      file: "test/resources/sign-ins.test.ts",
      test: "a token of a key whose private half the sign-in publishes is rejected on its field",
    },
  },
  {
    name: "who names a key that nobody has shuts a sign-in to all",
    file: "src/resources/identity-tokens/service.ts",
    replace: [["if (!keys.fresh) await", "if (known.failure || !keys.fresh) await"]],
    noticed_by: {
      file: "test/resources/sign-ins.test.ts",
      test: "while other keys cannot be fetched from the JWKS URL",
    },
  },
  {
    name: "a key that took the place of another of its name is not asked for",
    file: "src/resources/identity-tokens/service.ts",
    replace: [["!isOfNoKey(error) ||", "!(error instanceof errors.JWKSNoMatchingKey) ||"]],
    noticed_by: {
      file: "test/resources/sign-ins.test.ts",
      test: "that replaced another is accepted once the JWKS URL may be requested again",
    },
  },
  {
    name: "a token that names no key is held to the first that fits",
    file: "src/resources/identity-tokens/service.ts",
    replace: [["      if (payload) return payload\n", "      if (payload) return payload\n      break\n"]],
    noticed_by: {
      file: "test/resources/sign-ins.test.ts",
      test: "a token without a key ID is verified with each published key, as during a key rotation",
    },
  },
  {
    name: "work for a chain that is not in CHAINS is said to be due, and nothing else",
    file: "src/operator/commands/retry.ts",
    replace: [["id !== null && !chains.has(id)", "id === null && !chains.has(0)"]],
    noticed_by: {
      file: "test/operator/several-chains.test.ts",
      test: "work for a chain that is no longer in CHAINS is reported as waiting for that",
    },
  },
  {
    name: "a collection that was not compared although it was asked for is no failure",
    file: "src/operator/commands/compare-chain.ts",
    replace: [
      [
        "      if (name !== null) requireConnected(world.chains, rows)\n",
        '      if (name === "") requireConnected(world.chains, rows)\n',
      ],
    ],
    noticed_by: {
      file: "test/operator/several-chains.test.ts",
      test: "work for a chain that is no longer in CHAINS is reported as waiting for that",
    },
  },
  {
    name: "what is on its way is said to be retried",
    file: "src/operator/verbs/retry.ts",
    replace: [["    isNull(effects.transaction_id),\n", ""]],
    noticed_by: {
      file: "test/operator/operator.test.ts",
      test: "with an unmined transaction cannot be retried but can be cancelled, which its reason then says",
    },
  },
  {
    name: "a chip whose id is zero takes others with it",
    file: "workers/jobs/issue-units.ts",
    replace: [
      ['reason === "InvalidChip" && hasFitChip(effect)', 'reason === "ValidChip" && hasFitChip(effect)'],
    ],
    noticed_by: {
      file: "test/engine/refused-issuances.test.ts",
      test: "a chip with ID zero does not block others that can be issued with it",
    },
  },
  {
    name: "a chip whose id is zero takes others with it in a block",
    file: "workers/jobs/issue-units.ts",
    replace: [[" || effects.some(hasFitChip)", ""]],
    noticed_by: {
      file: "test/engine/refused-issuances.test.ts",
      test: "a chip with ID zero does not block others if its transaction reverts in a block",
    },
  },
  {
    name: "a silent factory is taken for one of today, whatever it has deployed",
    file: "src/engine/chain/learn-generations.ts",
    replace: [["      if (await hasDeployedAsFirst(queries, chain)) generations.presume(1)\n", ""]],
    noticed_by: {
      file: "test/engine/generations.test.ts",
      test: "deploys the collections promised under it even if the chain did not respond when a process started",
    },
  },
  {
    name: "a bulk request of which a part failed in a block stays open",
    file: "workers/jobs/issue-units.ts",
    replace: [
      [
        "      await closeBulkPairings(turn, members)\n      if (!members.every(isIssued)) await",
        "      if (members.every(isIssued)) await closeBulkPairings(turn, members)\n      else await",
      ],
    ],
    noticed_by: {
      file: "test/engine/refused-issuances.test.ts",
      test: "in a block, however often it is retried",
    },
  },
  {
    name: "what was refused before it was sent leaves its bulk request open",
    file: sendEffects,
    replace: [["    if (results.size > 0) await job.afterRefusal?.(turn, [...results.keys()])\n", ""]],
    noticed_by: { file: "test/engine/refused-issuances.test.ts", test: "before they were sent" },
  },
  {
    name: "a price above the limits",
    file: "src/engine/chain/fees.ts",
    replace: [["least(most(leastFee, wanted), highest)", "most(leastFee, wanted)"]],
    noticed_by: {
      file: "test/engine/fees.test.ts",
      test: "stays within every limit, with a tip no higher than the price and twice its limit",
    },
  },
  {
    name: "a provider may be asked without end",
    file: "src/engine/chain/endpoint.ts",
    replace: [["await places.enter([url], timeoutMilliseconds, noPlace)", "() => {}"]],
    noticed_by: {
      file: "test/engine/chains-apart.test.ts",
      test: "a silent chain with more requests than may be in flight at once delays no other chain",
    },
  },
  {
    name: "the first provider's error stands for all",
    file: "src/engine/chain/answers.ts",
    replace: [["reject(mostTelling(failures))", "reject(failures[0])"]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "one that answers a request is not outvoted by those that do not",
    },
  },
  {
    name: "any authorization of a token is ours",
    file: outcome,
    replace: [["digest === asked.authorization_digest)", "digest !== null)"]],
    noticed_by: { file: depths, test: "is used at the confirmation depth and not a block before" },
  },
  {
    name: "the watch reads a block above the confirmation depth",
    file: watch,
    replace: [
      ["BigInt(chain.config.confirmation_depth) + 1n", "BigInt(chain.config.confirmation_depth) + 2n"],
    ],
    noticed_by: { file: depths, test: "is used at the confirmation depth and not a block before" },
  },
  {
    name: "an authorization expires in the second of its deadline",
    file: outcome,
    replace: [["const isOver = timestamp > deadline", "const isOver = timestamp >= deadline"]],
    noticed_by: {
      file: depths,
      test: "may be used in the last second before its deadline, and expires with the next",
    },
  },
  {
    name: "blocks that were lost are not read again",
    file: cursor,
    replace: [["(await chain.headers.at(read)).hash === owners_block_hash", "true"]],
    noticed_by: {
      file: depths,
      test: "whose use a reorganization moves into a block that was already read is still found",
    },
  },
  {
    name: "blocks that were lost are read again from the finality depth on",
    file: cursor,
    replace: [["mark?.number ?? (await", "read - BigInt(chain.config.finality_depth) ?? (await"]],
    noticed_by: { file: depths, test: "a token that moved while a provider followed another fork" },
  },
  {
    name: "a chain without marks is read from where its oldest collection was confirmed",
    file: cursor,
    replace: [["lowestBlock(chain, deployed) - 1n", "BigInt(deployed.deployed_block ?? 0) - 1n"]],
    noticed_by: {
      file: depths,
      test: "a chain whose oldest collection a reorganization moved lower is read from there on",
    },
  },
  {
    name: "new blocks are asked for as a range where they are final at once",
    file: watch,
    replace: [["head - surelyHeld(chain.config) + 1n", "head - BigInt(chain.config.finality_depth) + 1n"]],
    noticed_by: {
      file: depths,
      test: "a token that moved is found if each block is final, even if a node omits blocks that it lacks from a range",
    },
  },
  {
    name: "nodes at one URL are never further apart than twelve blocks, however fast those are",
    file: headerChain,
    replace: [["const mostSecondsBehind = 10", "const mostSecondsBehind = 1"]],
    noticed_by: {
      file: depths,
      test: "a token that moved is found on a chain of fast blocks even if a node that lags by seconds omits them from a range",
    },
  },
  {
    name: "a node that is a block behind is a reorganization where blocks are final at once",
    file: cursor,
    replace: [
      [
        "(await isBehind(db.read, chain, newest, deepest))",
        "newest - deepest < BigInt(chain.config.finality_depth)",
      ],
    ],
    noticed_by: {
      file: depths,
      test: "an owner stays known if each block is final and a node lags by a block",
    },
  },
  {
    name: "owners are not asked for once more where the block was replaced by which they were",
    file: cursor,
    replace: [["is_lost: gone !== null }", "is_lost: false }"]],
    noticed_by: {
      file: depths,
      test: "has none if its claim was found in a block that was never read and is gone",
    },
  },
  {
    name: "owners are not asked for once more where a worker stopped that asked for them on a fork that is gone",
    file: watch,
    replace: [["return await noteLost(turn, chain, safe, asked)", "return cursor"]],
    noticed_by: {
      file: depths,
      test: "a token that moved has its new owner even if its provider was on another fork while owners were queried again",
    },
  },
  {
    name: "owners that were asked for on a fork that is gone are kept below blocks that are not",
    file: cursor,
    replace: [["least(gone - 1n, least(read, deepest))", "least(read, deepest)"]],
    noticed_by: {
      file: depths,
      test: "a token that moved has its new owner even if it was queried on a fork that is gone, below blocks that are not",
    },
  },
  {
    name: "a loss from the first block on is noted at one that no chain has",
    file: cursor,
    replace: [["Number(most(safe, 0n))", "Number(safe)"]],
    noticed_by: {
      file: depths,
      test: "a token that moved has its new owner even if its provider was on another fork while owners were queried again",
    },
  },
  {
    name: "a loss is forgotten once a worker asks for owners",
    file: cursor,
    replace: [["{ owners_block_number: Number(most(safe, 0n)), owners_block_hash: null }", "{}"]],
    noticed_by: {
      file: depths,
      test: "a token whose move was undone has its owner even if each worker that queried owners again stopped half-way",
    },
  },
  {
    name: "owners of another fork are written while somebody asks for them",
    file: "workers/watches/follow-owners.ts",
    replace: [["cursor, [...readUpTo, ...askedBy], safe", "cursor, readUpTo, safe"]],
    noticed_by: {
      file: "test/engine/lost-owners.test.ts",
      test: "are not changed by a worker that queried before another worker read on or queried again",
    },
  },
  {
    name: "each transaction through the desk counts as a call of every contract",
    file: "src/engine/jobs/calls-to.ts",
    replace: [["and(isDesk, like(transactions.call, inside(contract)))", "isDesk"]],
    noticed_by: {
      file: "test/engine/calls-to.test.ts",
      test: "are found without those of its neighbours, alone or through the desk",
    },
  },
  {
    name: "a worker reads on while another one has noted a later loss",
    file: watch,
    replace: [["cursor, [...readUpTo, ...askedBy], isFound ? first", "cursor, readUpTo, isFound ? first"]],
    noticed_by: {
      file: depths,
      test: "a token has its owner even if a worker reads on while another one sees that the chain was replaced once more",
    },
  },
  {
    name: "each worker asks for owners at its own newest block",
    file: watch,
    replace: [["await blockToAskAt(chain, cursor, deepest)", "deepest"]],
    noticed_by: {
      file: depths,
      test: "owners are queried at the block at which another worker does, and by none whose provider lacks it",
    },
  },
  {
    name: "owners are asked for below the block at which another worker did",
    file: cursor,
    replace: [["most(read, BigInt(cursor.asked_block_number ?? -1))", "read"]],
    noticed_by: {
      file: depths,
      test: "owners are queried at the block at which another worker does, and by none whose provider lacks it",
    },
  },
  {
    name: "owners are asked for at the same block however old it is",
    file: cursor,
    replace: [["asked && !isOld ? asked", "asked ? asked"]],
    noticed_by: {
      file: depths,
      test: "owners are queried at a new block if nobody finished querying them for long",
    },
  },
  {
    name: "the first blocks after a loss may follow any block",
    file: watch,
    replace: [["first === read.number + 1n ? read.hash : null", "null"]],
    noticed_by: {
      file: depths,
      test: "blocks that do not follow those that are still there after a reorganization are not read",
    },
  },
  {
    name: "blocks that are read again may be of another fork",
    file: watch,
    replace: [["if (first <= highest) return { first, last: highest, is_final: false }", ""]],
    noticed_by: {
      file: depths,
      test: "a token whose move was undone has its owner even if that happens while a slower worker reads again",
    },
  },
  {
    name: "owners found ahead replace the block by which others are checked",
    file: outcome,
    replace: [["if (is_asked_ahead) return stillToRead", ""]],
    noticed_by: {
      file: depths,
      test: "an owner that was queried is not forgotten for another one that is found ahead of the blocks that were read",
    },
  },
  {
    name: "an owner found ahead is that of an older block than is noted for it",
    file: watch,
    replace: [["is_ahead ? await atDeepest(round, searched) : searched", "searched"]],
    noticed_by: {
      file: depths,
      test: "an owner found ahead of the blocks that were read is that of the block by which later blocks are checked",
    },
  },
  {
    name: "lost owners are asked for on another fork than was read",
    file: "workers/watches/lost-owners.ts",
    replace: [["if (cursor?.owners_block_hash !== deepest.hash) return", ""]],
    noticed_by: {
      file: "test/engine/lost-owners.test.ts",
      test: "are queried on the fork that was read only",
    },
  },
  {
    name: "an authorization is superseded by a later change",
    file: outcome,
    replace: [["nonce === asked.authorization_nonce + inBlock", "nonce > asked.authorization_nonce"]],
    noticed_by: {
      file: "test/engine/short-searches.test.ts",
      test: "an authorization is not superseded by a change of its token after the one that used it",
    },
  },
  {
    name: "an authorization is judged by the receipt from another block",
    file: outcome,
    replace: [["if (blockHash !== block) return", "if (blockHash === null) return"]],
    noticed_by: {
      file: "test/engine/short-searches.test.ts",
      test: "an authorization is not superseded by its own use in a block that was replaced",
    },
  },
  {
    name: "block hashes of a fork that is gone are kept below where a range ends",
    file: "workers/watches/chain-marks.ts",
    replace: [["gt(chainMarks.block_number, from)", "gt(chainMarks.block_number, number - 1)"]],
    noticed_by: {
      file: "test/engine/chain-marks.test.ts",
      test: "contain none of an abandoned fork between the ends of a range that was read on another",
    },
  },
  {
    name: "serials are taken up at the newest block",
    file: "workers/jobs/take-up-serials.ts",
    replace: [["await issuedOn(chain, address, block)", "await issuedOn(chain, address)"]],
    noticed_by: {
      file: depths,
      test: "is recorded once it is final, and nothing is issued before",
    },
  },
  {
    name: "a new authorization is not asked for",
    file: outcome,
    replace: [["return attempts === 0 ? since >= unusedMilliseconds :", "return attempts === 0 ? false :"]],
    noticed_by: {
      file: depths,
      test: "that could only be issued because a provider lagged is superseded half a minute later, not at its deadline",
    },
  },
  {
    name: "an authorization is asked for in each round",
    file: watch,
    replace: [
      [
        "? null : { attempts: 1, last_error: null, due_at }",
        "? null : { attempts: 0, last_error: null, due_at }",
      ],
    ],
    noticed_by: { file: depths, test: "is queried once, and then only when its unit changes" },
  },
  {
    name: "what a worker saw is told although another one has read on since",
    file: watch,
    replace: [
      ["await holdCursor(turn, chain, cursor, [...readUpTo, ...askedBy], isFound ? first - 1n : null)", ""],
    ],
    noticed_by: {
      file: depths,
      test: "is not used because of a block that another worker has since seen replaced",
    },
  },
  {
    name: "what a worker found is dropped where another one was quicker",
    file: watch,
    replace: [["const mostAttempts = 4", "const mostAttempts = 1"]],
    noticed_by: {
      file: depths,
      test: "is used even if another worker always reads on first and finds nothing",
    },
  },
  {
    name: "the chain counts as read less far where a worker looks again",
    file: watch,
    replace: [["const isNew = highest === null || last > highest", "const isNew = true"]],
    noticed_by: { file: depths, test: "leaves the chain read as far as another worker has read it" },
  },
  {
    name: "owners are asked for while providers follow different forks",
    file: watch,
    replace: [["if (!(await isAgreed()))", "if (deepest.number < 0n)"]],
    noticed_by: { file: depths, test: "waits if blocks were lost and providers follow different forks" },
  },
  {
    name: "a chip that the chain never replaced is compared with nothing",
    file: "src/operator/verbs/compare-chain.ts",
    replace: [["new Map([...swapped, ...locked])", "swapped"]],
    noticed_by: {
      file: "test/operator/compare-chain.test.ts",
      test: "a chip replacement undone by a reorganization is reported by unit once a claim has locked the previous chip",
    },
  },
  {
    name: "an owner that was lost is not asked for",
    file: watch,
    replace: [["await findLostOwners(asker, cursor)", ""]],
    noticed_by: { file: depths, test: "is queried until the chain names one" },
  },
  {
    name: "an older change counts though a node leaves out the newest, if it has pruned the state at the older one",
    file: outcome,
    replace: [["return before === null || before + newer.length === after", "return newer.length <= after"]],
    noticed_by: { file: depths, test: "is not superseded by an older change whose state was pruned" },
  },
  {
    name: "a claim that no wallet brings back stands for ever",
    file: "workers/watches/lost-owners.ts",
    replace: [["if (nonce === null || nonce <= watch", "if (nonce !== undefined || nonce <= watch"]],
    noticed_by: { file: depths, test: "can be claimed again once no wallet can bring its claim back" },
  },
  {
    name: "what was done before is refused",
    file: sendEffects,
    replace: [["await job.earlier?.(lane.chain, read, effect)", "null"]],
    noticed_by: { file: overtaken, test: "succeeds: a claim whose owner has since transferred the unit" },
  },
  {
    name: "a claim is sent anew before the replacement of its chip",
    file: sendAnew,
    replace: [["if (hold) return waitsUntil(mined, hold)", ""]],
    noticed_by: {
      file: overtaken,
      test: "is repeated before the later claim, which would lock in the wrong chip forever",
    },
  },
  {
    name: "a claim is sent again before the replacement of its chip",
    file: pushOn,
    replace: [
      [
        "const is_given_up = hold !== null || isGivenUp(transaction)",
        "const is_given_up = isGivenUp(transaction)",
      ],
      ["if (hold === null || attempt.is_cancel) return", "return"],
    ],
    noticed_by: { file: overtaken, test: "is repeated before the claim also if someone else uses its nonce" },
  },
  {
    name: "a claim is sent for the first time before the replacement of its chip",
    file: pushOn,
    replace: [
      [
        "hold === null ? await sendFirst(lane, transaction) : await sendEmpty(lane, transaction)",
        "await sendFirst(lane, transaction)",
      ],
    ],
    noticed_by: { file: overtaken, test: "is repeated before a claim of which only the nonce was stored" },
  },
  {
    name: "a claim that was done is moved on whenever an empty transaction has used up its nonce",
    file: giveResults,
    replace: [
      [
        'if (members.some(({ status }) => status === "done"))\n      return await sendUndone(lane, { transaction, effects: members, receipt }, place, members)',
        "",
      ],
    ],
    noticed_by: {
      file: overtaken,
      test: "takes one empty transaction for the claim, however long the chain refuses to repeat it",
    },
  },
  {
    name: "a claim is sent again while the chain has neither its issuance nor the replacement of its chip",
    file: relayClaims,
    replace: [["return token === null || (token.owner", "return token !== null && (token.owner"]],
    noticed_by: {
      file: overtaken,
      test: "is repeated before the claim also if it was mined before the unit's issuance",
    },
  },
  {
    name: "a claim is planned while the chain has neither its issuance nor the replacement of its chip",
    file: relayClaims,
    replace: [["new Set([...rebound, ...(await heldClaims(chain, queries, next))])", "new Set(rebound)"]],
    noticed_by: {
      file: overtaken,
      test: "is waited for by a new claim also if the unit's issuance is undone, too, which one node has not seen",
    },
  },
  {
    name: "a claim is held back because a node is behind",
    file: relayClaims,
    replace: [["(claim) => lacksChip(chain, claim)", '(claim) => hasOtherChip(chain, claim, "latest")']],
    noticed_by: { file: overtaken, test: "is not what a node sees that is still at the block before it" },
  },
  {
    name: "nobody is told that a claim that is held back needs a key that is gone",
    file: pushOn,
    replace: [["if (account) return noticed(why)", "return noticed(why)"]],
    noticed_by: {
      file: overtaken,
      test: "asks for the key of its lane if the claim before it can only be given up with it",
    },
  },
  {
    name: "a block that is read again tells a token's moves in it again",
    file: "workers/watches/follow-owners.ts",
    replace: [["    if (isTold && unit?.owner !== seen.owner) continue\n", ""]],
    noticed_by: {
      file: "test/resources/ownership.test.ts",
      test: "several moves of a token in one block are told once, even if the block is read again",
    },
  },
  {
    name: "a claimed token whose collection the chain has lost holds up all authorizations",
    file: "workers/watches/follow-owners.ts",
    replace: [["(await hasNoContract(chain, address, block))", "block.number < 0n"]],
    noticed_by: {
      file: depths,
      test: "a claimed token whose collection the chain has lost delays no authorization of another one",
    },
  },
  {
    name: "a claimed token is back in custody because a provider lacks a block",
    file: "src/engine/chain/issued.ts",
    replace: [["data === noSize", "data === noSize || !data"]],
    noticed_by: {
      file: depths,
      test: "a claimed token stays claimed while a provider that is behind answers for a block as if it were empty",
    },
  },
  {
    name: "a collection that cannot be planned holds up the issuance of another one",
    file: "workers/jobs/issue-units.ts",
    replace: [["error instanceof ChainUnreachable || error instanceof DatabaseUnavailable", "error"]],
    noticed_by: {
      file: "test/engine/fairness.test.ts",
      test: "a collection whose lost serials no provider can tell does not delay the issuance of another one",
    },
  },
  {
    name: "a collection that the chain has lost holds up the claims of all others",
    file: relayClaims,
    replace: [["const lost = await lostClaims(chain, chosen)", "const lost = chosen.slice(0, 0)"]],
    noticed_by: { file: metNothing, test: "does not delay another collection's claim: a claim" },
  },
  {
    name: "claims are sent together although the chain has lost their units",
    file: relayClaims,
    replace: [["serial > issued)", "serial > issued && issued === 0)"]],
    noticed_by: { file: metNothing, test: "is not sent in vain: claims that go together" },
  },
  {
    name: "a chip replacement whose collection the chain has lost holds up all others",
    file: "workers/jobs/replace-chips.ts",
    replace: [["await tokenNow(chain, token)", "await tokenSince(chain, token, 0n)"]],
    noticed_by: {
      file: metNothing,
      test: "does not delay another collection's claim: a chip replacement after another one",
    },
  },
  {
    name: "claims that go together are sent anew whether or not the chain has their units",
    file: sendAnew,
    replace: [["if (lack) return waitsUntil(mined, lack)", ""]],
    noticed_by: { file: metNothing, test: "is sent anew once, when it can have an effect" },
  },
  {
    name: "a chip replacement that forgets the one before it",
    file: "workers/jobs/replace-chips.ts",
    replace: [["if (await followsOpenSwap(queries, effect)) return", "if (false) return"]],
    noticed_by: {
      file: overtaken,
      test: "is waited for by the next one, which had no effect, as long as it takes",
    },
  },
  {
    name: "a range of logs that is too much is asked for again as it was",
    file: "src/engine/chain/log-ranges.ts",
    replace: [["if (asked === 1 || ", "if (asked >= 1 || "]],
    noticed_by: {
      file: depths,
      test: "used long ago is found through a provider with a small block range",
    },
  },
  {
    name: "a range of logs that is too much is passed over",
    file: "src/engine/chain/logs.ts",
    replace: [["if (logs === null) break", "if (logs === null) continue"]],
    noticed_by: {
      file: "test/engine/chain-logs.test.ts",
      test: "misses nothing if one of several concurrent ranges has too many logs",
    },
  },
  {
    name: "more contracts than a provider answers for are asked of again as they were",
    file: "src/engine/chain/contracts-at-once.ts",
    replace: [["if (asked === 1 || ", "if (asked >= 1 || "]],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "exceed max addresses or topics per search position",
    },
  },
  {
    name: "as few contracts are asked of as a provider once answered for",
    file: "src/engine/chain/learnt-size.ts",
    replace: [["if (asked === size)", "if (asked === 0)"]],
    noticed_by: {
      file: "test/engine/contracts-at-once.test.ts",
      test: "all contracts are queried together again once the provider accepts that",
    },
  },
  {
    name: "many collections are asked for one part after the other",
    file: "workers/watches/ownership-changes.ts",
    replace: [["const questionsAtOnce = 16", "const questionsAtOnce = 1"]],
    noticed_by: {
      file: depths,
      test: "many collections are queried concurrently, with at most sixteen requests",
    },
  },
  {
    name: "what a node says of transactions is taken for the answer to a call",
    file: "src/engine/chain/endpoint.ts",
    replace: [[" && method === sendMethod) return", ") return"]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "an error about sending a transaction is no answer to a call:",
    },
  },
  {
    name: "a provider is behind by the moment that its answer takes",
    file: providers,
    replace: [["const maxLagSeconds = 4", "const maxLagSeconds = 0"]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "are equal if blocks are fast and one lags by some blocks, which is only a moment",
    },
  },
  {
    name: "a provider without the last blocks of a range says what is in them",
    file: providers,
    replace: [["if (providers.length > 1) await requireHeld(provider, question, times)", ""]],
    noticed_by: {
      file: "test/engine/providers.test.ts",
      test: "one that lacks the last block of a range is not asked for its logs, of which it would leave out some",
    },
  },
  {
    name: "a wallet's claim is refused for a node that lacks the newest block",
    file: "src/engine/chain/chains.ts",
    replace: [["if (left === 1 || ", "if (left > 0 || "]],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "a claim is prepared for a wallet even if nodes behind one URL briefly lack the block that another has reported",
    },
  },
  {
    name: "a token is read at a block's number, which stands for another block on another fork",
    file: "src/engine/chain/state-at.ts",
    replace: [["unlessUnknown(read({ blockHash: hash }), ", "unlessUnknown(read({ blockNumber: number }), "]],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "the owner and the nonce of a token are those of one block, though another provider follows another fork",
    },
  },
  {
    name: "a provider without a block is overruled by one that knows no blocks by hash",
    file: "src/engine/chain/endpoint.ts",
    replace: [
      ['judge(error) !== "unknown" && lacksBlock.test', 'judge(error) === "answer" && lacksBlock.test'],
    ],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "the owner and the nonce of a token are those of one block, though another provider follows another fork",
    },
  },
  {
    name: "a block is missing for all if a provider that is stuck lacks it",
    file: providers,
    replace: [["if (provider.lags) laggards.add(error)", "if (provider.is_silent) laggards.add(error)"]],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "a claim is prepared for a wallet through a provider that knows no blocks by hash while another one is stuck",
    },
  },
  {
    name: "a token is read at a block's number that stands for another block by now",
    file: "src/engine/chain/state-at.ts",
    replace: [["if (block.hash !== hash) throw", "if (block.number !== number) throw"]],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "what a node that knows no blocks by hash tells of a token does not count if its block was replaced meanwhile",
    },
  },
  {
    name: "an owner is asked for by a block's number, which a node on another fork has, too",
    file: "workers/watches/follow-owners.ts",
    replace: [
      [
        "const read = (place: BlockPlace) => ",
        "const read = (place: BlockPlace = { blockNumber: block.number }) => ",
      ],
      ["stateAt(chain.rpc, block, read)", "read()"],
    ],
    noticed_by: {
      file: depths,
      test: "a unit whose claim a reorganization undid can be claimed again, even if a node on the previous fork is asked for its owner",
    },
  },
  {
    name: "the tip that a node asks for is come to by tenths",
    file: nextMove,
    replace: [
      ['leastTipIn(last_error ?? "") ?? 0n', "0n"],
      ['import { leastTipIn } from "../chain/send-errors.ts"\n', ""],
    ],
    noticed_by: {
      file: "test/engine/push-on.test.ts",
      test: "because its pool requires a higher tip offers that tip with the next block",
    },
  },
  {
    name: "a claim is refused for a provider that wants fewer requests for a moment",
    file: "src/engine/chain/endpoint.ts",
    replace: [
      [
        '/limit exceeded|no state available/.test(words) ||\n    classifySendError(words) === "rate_limited"',
        'classifySendError(words) === "known"',
      ],
    ],
    noticed_by: {
      file: "test/engine/lesser-nodes.test.ts",
      test: "claims and transfers wait a moment for a provider that throttles requests, if it is the only one",
    },
  },
  {
    name: "what a node asked for is forgotten once something else was said",
    file: nextMove,
    replace: [["leastTipWithin(limits, attempts)", "leastTipWithin(limits, attempts.slice(-1))"]],
    noticed_by: {
      file: "test/engine/next-move.test.ts",
      test: "is no smaller tip than a node required if the signer does not have enough for that one yet",
    },
  },
  {
    name: "what cannot be paid for is signed anew with each block",
    file: nextMove,
    replace: [["const isWorthIt = isTenthLess(", "const isWorthIt = true || isTenthLess("]],
    noticed_by: {
      file: "test/engine/push-on.test.ts",
      test: "because its signer lacks a cost that only the node knows is sent again unchanged, whatever prices do",
    },
  },
  {
    name: "logs that are longer than the client reads are asked for again as they were",
    file: "src/engine/chain/endpoint.ts",
    replace: [["|response body exceeded/", "/"]],
    noticed_by: {
      file: "test/engine/chain-logs.test.ts",
      test: "uses smaller ranges if a response is too long, as from an own node without a limit",
    },
  },
  {
    name: "a process that starts waits for an answer that never ends",
    file: "src/engine/chain/check-chains.ts",
    replace: [["...endingAfter(timeoutMilliseconds)", "timeout: timeoutMilliseconds"]],
    noticed_by: {
      file: "test/engine/check-chains.test.ts",
      test: "a provider whose response never ends is logged as a warning, and the process still starts",
    },
  },
  {
    name: "a demo uses the service of another one, which ends with that one",
    file: "src/demo.ts",
    replace: [["const unlock = await untilAlone(folder, progress)", "const unlock = () => {}"]],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "waits for another demo that has started a service, which would end together with that demo",
    },
  },
  {
    name: "a demo uses whichever service runs where the last one of its folder did",
    file: "src/demo.ts",
    replace: [
      ["if (existsSync(left)) renameSync", "if (!left) renameSync"],
      ["}/v1/settings`, { headers })", "}/health`)"],
    ],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "starts its own service if the one of another folder runs where its own last did",
    },
  },
  {
    name: "a demo uses the service of the folder that its own was copied from",
    file: "src/demo.ts",
    replace: [["if (!(await isTaken(folder))) return false", ""]],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "starts its own service if its folder is a copy of one whose service runs",
    },
  },
  {
    name: "a demo waits for its own service at the API_BASE_URL of another one",
    file: "src/demo.ts",
    replace: [['      API_BASE_URL: "",\n', ""]],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "starts its own service also where API_BASE_URL is the address of one that does not run",
    },
  },
  {
    name: "a signal to the demo leaves its service running",
    file: "src/demo.ts",
    replace: [['      child.kill("SIGINT")\n      await child.exited\n', ""]],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "ends together with its own service when only it gets a signal",
    },
  },
  {
    name: "a local chain that ended is waited for",
    file: "src/dev/chain.ts",
    replace: [["if (anvil.exitCode !== null) throw", "if (false) throw"]],
    noticed_by: {
      file: "test/dev/chain.test.ts",
      test: "a chain whose file cannot be read says so at once, and how to start with a new one",
    },
  },
  {
    name: "requests to this machine go to the proxy of the environment",
    file: "src/platform/run.ts",
    replace: [["processEnvironment[name] = all", "void all"]],
    noticed_by: {
      file: "test/dev/journey.test.ts",
      test: "the dev service, its demo and the operator CLI reach the local chain although a proxy is configured",
    },
  },
  {
    name: "addresses of the service leave out the path of API_BASE_URL",
    file: "src/api/below-path.ts",
    replace: [['if (path === "") return', "return"]],
    noticed_by: {
      file: "test/api/below-path.test.ts",
      test: "a created resource is at its Location, also when the response is replayed",
    },
  },
  {
    name: "a Postgres that asks for a password is said to be away in the driver's words",
    file: "src/db/postgres.ts",
    replace: [["/password must be/.test(message)", "/password was/.test(message)"]],
    noticed_by: {
      file: "test/db/database.test.ts",
      test: "that asks for a password that is not configured is unavailable, with a reason",
    },
  },
  {
    name: "any contract passes for the factory",
    file: "src/engine/chain/check-chains.ts",
    replace: [['return implementation ? "the factory" : "another contract"', 'return "the factory"']],
    noticed_by: {
      file: "test/engine/check-chains.test.ts",
      test: "a process does not start if CHAINS names the desk as the factory, because collection addresses would be wrong",
    },
  },
  {
    name: "the desk of another factory is asked to be given roles",
    file: "src/engine/chain/desk.ts",
    replace: [["return code?.includes(", "return !code?.includes("]],
    noticed_by: {
      file: "test/engine/check-roles.test.ts",
      test: "do not use the desk of another factory, which would let that factory's keys in: it is reported and given no roles",
    },
  },
  {
    name: "keys that could not be checked are shown as keys without faults",
    file: "src/operator/verbs/chain-status.ts",
    replace: [["(error) => [`whether keys", "(error) => [] ?? [`whether keys"]],
    noticed_by: {
      file: "test/operator/chain-roles.test.ts",
      test: "keys of a chain that responds slowly are never said to lack nothing",
    },
  },
  {
    name: "a call is printed that a factory of the first generation does not have",
    file: "src/operator/commands/chain-roles.ts",
    replace: [["        await requireRoles(chain)\n", ""]],
    noticed_by: {
      file: "test/engine/generations.test.ts",
      test: "has no pause, roles or metadata: no call is printed that it would reject",
    },
  },
  {
    name: "a chain that stands still looks as any other",
    file: "src/operator/commands/chain-status.ts",
    replace: [["return trouble === null ? ", "return trouble !== undefined ? "]],
    noticed_by: {
      file: "test/operator/operator.test.ts",
      test: "says in text output, too, what is wrong with a chain that responds",
    },
  },
  {
    name: "a range of logs that takes too long is asked for again as it was",
    file: "src/engine/chain/log-ranges.ts",
    replace: [["const isSlow = !isTooMuch && ", "const isSlow = isTooMuch && "]],
    noticed_by: {
      file: "test/engine/chain-logs.test.ts",
      test: "shrinks to the range that its provider can read in time",
    },
  },
  {
    name: "a second rotation ends an authorizer's overlap without a word",
    file: "src/operator/verbs/chain-roles.ts",
    replace: [["previous.until > now && !isKept", "previous.until > now && isKept"]],
    noticed_by: {
      file: "test/operator/chain-roles.test.ts",
      test: "set-authorizer says whose authorizations a second rotation ends, because a factory knows one previous authorizer",
    },
  },
  {
    name: "an overlap is longer than the newest block takes",
    file: "src/operator/verbs/chain-roles.ts",
    replace: [["BigInt(3_600 * mostOverlapHours)", "BigInt(7_200 * mostOverlapHours)"]],
    noticed_by: {
      file: "test/operator/chain-roles.test.ts",
      test: "the newest block accepts the longest overlap, however far ahead this machine's clock is",
    },
  },
  {
    name: "as few blocks of logs are asked for as providers once took",
    file: "src/engine/chain/learnt-size.ts",
    replace: [["if (asked === size)", "if (asked === 0)"]],
    noticed_by: {
      file: "test/engine/chain-logs.test.ts",
      test: "grows back to the configured range once the provider accepts it",
    },
  },
  {
    name: "an authorization that two were given is used by both",
    file: "workers/watches/single-use.ts",
    replace: [["=== 0 ? output", ">= 0 ? output"]],
    noticed_by: {
      file: depths,
      test: "shared by two claims prepared at the same time is used once, by the first",
    },
  },
  {
    name: "a lane halts for one provider that has stopped",
    file: nonces,
    replace: [["if (!isBeyondDoubt) return", "if (counts.length === 0) return"]],
    noticed_by: { file: "test/engine/lost-nonces.test.ts", test: "but not if one provider has it" },
  },
  {
    name: "a claim locks whichever chip the chain has",
    file: relayClaims,
    replace: [["if (chipIdOf(chip) === chip_id) return false", "if (chip > 0) return false"]],
    noticed_by: {
      file: "test/engine/foreign-chips.test.ts",
      test: "a claim of a unit with a foreign chip on the chain fails without affecting others, and succeeds once the unit has its own chip again",
    },
  },
  {
    name: "a claim that lost its nonce goes out as it was",
    file: relayClaims,
    replace: [["  plansAnew: true,\n\n", ""]],
    noticed_by: {
      file: "test/engine/signed-claims.test.ts",
      test: "a claim that an operator cancels after its unit got another chip fails",
    },
  },
  {
    name: "one recipient's claim is looked for down to the deployment",
    file: relayClaims,
    replace: [
      ["const args = { from: contract, tokenId", "const args = { from: contract, to: recipient, tokenId"],
    ],
    noticed_by: {
      file: "test/engine/short-searches.test.ts",
      test: "the sender that claimed a unit first is found without reading older blocks",
    },
  },
  {
    name: "a claim that may come undone refuses what met no contract",
    file: "workers/jobs/token-at-depth.ts",
    replace: [["tokenBy(chain, token, confirmed)", "tokenBy(chain, token, confirmed + 2n)"]],
    noticed_by: { file: metNothing, test: "does not fail because of a claim that is undone: a claim" },
  },
  {
    name: "a deployment that reverted counts on any other one",
    file: "workers/jobs/deploy-collections.ts",
    replace: [['if (status === "success") return', "if (status) return"]],
    noticed_by: {
      file: overtaken,
      test: "counts as done by another transaction once no reorganization can undo that one",
    },
  },
  {
    name: "what reverted counts on another one that may yet be undone",
    file: giveResults,
    replace: [["Math.max(place.block_number, ...others)", "place.block_number"]],
    noticed_by: {
      file: overtaken,
      test: "is confirmed with another transaction once no reorganization can undo that one",
    },
  },
  {
    name: "what had no effect is issued anew with more units",
    file: issueOrder,
    replace: [["  if (chipIds === null) return await", "  if (chipIds !== undefined) return await"]],
    noticed_by: {
      file: overtaken,
      test: "an issuance that reverted leaves no later one stuck if it is mined again successfully",
    },
  },
  {
    name: "the rest of what had no effect is issued anew with more units",
    file: issueOrder,
    replace: [["issued >= 0 && issued < chip_ids.length", "issued === 0"]],
    noticed_by: {
      file: undoneIssuances,
      test: "if a part of them was sent alone, and the rest with a new unit behind it",
    },
  },
  {
    name: "what had no effect is issued anew in one piece although a part of it was sent alone",
    file: issueOrder,
    replace: [["one.length - other.length", "other.length - one.length"]],
    noticed_by: {
      file: undoneIssuances,
      test: "if a part of them was sent alone and reverted, too, and only that part comes back",
    },
  },
  {
    name: "a serial that is taken up is given in a later round",
    file: "workers/jobs/issue-units.ts",
    replace: [["      await found?.write(turn)\n", ""]],
    noticed_by: { file: undoneIssuances, test: "a unit that waits while its reverted issuance succeeds" },
  },
  {
    name: "a serial that may be undone is taken up although its unit is put off",
    file: "workers/jobs/take-up-serials.ts",
    replace: [["if (!areGiven(found, recent, taken)) return", "if (found.length < 0) return"]],
    noticed_by: {
      file: undoneIssuances,
      test: "a unit that was put off while its reverted issuance succeeds",
    },
  },
  {
    name: "a transaction that a unit is given to is not judged for it",
    file: "workers/jobs/issue-units.ts",
    replace: [['status: "confirmed", block_hash: null', 'status: "confirmed"']],
    noticed_by: {
      file: "test/engine/found-serials.test.ts",
      test: "are watched with their transaction, which is looked for again",
    },
  },
  {
    name: "an authorization is open for whoever has the unit",
    file: outcome,
    replace: [["return owner === holder", "return owner === holder || owner !== null"]],
    noticed_by: {
      file: depths,
      test: "for a unit that went to another owner on another fork is superseded once that is final",
    },
  },
  {
    name: "nonces read before a back-up was restored are adopted",
    file: "src/engine/lanes/leases.ts",
    replace: [["isNull(lanes.next_nonce), isAsRead)", "isNull(lanes.next_nonce), isAsRead && undefined)"]],
    noticed_by: {
      file: "test/engine/lane-rows.test.ts",
      test: "are read again if a back-up was restored in the meantime",
    },
  },
  {
    name: "pools are not asked again once the skipped nonces are used",
    file: "src/engine/lanes/forgotten.ts",
    replace: [["(await firstFree(lane)) > next_nonce", "next_nonce < 0"]],
    noticed_by: {
      file: "test/engine/restored.test.ts",
      test: "what the pools show only after nonces were skipped is outlived, too",
    },
  },
  {
    name: "pools are not asked for what a lost key has sent",
    file: "src/engine/lanes/forgotten.ts",
    replace: [["account === null ? await firstFree(lane)", "account === null ? lane.used_nonces"]],
    noticed_by: {
      file: "test/engine/restored.test.ts",
      test: "a lane without its key is waited for as long as pools hold a transaction of it",
    },
  },
  {
    name: "what has lost its effect is taken for the lowest that waits",
    file: "src/engine/lanes/look.ts",
    replace: [["block_hash === null && nonce >= lane.used_nonces", "block_hash === null && nonce >= 0"]],
    noticed_by: {
      file: overtaken,
      test: "delays nothing behind it that waits for an unknown nonce to be filled",
    },
  },
  {
    name: "what was made again, met nothing and cannot be made any more is told to nobody",
    file: giveResults,
    replace: [["of lostOf(mined, results))\n    tellLost(", "of lostOf(mined, []))\n    tellLost("]],
    noticed_by: {
      file: metNothing,
      test: "after a repetition is lost once its own block is final, which an operator is told",
    },
  },
  {
    name: "content that waits to be sent again stays open",
    file: giveResults,
    replace: [['{ status: "confirmed", ...nowhere } as const', "{}"]],
    noticed_by: {
      file: "test/engine/unreadable-receipts.test.ts",
      test: "an issuance that is sent again and undone again does not hold up the one that it builds on",
    },
  },
  {
    name: "content that waits to be sent again may settle where it had no effect",
    file: giveResults,
    replace: [["...nowhere }", "...unsettled(place) }"]],
    noticed_by: {
      file: metNothing,
      test: "a chip replacement that waits to be repeated once more is not taken for done while no node has its receipt",
    },
  },
  {
    name: "a cancelled transaction that had done nothing is sent again",
    file: giveResults,
    replace: [
      [
        'if (mined.effects.some(({ status }) => status === "done"))\n      return await sendAnew(',
        "if (mined.effects.length >= 0)\n      return await sendAnew(",
      ],
    ],
    noticed_by: {
      file: metNothing,
      test: "an issuance without effect that was planned again is over if its cancel is mined on another fork",
    },
  },
  {
    name: "what somebody else came before is waited for for ever",
    file: sendAnew,
    replace: [["await isOverForGood(lane, mined, place, verdict)", "place.block_number < 0"]],
    noticed_by: {
      file: overtaken,
      test: "ends if another sender claimed the unit first, once that is final, and an operator is told",
    },
  },
  {
    name: "an authorization expires by the service's clock where the chain's is ahead",
    file: "src/resources/ownership/authorization.ts",
    replace: [["Math.max(clock().getTime(), block_at.getTime())", "clock().getTime()"]],
    noticed_by: {
      file: "test/resources/unsent-authorizations.test.ts",
      test: "gets one that is valid for half an hour by the chain's clock if that is ahead",
    },
  },
  {
    name: "an authorization outlives its authorizer",
    file: "src/resources/ownership/authorization.ts",
    replace: [["authorizer_end.at < deadline_at", "authorizer_end.at < clock()"]],
    noticed_by: {
      file: authorizer,
      test: "during an overlap if it expires no later than the old authorizer, and not if it would outlive it",
    },
  },
  {
    name: "an earlier factory is not asked whose signatures it takes",
    file: "src/engine/chain/chains.ts",
    replace: [[", generations.originOf(contract)]),", ", generations.originOf(chain.factory_address)]),"]],
    noticed_by: {
      file: authorizer,
      test: "for no collection of an earlier factory that is paused or names another authorizer",
    },
  },
  {
    name: "open work is never counted again",
    file: "src/engine/actors/open-work.ts",
    replace: [["|| allowance.left < added", ""]],
    noticed_by: {
      file: "test/http/open-work.test.ts",
      test: "several processes that count only now and then",
    },
  },
  {
    name: "what was told just before a pause is queued for nobody",
    file: "src/engine/events/numbering.ts",
    replace: [["  await queueBeforePauses(turn, organizationIds, { after, until })\n", ""]],
    noticed_by: {
      file: "test/events/webhooks.test.ts",
      test: "of events recorded just before their endpoint is paused, by a caller or by failures, wait like all earlier ones",
    },
  },
  {
    name: "a new event looks at all that waits with it",
    file: "src/engine/events/webhook-queue.ts",
    replace: [
      ["select waiting.due_at from", "select max(waiting.due_at) from"],
      ["\n  order by waiting.position desc limit 1", ""],
    ],
    noticed_by: {
      file: "test/events/webhooks.test.ts",
      test: "that wait in large numbers, for one unit or for many, do not slow down new events",
    },
  },
  {
    name: "any number of authorizations wait for wallets",
    file: "src/engine/actors/open-work.ts",
    replace: [['"chain:",', '"nothing:",']],
    noticed_by: {
      file: "test/http/open-work.test.ts",
      test: "open client-broadcast authorizations count toward a limit of their own and leave room for other chain work",
    },
  },
  {
    name: "an order registers UIDs whose bytes are in reverse order",
    file: "src/resources/encodings/wanted-tags.ts",
    replace: [["/^(?!04)[0-9A-F]{12}04$/.test(uid)", 'uid === ""']],
    noticed_by: {
      file: "test/resources/encodings.test.ts",
      test: "is rejected with every invalid line reported",
    },
  },
  {
    name: "an import gives a chip another UID and other keys, which is another tag",
    file: "src/resources/chip-stock/import.ts",
    replace: [['isUnused(row) && likenessOfKeys(secret, row, line) === "alike"', "isUnused(row)"]],
    noticed_by: {
      file: "test/resources/chip-import.test.ts",
      test: "with UIDs in reverse order, as some readers print them, is repaired by a corrected import",
    },
  },
  {
    name: "an import takes the UID of a chip that the file does not name",
    file: "src/resources/chip-stock/import.ts",
    replace: [["!renamed.has(chip_id)", "chip_id === null"]],
    noticed_by: {
      file: "test/resources/chip-import.test.ts",
      test: "with UIDs in the rows of other chips is repaired by a corrected import",
    },
  },
  {
    name: "an import changes chips that are in use",
    file: "src/resources/chip-stock/import.ts",
    replace: [['likeness === "different" && isUnused(row)', 'likeness === "different"']],
    noticed_by: {
      file: "test/resources/chip-import.test.ts",
      test: "and leaves it as it is",
    },
  },
  {
    name: "a delivery looks at all that waits for its endpoint",
    file: "workers/webhooks/outcomes.ts",
    replace: [["gt(unindexed(webhookQueue.due_at), at)", "gt(webhookQueue.due_at, at)"]],
    noticed_by: {
      file: "test/events/webhooks.test.ts",
      test: "that are delivered are recorded without reading those of other units that wait for a retry",
    },
  },
  {
    name: "the first of a line is found by a join with all that waits",
    file: "workers/webhooks/due.ts",
    replace: [
      ["order by queued.position limit 1", `and queued.position < \${webhookQueue.position}`],
      [`\${webhookQueue.position} = (`, "not exists ("],
    ],
    noticed_by: {
      file: "test/events/webhooks.test.ts",
      test: "of one endpoint are found by index even in large numbers, whatever the planner knows about another endpoint",
    },
  },
  {
    name: "all that waits at an endpoint is looked at for the firsts of a few lines",
    file: "workers/webhooks/due.ts",
    replace: [["return ofFew.length > 0 ? ofFew : await", "return await"]],
    noticed_by: {
      file: "test/events/webhooks.test.ts",
      test: "of a few units with long queues are found without reading the whole queue",
    },
  },
  {
    name: "names are looked up in the threads of the process",
    file: "src/platform/public-address.ts",
    replace: [['backend: "c-ares"', 'backend: "libc"']],
    noticed_by: {
      file: "test/events/addresses.test.ts",
      test: "is not delayed by names whose name servers do not respond",
    },
  },
  {
    name: "an event that may have been taken goes to another address too",
    file: "workers/webhooks/send.ts",
    replace: [["      if (!isUnsent(error)) throw error\n", ""]],
    noticed_by: {
      file: "test/events/addresses.test.ts",
      test: "tries no other address of the name once the event may have been sent",
    },
  },
  {
    name: "what was known is kept where nothing ties it to the newest block",
    file: headerChain,
    replace: [["if (!is_tied) {", "if (!is_tied && known.size === 0) {"]],
    noticed_by: {
      file: headers,
      test: "those replaced further down than is walked are not part of the chain either",
    },
  },
  {
    name: "a block that was asked for by its number is taken for one of the newest one's branch",
    file: headerChain,
    replace: [["readBefore?.hash === parent_hash ? readBefore", "readBefore ? readBefore"]],
    noticed_by: {
      file: headers,
      test: "blocks of another branch, which a node returns by number, are not taken for ancestors of the newest one",
    },
  },
  {
    name: "what was told of an older block is believed for ever",
    file: headerChain,
    replace: [["newest - asked_at <= asked_at - since", "newest >= since"]],
    noticed_by: {
      file: headers,
      test: "is requested again at the next block if a node on another fork may have returned it",
    },
  },
  {
    name: "what was told of an older block is believed though blocks below it may have been replaced",
    file: headerChain,
    replace: [["      untied = new Map()\n", ""]],
    noticed_by: {
      file: headers,
      test: "is requested again as soon as blocks are replaced that may include it",
    },
  },
  {
    name: "a lane reads all that it has ever sent",
    file: "src/engine/lanes/transactions.ts",
    replace: [[', ne(transactions.status, "final"))', ")"]],
    noticed_by: {
      file: longLife,
      test: "a lane finds the transactions that it watches without reading all it ever sent",
    },
  },
  {
    name: "one unit of a collection looked for among all of it",
    file: "src/resources/units/service.ts",
    replace: [["collection_id && !external_id", "collection_id"]],
    noticed_by: {
      file: longLife,
      test: "a brand finds one unit of a collection by external ID without reading the others",
    },
  },
  {
    name: "a bulk request over once others wait for nothing",
    file: "workers/jobs/issue-units.ts",
    replace: [['and(isOfBulk, eq(effects.status, "open")', 'and(eq(effects.status, "open")']],
    noticed_by: {
      file: longLife,
      test: "a bulk pairing finishes without reading other brands' waiting units",
    },
  },
  {
    name: "all authorizations read where there is nothing new",
    file: watch,
    replace: [
      [
        "await openEffectIn(context.db.read, { queue: chainQueue(chain.chain_id) })",
        "await openWatches(context, chain)",
      ],
    ],
    noticed_by: {
      file: longLife,
      test: "a watch on a chain without news reads at most one of the waiting authorizations",
    },
  },
  {
    name: "all that goes through the desk read for each collection",
    file: "workers/jobs/issue-batches.ts",
    replace: [["issuancesIn(row, address)", "issuancesIn(row)"]],
    noticed_by: {
      file: longLife,
      test: "an issuance is planned without reading others' work in flight through the desk",
    },
  },
  {
    name: "what waits for a lane looked for among all that is open",
    file: "src/engine/lanes/turns.ts",
    replace: [[" and status = 'open' and transaction_id is null`", "`"]],
    noticed_by: {
      file: longLife,
      test: "a lane finds its waiting work without reading work of wallets and other lanes",
    },
  },
  {
    name: "each line that waits for a lane read from end to end",
    file: "src/engine/lanes/turns.ts",
    replace: [[" and in_line.line_place < ", " and in_line.line_place / 1000 < "]],
    noticed_by: {
      file: longLife,
      test: "a lane plans the first of its waiting work without reading the rest",
    },
  },
  {
    name: "what wallets may still send read to find what is stuck",
    file: "src/operator/verbs/stuck.ts",
    replace: [[" ->> 'deadline_at' else '' end`", " ->> 'deadline_at' else null end`"]],
    noticed_by: {
      file: longLife,
      test: "stuck work is listed without reading what wallets may still send or all that has stopped",
    },
  },
  {
    name: "every statement that was ever asked is kept prepared",
    file: "src/db/sqlite.ts",
    replace: [["others.size > mostOthers", "others.size > 1e9"]],
    noticed_by: {
      file: longLife,
      test: "on sqlite no statement is cached for each length of a list of values",
    },
  },
  {
    name: "no line that waits for a lane read deeper than the first few of it",
    file: "src/engine/lanes/turns.ts",
    replace: [["if (!cut) return true", "return true"]],
    noticed_by: { file: longLife, test: "a lane takes waiting work in turn, however little of it is read" },
  },
  {
    name: "collections of no chain are compared while one is silent",
    file: "src/operator/commands/compare-chain.ts",
    replace: [["if (error instanceof ChainUnreachable) return error.message", ""]],
    noticed_by: {
      file: "test/operator/several-chains.test.ts",
      test: "collections are compared with their chain while another does not respond, which still exits with 1",
    },
  },
  {
    name: "another chain at the address halts a lane",
    file: lane,
    replace: [["  await requireOwnChain(lane.chain)\n", ""]],
    noticed_by: {
      file: "test/engine/chains-apart.test.ts",
      test: "a URL that serves another chain for a while halts no lane, and waiting work continues once it is right",
    },
  },
  {
    name: "another chain's nonces halt a lane once its own chain is back",
    file: lane,
    replace: [["if (compared.halt === null) return compared", "if (compared) return compared"]],
    noticed_by: { file: "test/engine/lesser-nodes.test.ts", test: "no lane halts" },
  },
  {
    name: "another chain's transactions halt a lane once its own chain is back",
    file: "src/engine/lanes/nonce-use.ts",
    replace: [["if (use === null || use.is_ours) return use", "if (lane) return use"]],
    noticed_by: { file: "test/engine/lesser-nodes.test.ts", test: "no lane halts" },
  },
  {
    name: "another chain at the address is read",
    file: cursor,
    replace: [
      ["  await requireOwnChain(chain)\n", ""],
      ['import { requireOwnChain } from "../../src/engine/chain/own-chain.ts"\n', ""],
    ],
    noticed_by: {
      file: "test/engine/chains-apart.test.ts",
      test: "a URL that serves another chain for a while halts no lane, and waiting work continues once it is right",
    },
  },
  {
    name: "nonces are taken from another chain at the address",
    file: lane,
    replace: [["    delete memory.is_right_chain\n", ""]],
    noticed_by: {
      file: "test/engine/chains-apart.test.ts",
      test: "nonces are not read again from another chain that a URL serves for a while",
    },
  },
  {
    name: "a chain whose provider synchronizes anew keeps processes from starting",
    file: "src/engine/chain/check-chains.ts",
    replace: [[" && !(await hasDeployed(db.read, chain))", ""]],
    noticed_by: {
      file: "test/engine/check-chains.test.ts",
      test: "a factory that has deployed collections but is missing, as while its only provider synchronizes, does not stop a process from starting",
    },
  },
  {
    name: "a provider that is far behind is taken for a reorganization",
    file: cursor,
    replace: [["isFar && !(await isNewestMarkThere(queries, chain, deepest))", "isFar"]],
    noticed_by: { file: "test/engine/far-behind.test.ts", test: "owners do not change while" },
  },
  {
    name: "a provider that is far behind undoes what owners were asked by",
    file: cursor,
    replace: [
      ["(await isBehind(db.read, chain, newest, deepest))", "newest - deepest < surelyHeld(chain.config)"],
    ],
    noticed_by: {
      file: "test/engine/far-behind.test.ts",
      test: "owners do not change while a provider lags far behind and blocks above it still have to be read again",
    },
  },
  {
    name: "nobody else is asked where the first provider is far behind",
    file: cursor,
    replace: [["  chain.providers.rankWhenDue()\n", ""]],
    noticed_by: {
      file: "test/engine/far-behind.test.ts",
      test: "another provider is queried if the first one lags far behind, even if no work waits for the chain",
    },
  },
  {
    name: "a chain that ends far below is waited for, whatever its blocks are",
    file: cursor,
    replace: [["isFar && !(await isNewestMarkThere(queries, chain, deepest))", "false"]],
    noticed_by: { file: "test/engine/far-behind.test.ts", test: "a chain that ends far below" },
  },
  {
    name: "what is stuck on one chain hides what is on another one",
    file: "src/operator/verbs/stuck.ts",
    replace: [
      [
        "  rows.sort(byAge(({ effect }) => effect.created_at))\n",
        "  rows.sort(byAge(({ effect }) => effect.created_at)).splice(mostStuck)\n",
      ],
    ],
    noticed_by: {
      file: "test/operator/finding.test.ts",
      test: "sees stuck work even if another stalled chain has a thousand older effects",
    },
  },
  {
    name: "a chain without its factory is said to be well",
    file: "src/operator/ask-chain.ts",
    replace: [["has_factory: code !== undefined", "has_factory: code !== null"]],
    noticed_by: {
      file: "test/operator/operator.test.ts",
      test: "says in text output, too, what is wrong with a chain that responds",
    },
  },
  {
    name: "only the first provider is asked which chain it serves",
    file: "src/operator/ask-chain.ts",
    replace: [["served.find((id) => id !== chain_id)", "served.slice(0, 1).find((id) => id !== chain_id)"]],
    noticed_by: {
      file: "test/operator/operator.test.ts",
      test: "says in text output, too, what is wrong with a chain that responds",
    },
  },
  {
    name: "a chain that is not in CHAINS is said to be well",
    file: "src/operator/ask-chain.ts",
    replace: [["    if (!chains.has(chainId)) return Promise.resolve(notConfigured)\n", ""]],
    noticed_by: {
      file: "test/operator/several-chains.test.ts",
      test: "work for a chain that is no longer in CHAINS is reported as waiting for that",
    },
  },
  {
    name: "a tag that another organization knows is refused",
    file: "src/resources/chips/proof.ts",
    replace: [["if (holder === chip.organization_id)", "if (holder !== null)"]],
    noticed_by: {
      file: "test/resources/encodings.test.ts",
      test: "accepts a tag that another organization also registered, and neither learns of the other",
    },
  },
  {
    name: "a tag that another organization knows is told again with each tap",
    file: "src/resources/chips/proof.ts",
    replace: [["? sharedUid(chip.chip_id, uid) : uid", "? chip.uid : uid"]],
    noticed_by: {
      file: "test/resources/encodings.test.ts",
      test: "recognizes a tag that another organization also registered by its first read, and no other tag with the same keys",
    },
  },
  {
    name: "a diagnosis tells of another organization's tag",
    file: "src/resources/tap-diagnoses/service.ts",
    replace: [
      [
        "(await holderOfTag(queries, chip, upperHex(found.uid))) === organizationId",
        "(await holderOfTag(queries, chip, upperHex(found.uid))) !== null",
      ],
    ],
    noticed_by: {
      file: "test/resources/encodings.test.ts",
      test: "accepts a tag that another organization also registered, and neither learns of the other",
    },
  },
  {
    name: "a chip that is given away takes along what was refused before",
    file: "src/resources/chip-stock/service.ts",
    replace: [
      [
        "await turn.tx.delete(chipRefusals).where(\n      inArray(\n        chipRefusals.chip_id,\n        rows.map(({ chip_id }) => chip_id),\n      ),\n    )\n",
        "",
      ],
    ],
    noticed_by: {
      file: "test/resources/chip-signals.test.ts",
      test: "start at zero for a chip that moves to another organization",
    },
  },
]

/** Breaks a rule in a copy of the tree and answers what is found there; nothing where nobody notices. */
export async function playMutation(mutation: Mutation): Promise<string[]> {
  const folder = copyProject()
  try {
    breakRule(folder, mutation)
    const { noticed_by } = mutation
    return await ("scenario" in noticed_by
      ? faultsOf(folder, noticed_by.scenario)
      : failuresOf(folder, noticed_by))
  } finally {
    removeCopy(folder)
  }
}

async function faultsOf(folder: string, scenario: string): Promise<string[]> {
  const command = [process.execPath, join(folder, "test/faults/chaos.ts"), "--json", "--named", scenario]
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "inherit" })
  const { runs, scenarios } = (await new Response(child.stdout).json()) as {
    runs: number
    scenarios: { faults: string[] }[]
  }
  if (runs !== 1) throw new Error(`${runs} scenarios are named ${scenario}`)
  return scenarios.flatMap(({ faults }) => faults)
}

/** A copy in which nothing can run would fail whatever it is asked. */
const isBroken = /SyntaxError|ReferenceError|Cannot find module/

async function failuresOf(folder: string, { file, test }: { file: string; test: string }): Promise<string[]> {
  const command = [process.execPath, "test", file, "-t", test.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")]
  const child = Bun.spawn(command, {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1" },
  })
  const said = await new Response(child.stderr).text()
  const lines = said.split("\n")
  const told = lines.filter((line) => /^\((pass|fail)\) /.test(line) && line.includes(test))
  if (told.length === 0 || isBroken.test(said))
    throw new Error(`the test "${test}" of ${file} did not run:\n${said.slice(-2_000)}`)
  if (told.every((line) => line.startsWith("(pass)"))) return []
  return lines.filter((line) => /^error: |^\(fail\)/.test(line))
}

/** `bun test/faults/mutations.ts [TEXT]`: breaks every rule whose name has the text, one after the other. */
if (import.meta.main) {
  let unnoticed = 0
  for (const mutation of mutations.filter(({ name }) => name.includes(process.argv[2] ?? ""))) {
    const [first] = await playMutation(mutation)
    if (first === undefined) unnoticed += 1
    const [line] = first?.split("\n") ?? []
    process.stdout.write(`${mutation.name}: ${line === undefined ? "NOT noticed" : `noticed: ${line}`}\n`)
  }
  process.exit(unnoticed === 0 ? 0 : 1)
}
