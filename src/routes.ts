import { chipReplacementRoutes } from "./chip-replacements/routes.ts"
import { chipRoutes } from "./chips/routes.ts"
import { claimRoutes } from "./claims/routes.ts"
import { collectionRoutes } from "./collections/routes.ts"
import type { Route } from "./http/route.ts"
import { openApiRoute } from "./openapi/route.ts"
import { publishableKeyRoutes } from "./publishable-keys/routes.ts"
import { sessionTokenRoutes } from "./session-tokens/routes.ts"
import { settingsRoutes } from "./settings/routes.ts"
import { tapRoutes } from "./taps/routes.ts"
import { transferRoutes } from "./transfers/routes.ts"
import { unitRoutes } from "./units/routes.ts"
import { welcomeRoutes } from "./welcome/routes.ts"

/** Every operation of the API. */
export const routes: readonly Route[] = [
  ...welcomeRoutes,
  ...tapRoutes,
  ...chipRoutes,
  ...unitRoutes,
  ...collectionRoutes,
  ...claimRoutes,
  ...transferRoutes,
  ...chipReplacementRoutes,
  ...sessionTokenRoutes,
  ...publishableKeyRoutes,
  ...settingsRoutes,
  openApiRoute(() => routes),
]
