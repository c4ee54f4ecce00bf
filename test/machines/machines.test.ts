import { describe, expect, test } from "bun:test"
import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  createActor,
  fromPromise,
  initialTransition,
  SimulatedClock,
  transition,
  waitFor,
} from "xstate"
import type { JournalEvent } from "../../src/db/schema.ts"
import { lifecycles, type MachineName } from "../../src/engine/actors/lifecycles.ts"
import { pathOf } from "../../src/engine/actors/runtime.ts"
import { firstStep, nextStep } from "../../src/engine/actors/steps.ts"

type Lifecycle = {
  machine: AnyStateMachine
  /** What a machine is started with; several if the input determines the first state. */
  inputs: object[]
  /** The fields that come with an event: a command's fields, an effect's output. */
  payloads: Record<string, Record<string, unknown>>
  /**
   * Rows are events, columns are states: the next state, or `-` if the event is ignored.
   * `breaks` means an effect's error that the state does not handle; the runtime never delivers one.
   */
  table: string
}

const transaction_hash = "0x01"
const watched = {
  chain_id: 31_337,
  contract_address: "0x02",
  serial: 1,
  authorization_digest: "0x03",
  authorization_nonce: 0,
  deadline_at: "2030-01-01T00:30:00.000Z",
}
const watchOutcomes = {
  "watchAuthorization:used": { outcome: "used", transaction_hash },
  "watchAuthorization:expired": { outcome: "expired" },
  "watchAuthorization:superseded": { outcome: "superseded", transaction_hash },
}

const tables: Record<MachineName, Lifecycle> = {
  "unit-token": {
    machine: lifecycles["unit-token"].machine,
    inputs: [{ collection_id: "collection", lane_id: "lane" }],
    payloads: {
      PAIRED: { chip_id: "0000000001", bulk_pairing_id: null },
      CHIP_REPLACED: { chip_id: "0000000002" },
      "issueUnit:done": { serial: 7, transaction_hash },
    },
    table: `
      event            pending.unpaired  pending.issuing   pending.stopped  active.unclaimed  active.claimed
      PAIRED           pending.issuing   -                 -                -                 -
      issueUnit:done   -                 active.unclaimed  -                -                 -
      issueUnit:error  breaks            pending.stopped   breaks           breaks            breaks
      RETRY            -                 -                 pending.issuing  -                 -
      CHIP_REPLACED    -                 -                 -                active.unclaimed  active.claimed
      CLAIMED          -                 -                 -                active.claimed    -
      RETURNED         -                 -                 -                -                 active.unclaimed
      UNKNOWN          -                 -                 -                -                 -
    `,
  },
  "collection-contract": {
    machine: lifecycles["collection-contract"].machine,
    inputs: [{ collection_id: "collection", lane_id: "lane" }],
    payloads: { "deployCollection:done": { transaction_hash } },
    table: `
      event                   deploying  active  failed
      deployCollection:done   active     -       -
      deployCollection:error  failed     -       breaks
      RETRY                   -          -       deploying
      UNKNOWN                 -          -       -
    `,
  },
  claim: {
    machine: lifecycles.claim.machine,
    inputs: [
      { unit_id: "unit", recipient: "0x04", relay: { lane_id: "lane" }, authorization: null },
      { unit_id: "unit", recipient: "0x04", relay: null, authorization: watched },
    ],
    payloads: { "relayClaim:done": { transaction_hash }, ...watchOutcomes },
    table: `
      event                          claiming.relaying  claiming.watching  claimed  expired  failed
      relayClaim:done                claimed            -                  -        -        -
      relayClaim:error               failed             breaks             -        -        -
      watchAuthorization:used        -                  claimed            -        -        -
      watchAuthorization:expired     -                  expired            -        -        -
      watchAuthorization:superseded  -                  failed             -        -        -
      watchAuthorization:error       breaks             failed             -        -        -
      UNKNOWN                        -                  -                  -        -        -
    `,
  },
  transfer: {
    machine: lifecycles.transfer.machine,
    inputs: [{ unit_id: "unit", authorization: watched }],
    payloads: watchOutcomes,
    table: `
      event                          prepared   confirmed  expired  failed
      watchAuthorization:used        confirmed  -          -        -
      watchAuthorization:expired     expired    -          -        -
      watchAuthorization:superseded  failed     -          -        -
      watchAuthorization:error       failed     -          -        -
      UNKNOWN                        -          -          -        -
    `,
  },
  "chip-replacement": {
    machine: lifecycles["chip-replacement"].machine,
    inputs: [{ lane_id: "lane", unit_id: "unit", previous_chip_id: "0000000001", chip_id: "0000000002" }],
    payloads: { SUBMITTED: { transaction_hash }, "replaceChip:done": { transaction_hash } },
    table: `
      event              prepared   submitted  confirmed  failed
      SUBMITTED          submitted  -          -          -
      replaceChip:done   confirmed  confirmed  -          -
      replaceChip:error  failed     failed     -          -
      UNKNOWN            -          -          -          -
    `,
  },
  "metadata-refresh": {
    machine: lifecycles["metadata-refresh"].machine,
    inputs: [{ lane_id: "lane", collection_id: "collection" }],
    payloads: { SUBMITTED: { transaction_hash }, "refreshMetadata:done": { transaction_hash } },
    table: `
      event                  prepared   submitted  confirmed  failed
      SUBMITTED              submitted  -          -          -
      refreshMetadata:done   confirmed  confirmed  -          -
      refreshMetadata:error  failed     failed     -          -
      UNKNOWN                -          -          -          -
    `,
  },
  "webhook-endpoint": {
    machine: lifecycles["webhook-endpoint"].machine,
    inputs: [{}],
    payloads: { GAVE_UP: { last_error: "responded with status 500" } },
    table: `
      event    enabled  paused   deleted
      PAUSE    paused   -        -
      GAVE_UP  paused   -        -
      ENABLE   -        enabled  -
      DELETE   deleted  deleted  -
      UNKNOWN  -        -        -
    `,
  },
  "session-token": {
    machine: lifecycles["session-token"].machine,
    inputs: [{ ttl_seconds: 600 }],
    payloads: {},
    table: `
      event      valid    expired  revoked
      REVOKE     revoked  -        -
      after:ttl  expired  -        -
      UNKNOWN    -        -        -
    `,
  },
}

