import type { Route } from "../http/route.ts"
import { chipReplacementRoutes } from "../resources/chip-replacements/routes.ts"
import { chipRoutes } from "../resources/chips/routes.ts"
import { claimRoutes } from "../resources/claims/routes.ts"
import { collectionRoutes } from "../resources/collections/routes.ts"
import { eventRoutes } from "../resources/events/routes.ts"
import { metadataRefreshRoutes } from "../resources/metadata-refreshes/routes.ts"
import { publishableKeyRoutes } from "../resources/publishable-keys/routes.ts"
import { receiptKeyRoutes } from "../resources/receipts/routes.ts"
import { sessionTokenRoutes } from "../resources/session-tokens/routes.ts"
import { settingsRoutes } from "../resources/settings/routes.ts"
import { tapDiagnosisRoutes } from "../resources/tap-diagnoses/routes.ts"
import { tapRedirect } from "../resources/taps/redirect.ts"
import { tapRoutes } from "../resources/taps/routes.ts"
import { transferRoutes } from "../resources/transfers/routes.ts"
import { unitRoutes } from "../resources/units/routes.ts"
import { webhookEndpointRoutes } from "../resources/webhook-endpoints/routes.ts"
import type { Api } from "./openapi/document.ts"
import { openApiRoute } from "./openapi/route.ts"
import { welcomeRoutes } from "./welcome/routes.ts"

/** Every operation of the API. */
export const routes: readonly Route[] = [
  ...welcomeRoutes,
  ...tapRoutes,
  ...receiptKeyRoutes,
  ...tapDiagnosisRoutes,
  ...chipRoutes,
  ...unitRoutes,
  ...collectionRoutes,
  ...metadataRefreshRoutes,
  ...claimRoutes,
  ...transferRoutes,
  ...chipReplacementRoutes,
  ...sessionTokenRoutes,
  ...publishableKeyRoutes,
  ...settingsRoutes,
  ...eventRoutes,
  ...webhookEndpointRoutes,
  openApiRoute(() => api),
]

/** What the OpenAPI document and the documentation describe. */
export const api: Api = { routes, pages: [tapRedirect] }
