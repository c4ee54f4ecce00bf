import { Database } from "bun:sqlite"

/**
 * Fills an SQLite file that has all tables with `actors` actors in many states, each unit with an external id, a
 * serial where it is active, and an effect. The rows are written as they would stand, past the runtime.
 */
export function fillWithActors(path: string, actors: number): { unit_id: string } {
  const db = new Database(path)
  db.exec("pragma foreign_keys = off")
  db.exec("begin")
  const numbers = `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${actors})`
  const id = "printf('0192f000-0000-7000-8000-%012x', n)"
  const organization = "'0192f000-0000-7000-9000-000000000001'"
  const at = "strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + n, 'unixepoch')"
  const snapshot = (state: string) =>
    `'{"status":"active","value":' || ${state} || ',"context":{"chip_id":"","failure":null},"children":{}}'`
  const state = `case n % 10 when 0 then 'pending.unpaired' when 1 then 'pending.issuing' when 2 then 'active.claimed' else 'active.unclaimed' end`
  const value = `case n % 10 when 0 then '{"pending":"unpaired"}' when 1 then '{"pending":"issuing"}' when 2 then '{"active":"claimed"}' else '{"active":"unclaimed"}' end`
  db.exec(`${numbers} insert into actors select ${id}, 'unit-token', 1, ${organization}, ${snapshot(value)},
    substr(${state}, 1, instr(${state}, '.') - 1), ${state}, 1, ${at}, ${at} from numbers`)
  db.exec(`${numbers} insert into units (id, organization_id, collection_id, external_id, token_status, serial, claimed, created_at)
    select ${id}, ${organization}, ${organization}, 'item-' || n, case when n % 10 < 2 then 'pending' else 'active' end,
    case when n % 10 < 2 then null else n end, n % 10 = 2, ${at} from numbers`)
  db.exec(
    `${numbers} insert into actor_events select ${id}, 1, '{"type":"xstate.init"}', null, 'pending.unpaired', null, ${at} from numbers`,
  )
  db.exec(`${numbers} insert into effects (id, actor_id, invoke_id, src, input, status, queue, attempts, due_at, created_at)
    select ${id}, ${id}, 'issueUnit', 'issueUnit', '{}', case n % 10 when 1 then 'open' else 'done' end, 'lane:1', 0, ${at}, ${at}
    from numbers where n % 10 > 0`)
  db.exec("commit")
  db.close()
  return { unit_id: `0192f000-0000-7000-8000-${(11).toString(16).padStart(12, "0")}` }
}