for (const [name, lifecycle] of Object.entries(tables)) {
  const { events, states, cells } = readTable(lifecycle.table)
  const reached = reach(lifecycle, events)

  describe(name, () => {
    for (const { event, state, next } of cells)
      test(`${state} at ${event}: ${next === "-" ? "ignored" : next}`, () => {
        const snapshot = reached.get(state)
        if (!snapshot) throw new Error(`no event of the table leads to ${state}`)
        expect(step(lifecycle, snapshot, event)).toBe(next)
      })

    test("the table has a column for every state in which the machine can rest", () => {
      expect(restingStates(lifecycle.machine.root).sort()).toEqual([...states].sort())
    })

    test("the table has a row for every event the machine knows", () => {
      const rows = new Set(events.map((event) => eventOf(lifecycle, event).type))
      expect(lifecycle.machine.events.filter((type) => !rows.has(type))).toEqual([])
    })

    test("the table has no row for an event the machine does not know, but UNKNOWN", () => {
      const known: string[] = lifecycle.machine.events
      expect(events.filter((event) => !known.includes(eventOf(lifecycle, event).type))).toEqual(["UNKNOWN"])
    })

    test("every invoke handles its result and its error", () => {
      for (const node of nodesOf(lifecycle.machine.root))
        for (const { id } of node.invoke) {
          expect([...node.transitions.keys()]).toContain(`xstate.done.actor.${id}`)
          expect([...node.transitions.keys()]).toContain(`xstate.error.actor.${id}`)
        }
    })

    test("the context can be created without an input", () => {
      expect(() => initialTransition(lifecycle.machine)).not.toThrow()
    })
  })
}

