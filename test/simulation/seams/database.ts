import { createRequire } from "node:module"
import { currentProcess, passSeam, served } from "../scheduler.ts"
import { isHeldByAnother, leaveFile, nameWriter, openFile, setIn, statementFor } from "./data-file.ts"

// Real SQLite, with connections that belong to a process and break with it, on a disk that may fail.

type Values = (...params: never[]) => unknown[][]

class SimulatedDatabase {
  readonly #process = currentProcess()
  readonly #file
  #isReader = false

  constructor(path: string) {
    this.#file = openFile(path, this)
    this.#process?.connections.add(this)
  }

  get inTransaction(): boolean {
    return this.#file.holder === this && this.#file.main.connection.inTransaction
  }

  exec(text: string) {
    const simulation = served()
    if (!simulation || !this.#process) return this.#exec(text)
    passSeam(simulation, text.slice(0, 40))
    if (text === "begin immediate" && simulation.disk === "busy") throw busy()
    if (text === "commit" && simulation.disk === "failing") {
      this.#exec("rollback")
      throw refusal("SQLITE_IOERR", "disk I/O error")
    }
    const changes = this.#exec(text)
    if (text === "commit") passSeam(simulation, "committed")
    return changes
  }

  run(text: string, params: string[] = []) {
    return this.#file.main.connection.run(text, params)
  }

  #exec(text: string): unknown {
    if (text.startsWith("pragma ")) return this.#set(text)
    if (isHeldByAnother(this.#file, this)) throw busy()
    if (text === "begin immediate") {
      if (this.#process) nameWriter(this.#file, this.#process.name)
      this.#file.holder = this
    }
    return this.#file.main.connection.run(text)
  }

  /** Settings of a single connection are kept here: nobody waits for another one, and a reader writes nothing. */
  #set(pragma: string): void {
    if (pragma.startsWith("pragma busy_timeout")) return
    if (pragma === "pragma query_only = on") this.#isReader = true
    // Processes die here, but the power stays on: what the system accepted is on the disk.
    else setIn(this.#file, pragma === "pragma synchronous = full" ? "pragma synchronous = off" : pragma)
  }

  prepare(text: string): { values: Values; finalize(): void } {
    const isWrite = /^\s*(insert|update|delete)/i.test(text)
    statementFor(this.#file, this, text)
    const values: Values = (...params) => {
      const simulation = served()
      if (simulation && this.#process) {
        passSeam(simulation, text.slice(0, 60))
        if (isWrite && simulation.disk === "full") this.#refuseFull()
      }
      if (isWrite && this.#isReader) throw refusal("SQLITE_READONLY", "attempt to write a readonly database")
      return statementFor(this.#file, this, text).values(...params)
    }
    return { values, finalize: () => {} }
  }

  /** A full disk rolls back the whole transaction, or only the statement. */
  #refuseFull(): never {
    if (this.inTransaction && Math.random() < 0.5) this.#exec("rollback")
    throw refusal("SQLITE_FULL", "database or disk is full")
  }

  /** What the death of the process does: uncommitted work is gone. */
  crash(): void {
    if (this.inTransaction) this.#exec("rollback")
    leaveFile(this.#file, this)
  }

  close(): void {
    this.#process?.connections.delete(this)
    leaveFile(this.#file, this)
  }
}

function busy(): Error {
  return refusal("SQLITE_BUSY", "database is locked")
}

function refusal(code: string, message: string): Error {
  return Object.assign(new Error(message), { name: "SQLiteError", code })
}

const sqlite = createRequire(import.meta.url)("bun:sqlite") as typeof import("bun:sqlite")
Object.assign(sqlite, { Database: SimulatedDatabase })
