import type { Page } from "../http/page.ts"
import { metadataPages } from "../resources/metadata/pages.ts"
import { docsPages } from "./docs/pages.ts"
import { api } from "./routes.ts"

/** Every address for people. */
export const pages: readonly Page[] = [...api.pages, ...metadataPages, ...docsPages(api)]
