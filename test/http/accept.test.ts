import { expect, test } from "bun:test"
import { wantsHtml } from "../../src/http/accept.ts"

test.each([
  "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  "TEXT/HTML",
  "text/html; charset=utf-8; q=0.5, application/json;q=0.4",
  "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
])("Accept: “%s” gets an HTML page", (accept) => {
  expect(wantsHtml(accept)).toBe(true)
})

test.each([
  "",
  "*/*",
  "application/json",
  "application/json, text/html",
  "text/html;q=0.1, application/json",
  "text/html;q=0",
  "text/html;q=nothing",
  "application/json, text/plain, */*",
  "text/htmlish",
])("Accept: “%s” gets JSON", (accept) => {
  expect(wantsHtml(accept)).toBe(false)
})
