import { expect, test } from "bun:test"
import { placeOfDatabase } from "../../src/db/open.ts"

test.each([
  ["sqlite:./data/service.db", "./data/service.db"],
  ["postgres://u:p%40ss@db.example:5433/service?sslmode=require", "db.example:5433/service"],
  ["postgresql://u:secret@[::1]/service", "[::1]/service"],
  ["postgres://u@/service?host=/run/postgresql", "localhost/service"],
])("operators are told where a database is, without user and password: %s", (url, place) => {
  expect(placeOfDatabase(url)).toBe(place)
})