test("the top-level states are the API's statuses", () => {
  const statuses = Object.fromEntries(
    Object.entries(tables).map(([name, { machine }]) => [name, Object.keys(machine.states)]),
  )
  expect(statuses).toEqual({
    "unit-token": ["pending", "active"],
    "collection-contract": ["deploying", "active", "failed"],
    claim: ["claiming", "claimed", "expired", "failed"],
    transfer: ["prepared", "confirmed", "expired", "failed"],
    "chip-replacement": ["prepared", "submitted", "confirmed", "failed"],
    "metadata-refresh": ["prepared", "submitted", "confirmed", "failed"],
    "webhook-endpoint": ["enabled", "paused", "deleted"],
    "session-token": ["valid", "expired", "revoked"],
  })
})

describe("a machine's context", () => {
  const error = { code: "chain.reverted", message: "no" }
  const superseded = (code: string) => ({ transaction_hash: null, failure: { code } })
  const outcomes: [name: MachineName, input: number, events: string[], context: object][] = [
    ["unit-token", 0, ["PAIRED"], { chip_id: "0000000001", bulk_pairing_id: null, serial: null }],
    ["unit-token", 0, ["PAIRED", "issueUnit:done"], { serial: 7, transaction_hash, failure: null }],
    ["unit-token", 0, ["PAIRED", "issueUnit:error"], { serial: null, failure: error }],
    ["unit-token", 0, ["PAIRED", "issueUnit:error", "RETRY"], { failure: null }],
    ["unit-token", 0, ["PAIRED", "issueUnit:done", "CHIP_REPLACED"], { chip_id: "0000000002", serial: 7 }],
    ["unit-token", 0, ["PAIRED", "issueUnit:done", "CLAIMED", "CHIP_REPLACED"], { chip_id: "0000000002" }],
    ["collection-contract", 0, ["deployCollection:done"], { transaction_hash, failure: null }],
    ["collection-contract", 0, ["deployCollection:error"], { transaction_hash: null, failure: error }],
    ["collection-contract", 0, ["deployCollection:error", "RETRY"], { failure: null }],
    ["claim", 0, ["relayClaim:done"], { transaction_hash, failure: null }],
    ["claim", 0, ["relayClaim:error"], { transaction_hash: null, failure: error }],
    ["claim", 1, ["watchAuthorization:used"], { transaction_hash, failure: null }],
    ["claim", 1, ["watchAuthorization:expired"], { transaction_hash: null, failure: null }],
    ["claim", 1, ["watchAuthorization:superseded"], superseded("claim.superseded")],
    ["claim", 1, ["watchAuthorization:error"], { transaction_hash: null, failure: error }],
    ["transfer", 0, ["watchAuthorization:used"], { transaction_hash, failure: null }],
    ["transfer", 0, ["watchAuthorization:superseded"], superseded("transfer.superseded")],
    ["transfer", 0, ["watchAuthorization:error"], { transaction_hash: null, failure: error }],
    ["chip-replacement", 0, ["SUBMITTED"], { transaction_hash, failure: null }],
    ["chip-replacement", 0, ["replaceChip:done"], { transaction_hash, failure: null }],
    ["chip-replacement", 0, ["SUBMITTED", "replaceChip:error"], { transaction_hash, failure: error }],
    ["metadata-refresh", 0, ["SUBMITTED"], { transaction_hash, failure: null }],
    ["metadata-refresh", 0, ["refreshMetadata:done"], { transaction_hash, failure: null }],
    ["metadata-refresh", 0, ["refreshMetadata:error"], { transaction_hash: null, failure: error }],
    ["webhook-endpoint", 0, ["GAVE_UP"], { failure: { code: "webhook_endpoint.given_up" } }],
    ["webhook-endpoint", 0, ["GAVE_UP", "ENABLE"], { failure: null }],
  ]
  for (const [name, input, events, context] of outcomes)
    test(`${name} after ${events.join(", ")}${input === 0 ? "" : " by a wallet"}`, () => {
      const { machine, inputs } = tables[name]
      const [first] = initialTransition(machine, inputs[input])
      const last = events.reduce<AnyMachineSnapshot>(
        (snapshot, event) => transition(machine, snapshot, eventOf(tables[name], event))[0],
        first,
      )
      expect(last.context).toMatchObject(context)
    })

  for (const name of ["chip-replacement", "metadata-refresh"] as const)
    test(`${name} has the transaction that it was told of last`, () => {
      const { machine, inputs } = tables[name]
      const [first] = initialTransition(machine, inputs[0])
      const last = ["0x01", "0x02"].reduce<AnyMachineSnapshot>(
        (snapshot, hash) => transition(machine, snapshot, { type: "SUBMITTED", transaction_hash: hash })[0],
        first,
      )
      expect(last.context).toMatchObject({ transaction_hash: "0x02" })
    })

  for (const [name, { machine, inputs }] of Object.entries(tables))
    test(`${name} after the start`, () => {
      for (const input of inputs) expect(initialTransition(machine, input)[0].context).toMatchObject(input)
    })
})

