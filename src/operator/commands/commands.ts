import { acts } from "./acts.ts"
import { apiKeyCommands } from "./api-keys.ts"
import { cancel } from "./cancel.ts"
import { chainRoleCommands } from "./chain-roles.ts"
import { chainStatus } from "./chain-status.ts"
import { encodingChecks } from "./check-encodings.ts"
import { chipCommands } from "./chips.ts"
import type { Command } from "./command.ts"
import { compareChain } from "./compare-chain.ts"
import { encodeChips, orderCommands } from "./encode-chips.ts"
import { explain } from "./explain.ts"
import { exportChips } from "./export-chips.ts"
import { identity } from "./identity.ts"
import { keySetCommands } from "./key-sets.ts"
import { exportMetadata } from "./metadata.ts"
import { organizationCommands } from "./organizations.ts"
import { productCommands } from "./products.ts"
import { publishableKeyCommands } from "./publishable-keys.ts"
import { quotas } from "./quotas.ts"
import { receiptKeyCommands } from "./receipt-keys.ts"
import { restored } from "./restored.ts"
import { retry } from "./retry.ts"
import { secretCommands } from "./secrets.ts"
import { stuck } from "./stuck.ts"
import { webhooks } from "./webhooks.ts"

/** Every command of the operator CLI, in the order of its usage. */
export const commands: readonly Command[] = [
  ...organizationCommands,
  ...apiKeyCommands,
  ...productCommands,
  quotas,
  identity,
  ...publishableKeyCommands,
  ...chipCommands,
  encodeChips,
  ...orderCommands,
  ...encodingChecks,
  exportChips,
  ...keySetCommands,
  exportMetadata,
  ...receiptKeyCommands,
  ...secretCommands,
  chainStatus,
  compareChain,
  ...chainRoleCommands,
  stuck,
  retry,
  restored,
  cancel,
  acts,
  explain,
  webhooks,
]
