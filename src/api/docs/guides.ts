import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { verdictAdvice } from "../../engine/sun/diagnosis/verdicts.ts"
import { writeTamperOrder } from "../../engine/sun/encoding/write-order.ts"
import type { Config } from "../../platform/config.ts"
import { eventTypesMarkdown } from "./event-types.ts"
import { walletRefusalsMarkdown } from "./wallet-refusals.ts"
import { stepTexts } from "./write-order-texts.ts"

/**
 * A guide is one file, `guides/<order>-<name>.md`, that begins with its title; everything else follows from the file.
 */
type Guide = { name: string; markdown: string }

/** Every guide in order, with each `{{…}}` filled in. Throws for an unknown name. */
export function guidesFor(config: Pick<Config, "api_base_url">): Guide[] {
  const filling: Record<string, string> = {
    api_base_url: config.api_base_url,
    event_types: eventTypesMarkdown(),
    receiver: readFileSync(join(import.meta.dir, "receiver.js"), "utf8").trimEnd(),
    write_order: writeTamperOrder
      .map(
        ({ step, slot }) =>
          `1. \`${step}\`${slot === undefined ? "" : ` of slot ${slot}`}: ${stepTexts[step]}`,
      )
      .join("\n"),
    wallet_refusals: walletRefusalsMarkdown(),
    verdicts: Object.entries(verdictAdvice)
      .map(([verdict, advice]) => `- \`${verdict}\`: ${advice}`)
      .join("\n"),
  }
  return textsIn("guides").map(({ name, text }) => ({
    name,
    markdown: text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
      const value = filling[key]
      if (value === undefined) throw new Error(`the guide ${name} asks for ${key}, which nothing stands for`)
      return value
    }),
  }))
}

/** Every runbook in order, the overview first; each is a file, like a guide. */
export function runbooks(): Guide[] {
  return textsIn("runbooks").map(({ name, text }) => ({ name, markdown: text }))
}

/** The changelog: what changed, release by release, and what may change. */
export function changelogMarkdown(): string {
  return readFileSync(join(import.meta.dir, "../../../CHANGELOG.md"), "utf8")
}

function textsIn(name: string): { name: string; text: string }[] {
  const folder = join(import.meta.dir, name)
  return readdirSync(folder)
    .filter((file) => file.endsWith(".md"))
    .sort()
    .map((file) => ({
      name: file.replace(/^\d+-/, "").replace(/\.md$/, ""),
      text: readFileSync(join(folder, file), "utf8"),
    }))
}
