import { createRequire } from "node:module"
import { currentProcess, passSeam, served } from "../scheduler.ts"

// Real SQLite, whose connections belong to a process and break off with it, on a disk that may refuse.

const require = createRequire(import.meta.url)
const sqlite = require("bun:sqlite") as typeof import("bun:sqlite")
const RealDatabase = sqlite.Database

const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = sqlite.constants
const openFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI

type Values = (...params: never[]) => unknown[][]

class SimulatedDatabase extends RealDatabase {
  readonly #statements = new Set<{ finalize(): void }>()
  readonly #process = currentProcess()

  constructor(path: string) {
    // All that open the file are in this one process, which need not ask the system for locks.
    super(`file:${path}?vfs=unix-excl`, openFlags)
    if (!this.#process) return
    this.#process.connections.add(this)
    super.exec(`create temp trigger note_writer after insert on transactions begin
      insert into simulation_writers select '${this.#process.name}', id, lease_epoch from lanes where id = new.lane_id;
    end`)
  }

  override exec(text: string) {
    const simulation = served()
    if (!simulation || !this.#process) return super.exec(text)
    passSeam(simulation, text.slice(0, 40))
    if (text === "begin immediate" && simulation.disk === "busy")
      throw refusal("SQLITE_BUSY", "database is locked")
    if (text === "commit" && simulation.disk === "failing") {
      super.exec("rollback")
      throw refusal("SQLITE_IOERR", "disk I/O error")
    }
    // Processes die here, but the power stays: what the system was given is on the disk.
    const changes = super.exec(text === "pragma synchronous = full" ? "pragma synchronous = off" : text)
    if (text === "commit") passSeam(simulation, "committed")
    return changes
  }

  override prepare(text: string): never {
    const statement = super.prepare(text)
    this.#statements.add(statement)
    const isWrite = /^\s*(insert|update|delete)/i.test(text)
    const values: Values = (...params) => {
      const simulation = served()
      if (simulation && this.#process) {
        passSeam(simulation, text.slice(0, 60))
        if (isWrite && simulation.disk === "full") this.#refuseFull()
      }
      return statement.values(...params)
    }
    return { values, finalize: () => statement.finalize() } as never
  }

  /** A full disk ends the whole transaction, or only the statement. */
  #refuseFull(): never {
    if (this.inTransaction && Math.random() < 0.5) super.exec("rollback")
    throw refusal("SQLITE_FULL", "database or disk is full")
  }

  /** What the death of the process does to it: what was not committed is gone. */
  crash(): void {
    if (this.inTransaction) super.exec("rollback")
    for (const statement of this.#statements) statement.finalize()
    super.close()
  }

  override close(): void {
    this.#process?.connections.delete(this)
    super.close()
  }
}

function refusal(code: string, message: string): Error {
  return Object.assign(new Error(message), { name: "SQLiteError", code })
}

Object.assign(sqlite, { Database: SimulatedDatabase })