describe("the runtime takes the same steps as XState", () => {
  for (const [name, lifecycle] of Object.entries(tables))
    test(`of ${name}, from each state with each event`, () => {
      const { machine, inputs } = lifecycle
      const plain = ([snapshot, actions]: ReturnType<typeof nextStep>) => ({
        snapshot: JSON.parse(JSON.stringify(machine.getPersistedSnapshot(snapshot))),
        // Each child has a number of its own.
        actions: actions.map(({ type, params }) => ({ type, ...Object(params), actorRef: null })),
      })
      for (const input of inputs)
        expect(plain(firstStep(machine, input))).toEqual(plain(initialTransition(machine, input) as never))
      const { events } = readTable(lifecycle.table)
      for (const snapshot of reach(lifecycle, events).values())
        for (const label of events) {
          const event = eventOf(lifecycle, label)
          if (snapshot.status === "active")
            expect(plain(nextStep(machine, snapshot, event))).toEqual(
              plain(transition(machine, snapshot, event) as never),
            )
        }
    })
})

describe("an effect is requested", () => {
  const relayed = { lane_id: "lane", unit_id: "unit", recipient: "0x04" }
  const issued = {
    collection_id: "collection",
    lane_id: "lane",
    chip_id: "0000000001",
    bulk_pairing_id: null,
  }
  const asked: [name: MachineName, input: number, events: string[], effect: string, given: object][] = [
    ["unit-token", 0, ["PAIRED"], "issueUnit", issued],
    ["collection-contract", 0, [], "deployCollection", { collection_id: "collection", lane_id: "lane" }],
    ["claim", 0, [], "relayClaim", relayed],
    ["claim", 1, [], "watchAuthorization", watched],
    ["transfer", 0, [], "watchAuthorization", watched],
    ["chip-replacement", 0, [], "replaceChip", tables["chip-replacement"].inputs[0] ?? {}],
    ["metadata-refresh", 0, [], "refreshMetadata", tables["metadata-refresh"].inputs[0] ?? {}],
  ]
  for (const [name, index, events, effect, given] of asked)
    test(`by ${name} with what ${effect} needs${index === 0 ? "" : " for a wallet"}`, () => {
      const { machine, inputs } = tables[name]
      const begun = initialTransition(machine, inputs[index])
      const [, actions] = events.reduce(
        ([snapshot], event) => transition(machine, snapshot, eventOf(tables[name], event)),
        begun,
      )
      const spawned = actions.filter(({ type }) => type === "xstate.spawnChild")
      expect(spawned.map(({ params }) => params)).toMatchObject([{ src: effect, input: given }])
    })
})

