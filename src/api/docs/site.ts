import type { Config } from "../../platform/config.ts"
import { type ErrorCode, errorCatalogue } from "../../platform/errors.ts"
import { type Api, openApiDocument } from "../openapi/document.ts"
import { errorMarkdown, errorsMarkdown } from "./error-pages.ts"
import { codesOfFailuresAlone, failureMarkdown } from "./failure-pages.ts"
import { changelogMarkdown, guidesFor, runbooks } from "./guides.ts"
import {
  homesOf,
  operationMarkdown,
  operationPath,
  operationsOf,
  resourceMarkdown,
  resourcePath,
} from "./reference.ts"

/** A page of the documentation. Its content is Markdown; navigation, search and HTML follow from it. */
export type DocsPage = {
  path: string
  title: string
  group: (typeof groups)[number]
  /** The page it is nested under in the navigation, if any. */
  parent: string | null
  markdown: string
}

const groups = ["Guides", "Reference", "Operations", "Runbooks", "Errors"] as const

/** Every page: the guides, the resources with their operations, the runbooks, the changelog and the errors. */
export function buildSite(api: Api, config: Config): DocsPage[] {
  const document = openApiDocument(api, config)
  const homes = homesOf(document)
  const page = (path: string, group: DocsPage["group"], parent: string | null, markdown: string) => ({
    path,
    title: titleOf(markdown),
    group,
    parent,
    markdown,
  })
  return [
    ...guidesFor(config).map(({ name, markdown }, index) =>
      page(index === 0 ? "/docs" : `/docs/${name}`, "Guides", null, markdown),
    ),
    ...document.tags.flatMap((tag) => [
      page(resourcePath(tag.name), "Reference", null, resourceMarkdown(document, homes, tag)),
      ...operationsOf(document)
        .filter(({ operation }) => operation.tags.includes(tag.name))
        .map((asked) => {
          const markdown = operationMarkdown(document, homes, config.api_base_url, asked)
          return page(operationPath(asked.operation), "Operations", resourcePath(tag.name), markdown)
        }),
    ]),
    ...runbooks().map(({ name, markdown }, index) =>
      index === 0
        ? page("/docs/runbooks", "Reference", null, markdown)
        : page(`/docs/runbooks/${name}`, "Runbooks", "/docs/runbooks", markdown),
    ),
    page("/docs/changelog", "Reference", null, changelogMarkdown()),
    page("/docs/errors", "Reference", null, errorsMarkdown()),
    ...(Object.keys(errorCatalogue) as ErrorCode[]).map((code) =>
      page(`/docs/errors/${code}`, "Errors", "/docs/errors", errorMarkdown(document, config, code)),
    ),
    ...codesOfFailuresAlone.map((code) =>
      page(`/docs/errors/${code}`, "Errors", "/docs/errors", failureMarkdown(document, code)),
    ),
  ]
}

function titleOf(markdown: string): string {
  return (/^# (.*)$/m.exec(markdown)?.[1] ?? "").replaceAll("`", "")
}

/** `/llms.txt`, by the convention of llmstxt.org: every page with its Markdown address. */
export function llmsText(pages: readonly DocsPage[], config: Pick<Config, "docs_url">): string {
  const base = config.docs_url.replace(/\/docs$/, "")
  return `# Chip Verification and Ownership API

> Brands register products as units, pair a chip to each, and let whoever taps it become its owner, on chain.

${groups
  .map((group) => {
    const own = pages.filter((page) => page.group === group)
    return `## ${group}\n\n${own.map(({ title, path }) => `- [${title}](${base}${path}.md)`).join("\n")}`
  })
  .join("\n\n")}
`
}
