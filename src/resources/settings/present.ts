import type { SettingsResource } from "./model.ts"
import type { Settings } from "./service.ts"

export function presentSettings(settings: Settings): SettingsResource {
  return {
    default_redirect_url: settings.default_redirect_url,
    default_chain_id: settings.default_chain_id,
    allowed_chain_ids: settings.allowed_chain_ids,
  }
}
