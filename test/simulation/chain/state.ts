import type { StateManagerInterface } from "@ethereumjs/common"
import { Account, type Address } from "@ethereumjs/util"
import { keccak256, toBytes } from "viem"

/**
 * The state of a chain by address and slot, with a history by height, so that it can be read at any height and a
 * reorganization can drop heights. It has no trie, because its root is never needed.
 */
export type State = StateManagerInterface & {
  /** An account as of a block. */
  accountAt(address: Address, height: number): Account | undefined
  codeAt(address: Address, height: number): Uint8Array
  /** From now on the EVM reads at this height; infinity is the newest state, including what is not in a block yet. */
  readAt(height: number): void
  beginTransaction(): void
  /** Stores what was written as the block of this height. */
  keepBlock(height: number): void
  /** Drops what was written and is in no block. */
  discard(): void
  /** Drops every block above a height. */
  rewind(height: number): void
  /** A separate state with the same blocks. */
  fork(): State
}

type Value = Account | Uint8Array | undefined
type Version = { height: number; value: Value }
/** The value that a write replaced. */
type Undo = { key: string; was_dirty: boolean; value: Value }
type Kept = { versions: Map<string, Version[]>; touched: string[][] }

export function createState(kept: Kept = { versions: new Map(), touched: [] }): State {
  const { versions, touched } = kept
  const dirty = new Map<string, Value>()
  const before = new Map<string, Value>()
  let undone: Undo[] = []
  let marks: number[] = []
  let height = Number.POSITIVE_INFINITY

  function read(key: string): Value {
    return dirty.has(key) ? dirty.get(key) : keptAt(key, height)
  }

  function keptAt(key: string, asked: number): Value {
    const list = versions.get(key) ?? []
    for (let index = list.length - 1; index >= 0; index--) {
      const version = list[index] as Version
      if (version.height <= asked) return version.value
    }
    return undefined
  }

  function write(key: string, value: Value): void {
    if (!before.has(key)) before.set(key, read(key))
    undone.push({ key, was_dirty: dirty.has(key), value: dirty.get(key) })
    dirty.set(key, value)
  }

  function beginTransaction(): void {
    before.clear()
    undone = []
    marks = []
  }

  function discard(): void {
    dirty.clear()
    beginTransaction()
  }

  const state: State = {
    accountAt: (address, asked) => keptAt(accountKey(address), asked) as Account | undefined,
    codeAt: (address, asked) => bytesOf(keptAt(`code ${address}`, asked)),
    readAt(asked) {
      height = asked
    },
    beginTransaction,
    keepBlock(number) {
      for (const [key, value] of dirty) {
        const list = versions.get(key) ?? []
        versions.set(key, list)
        list.push({ height: number, value })
      }
      touched[number] = [...dirty.keys()]
      discard()
    },
    discard,
    rewind(number) {
      for (const keys of touched.splice(number + 1)) for (const key of keys) versions.get(key)?.pop()
    },
    fork: () =>
      createState({
        versions: new Map([...versions].map(([key, list]) => [key, [...list]])),
        touched: touched.map((keys) => [...keys]),
      }),

    async getAccount(address) {
      const account = read(accountKey(address)) as Account | undefined
      return account && copyOf(account)
    },
    async putAccount(address, account) {
      write(accountKey(address), account && copyOf(account))
    },
    async deleteAccount(address) {
      write(accountKey(address), undefined)
    },
    async modifyAccountFields(address, { nonce, balance, codeHash }) {
      const account = (await state.getAccount(address)) ?? new Account()
      if (nonce !== undefined) account.nonce = nonce
      if (balance !== undefined) account.balance = balance
      if (codeHash !== undefined) account.codeHash = codeHash
      write(accountKey(address), account)
    },
    async putCode(address, code) {
      write(`code ${address}`, code)
      await state.modifyAccountFields(address, { codeHash: toBytes(keccak256(code)) })
    },
    getCode: async (address) => bytesOf(read(`code ${address}`)),
    getCodeSize: async (address) => (await state.getCode(address)).length,
    getStorage: async (address, slot) => bytesOf(read(slotKey(address, slot))),
    async putStorage(address, slot, value) {
      write(slotKey(address, slot), value)
    },
    async clearStorage() {},
    originalStorageCache: {
      // The gas cost depends on what a slot held when its transaction began.
      async get(address, slot) {
        const key = slotKey(address, slot)
        return bytesOf(before.has(key) ? before.get(key) : read(key))
      },
      clear() {},
    },

    async checkpoint() {
      marks.push(undone.length)
    },
    async commit() {
      marks.pop()
    },
    async revert() {
      const mark = marks.pop() ?? 0
      for (const { key, was_dirty, value } of undone.splice(mark).reverse()) {
        if (was_dirty) dirty.set(key, value)
        else dirty.delete(key)
      }
    },
    getStateRoot: async () => new Uint8Array(32),
    async setStateRoot() {},
    hasStateRoot: async () => true,
    clearCaches() {},
    shallowCopy: () => state,
  }
  return state
}

function accountKey(address: Address): string {
  return `account ${address}`
}

function slotKey(address: Address, slot: Uint8Array): string {
  return `slot ${address} ${Buffer.from(slot).toString("hex")}`
}

function bytesOf(value: Value): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0)
}

function copyOf({ nonce, balance, storageRoot, codeHash }: Account): Account {
  return new Account(nonce, balance, storageRoot, codeHash)
}
