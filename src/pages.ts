import { docsPages } from "./docs/pages.ts"
import type { Page } from "./http/page.ts"
import { routes } from "./routes.ts"
import { tapRedirect } from "./taps/redirect.ts"

/** Every address for people. */
export const pages: readonly Page[] = [tapRedirect, ...docsPages(routes)]
