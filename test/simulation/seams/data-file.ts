import type { Database, Statement } from "bun:sqlite"
import { statSync } from "node:fs"
import { createRequire } from "node:module"

// SQLite's page cache is invalid after a commit by another connection, and eight connections would reread nearly
// everything for each statement. So all processes of a history write through one connection, one at a time, and another
// one shows what is committed while somebody writes.

const require = createRequire(import.meta.url)
const sqlite = require("bun:sqlite") as typeof import("bun:sqlite")
const RealDatabase = sqlite.Database
const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = sqlite.constants
const openFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI

/** An open file: its connections, and who uses them. */
type DataFile = {
  readonly path: string
  readonly inode: number
  readonly main: Prepared
  /** Created when it is first needed. */
  beside: Prepared | null
  /** Who began the transaction that is open in `main`, if there is one. */
  holder: object | null
  /** The process that is writing, as the triggers see it. */
  writer: string | null
  readonly users: Set<object>
  readonly settings: Set<string>
}

type Prepared = { connection: Database; statements: Map<string, Statement> }

const files = new Map<string, DataFile>()

/** The file as it is now; another one may have been put in its place. */
export function openFile(path: string, user: object): DataFile {
  const known = files.get(path)
  const file = known && known.inode === inodeOf(path) ? known : openAnew(path)
  file.users.add(user)
  return file
}

function openAnew(path: string): DataFile {
  const main = connect(path)
  const none = {
    beside: null,
    holder: null,
    writer: null,
    users: new Set<object>(),
    settings: new Set<string>(),
  }
  const file = { path, inode: inodeOf(path), main, ...none }
  files.set(path, file)
  return file
}

/** The last user closes it. */
export function leaveFile(file: DataFile, user: object): void {
  file.users.delete(user)
  if (file.users.size > 0) return
  for (const each of [file.main, file.beside]) {
    for (const statement of each?.statements.values() ?? []) statement.finalize()
    each?.connection.close()
  }
  if (files.get(file.path) === file) files.delete(file.path)
}

/** Whether somebody else has a transaction open. */
export function isHeldByAnother({ holder, main }: DataFile, user: object): boolean {
  return holder !== user && main.connection.inTransaction
}

/** A setting of a connection, applied to both. */
export function setIn(file: DataFile, pragma: string): void {
  if (file.settings.has(pragma)) return
  file.settings.add(pragma)
  file.main.connection.run(pragma)
  file.beside?.connection.run(pragma)
}

/** A statement on the connection that shows what this user may see. */
export function statementFor(file: DataFile, user: object, text: string): Statement {
  return prepared(isHeldByAnother(file, user) ? besideOf(file) : file.main, text)
}

function besideOf(file: DataFile): Prepared {
  if (file.beside) return file.beside
  file.beside = connect(file.path)
  for (const pragma of file.settings) file.beside.connection.run(pragma)
  return file.beside
}

function connect(path: string): Prepared {
  // Everything that opens the file is in this one process, which needs no file locks.
  return { connection: new RealDatabase(`file:${path}?vfs=unix-excl`, openFlags), statements: new Map() }
}

function prepared({ connection, statements }: Prepared, text: string): Statement {
  const known = statements.get(text)
  if (known) return known
  const statement = connection.prepare(text)
  statements.set(text, statement)
  return statement
}

/** From now on writes are by this process. */
export function nameWriter(file: DataFile, name: string): void {
  if (file.writer === name) return
  const { connection } = file.main
  if (file.writer === null) {
    connection.run("create temp table writing (process text)")
    connection.run("insert into writing values ('')")
    connection.run(`create temp trigger note_writer after insert on transactions begin
      insert into simulation_writers select process, id, lease_epoch from writing, lanes where id = new.lane_id;
    end`)
  }
  prepared(file.main, "update writing set process = ?").run(name)
  file.writer = name
}

function inodeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
}