describe("a machine runs on its own, with its effects stubbed,", () => {
  const failure = { code: "chain.reverted", message: "The chain refused it." }
  const runs: { name: MachineName; effects: Record<string, object | Error>; sent: string[]; end: string }[] =
    [
      {
        name: "unit-token",
        effects: { issueUnit: done("unit-token", "issueUnit") },
        sent: ["PAIRED", "CLAIMED"],
        end: "active.claimed",
      },
      { name: "unit-token", effects: { issueUnit: refused() }, sent: ["PAIRED"], end: "pending.stopped" },
      {
        name: "collection-contract",
        effects: { deployCollection: { transaction_hash } },
        sent: [],
        end: "active",
      },
      { name: "collection-contract", effects: { deployCollection: refused() }, sent: [], end: "failed" },
      { name: "claim", effects: { relayClaim: { transaction_hash } }, sent: [], end: "claimed" },
      { name: "claim", effects: { relayClaim: refused() }, sent: [], end: "failed" },
      {
        name: "transfer",
        effects: { watchAuthorization: watchOutcomes["watchAuthorization:used"] },
        sent: [],
        end: "confirmed",
      },
      {
        name: "transfer",
        effects: { watchAuthorization: watchOutcomes["watchAuthorization:expired"] },
        sent: [],
        end: "expired",
      },
      {
        name: "transfer",
        effects: { watchAuthorization: watchOutcomes["watchAuthorization:superseded"] },
        sent: [],
        end: "failed",
      },
      { name: "transfer", effects: { watchAuthorization: refused() }, sent: [], end: "failed" },
      {
        name: "chip-replacement",
        effects: { replaceChip: { transaction_hash } },
        sent: ["SUBMITTED"],
        end: "confirmed",
      },
      { name: "chip-replacement", effects: { replaceChip: refused() }, sent: ["SUBMITTED"], end: "failed" },
      {
        name: "metadata-refresh",
        effects: { refreshMetadata: { transaction_hash } },
        sent: ["SUBMITTED"],
        end: "confirmed",
      },
      { name: "metadata-refresh", effects: { refreshMetadata: refused() }, sent: [], end: "failed" },
    ]

  for (const { name, effects, sent, end } of runs)
    test(`${name} to ${end} (${Object.values(effects).map(inWords)})`, async () => {
      const actor = play(name, tables[name].inputs[0], effects)
      for (const event of sent) await sendWhenPossible(actor, eventOf(tables[name], event))
      await waitFor(actor, (snapshot: AnyMachineSnapshot) => pathOf(snapshot.value) === end)
      actor.stop()
    })

  for (const end of ["claimed", "expired"] as const)
    test(`claim to ${end}, with an authorization that its recipient submits or not`, async () => {
      const label = end === "claimed" ? "watchAuthorization:used" : "watchAuthorization:expired"
      const actor = play("claim", tables.claim.inputs[1], { watchAuthorization: watchOutcomes[label] })
      await waitFor(actor, (snapshot: AnyMachineSnapshot) => pathOf(snapshot.value) === end)
    })

  test("a failed effect leaves its reason in the context", async () => {
    const actor = play("claim", tables.claim.inputs[0], { relayClaim: refused() })
    const snapshot = await waitFor(actor, ({ status }: AnyMachineSnapshot) => status === "done")
    expect(snapshot.context.failure).toEqual(failure)
  })

  test("session-token to expired when its lifetime is over, to the millisecond", () => {
    const clock = new SimulatedClock()
    const actor = createActor(lifecycles["session-token"].machine, {
      input: { ttl_seconds: 600 },
      clock,
    }).start()
    clock.increment(599_999)
    expect(actor.getSnapshot().value).toBe("valid")
    clock.increment(1)
    expect(actor.getSnapshot().value).toBe("expired")
  })

  test("session-token to revoked when it is ended", () => {
    const clock = new SimulatedClock()
    const actor = createActor(lifecycles["session-token"].machine, {
      input: { ttl_seconds: 600 },
      clock,
    }).start()
    actor.send({ type: "REVOKE" })
    clock.increment(600_000)
    expect(actor.getSnapshot().value).toBe("revoked")
  })

  test("an effect without a stub fails", async () => {
    const actor = createActor(lifecycles["collection-contract"].machine, {
      input: { collection_id: "collection", lane_id: "lane" },
    }).start()
    const { context } = await waitFor(actor, ({ value }) => value === "failed")
    expect(context.failure).toEqual({
      code: "internal.error",
      message: "The work ended in an unexpected way.",
    })
  })

  function refused(): Error {
    return Object.assign(new Error(failure.message), { code: failure.code })
  }
})

function readTable(text: string) {
  const [head = [], ...rows] = text
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
  const states = head.slice(1)
  const cells = rows.flatMap(([event = "", ...nexts]) => {
    if (nexts.length !== states.length) throw new Error(`the row of ${event} has not one cell for each state`)
    return nexts.map((next, column) => ({ event, state: states[column] ?? "", next }))
  })
  return { states, events: rows.map(([event = ""]) => event), cells }
}

/** The event of a table's row: `issueUnit:done` is what the runtime sends when that effect is done. */
function eventOf(lifecycle: Lifecycle, label: string): JournalEvent {
  const payload = lifecycle.payloads[label]
  const [subject = "", result] = label.split(":")
  if (result === undefined) return { type: label, ...payload }
  if (subject === "after") return { type: `xstate.after.${result}.${lifecycle.machine.id}.valid` }
  if (result === "error")
    return { type: `xstate.error.actor.${subject}`, error: { code: "chain.reverted", message: "no" } }
  return { type: `xstate.done.actor.${subject}`, output: payload }
}

function step(lifecycle: Lifecycle, snapshot: AnyMachineSnapshot, label: string): string {
  // Neither the runtime nor an XState actor sends an event to a machine in a final state.
  if (snapshot.status !== "active") return "-"
  const [next, actions] = transition(lifecycle.machine, snapshot, eventOf(lifecycle, label))
  if (next.status === "error") return "breaks"
  return next === snapshot && actions.length === 0 ? "-" : pathOf(next.value)
}

/** A snapshot of every state that the table's events lead to, as the runtime would restore it. */
function reach(lifecycle: Lifecycle, events: string[]): Map<string, AnyMachineSnapshot> {
  const reached = new Map<string, AnyMachineSnapshot>()
  const open = lifecycle.inputs.map((input) => initialTransition(lifecycle.machine, input)[0])
  for (let snapshot = open.shift(); snapshot; snapshot = open.shift()) {
    if (reached.has(pathOf(snapshot.value))) continue
    const stored = JSON.parse(JSON.stringify(lifecycle.machine.getPersistedSnapshot(snapshot)))
    const restored = lifecycle.machine.restoreSnapshot(stored, {} as never) as AnyMachineSnapshot
    reached.set(pathOf(snapshot.value), restored)
    if (restored.status !== "active") continue
    for (const event of events) {
      const [next] = transition(lifecycle.machine, restored, eventOf(lifecycle, event))
      if (next.status !== "error") open.push(next)
    }
  }
  return reached
}

function nodesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesOf)]
}

/** The states without substates that are not left at once. */
function restingStates(root: AnyStateNode): string[] {
  return nodesOf(root)
    .filter((node) => Object.keys(node.states).length === 0 && !node.always)
    .map((node) => node.path.join("."))
}

function done(name: MachineName, effect: string): object {
  return tables[name].payloads[`${effect}:done`] ?? {}
}

function inWords(result: object | Error): string {
  if (result instanceof Error) return "its effect fails"
  return "outcome" in result ? String(result.outcome) : "its effect is done"
}

/** Runs the machine, with a stub for each effect. */
function play(
  name: MachineName,
  input: object | undefined,
  effects: Record<string, object | Error>,
): AnyActorRef {
  const machine: AnyStateMachine = lifecycles[name].machine
  const actors = Object.fromEntries(
    Object.entries(effects).map(([src, result]) => [
      src,
      fromPromise(async () => {
        if (result instanceof Error) throw result
        return result
      }),
    ]),
  )
  return createActor(machine.provide({ actors }), { input }).start()
}

async function sendWhenPossible(actor: AnyActorRef, event: JournalEvent): Promise<void> {
  await waitFor(actor, (snapshot: AnyMachineSnapshot) => snapshot.can(event))
  actor.send(event)
}
