import type { OrganizationRow } from "../../db/schema.ts"
import { html } from "../../platform/html.ts"
import { actsTable, type ShownAct } from "./acts-page.ts"
import { consolePage } from "./page.ts"

/** An organization, whether it is suspended, and who changed that. */
export function organizationPage(organization: OrganizationRow, acts: ShownAct[]): string {
  const { id, name, suspended_at, default_chain_id } = organization
  const act = suspended_at ? "resume" : "suspend"
  return consolePage(
    name,
    html`<main id="main">
<p class="trail"><a href="/console">Lifecycles</a> › organization</p>
<h1>${name} <span class="badge">${suspended_at ? "suspended" : "active"}</span></h1>
<p class="id">${id}</p>
<p class="waits">${suspended_at ? `Its credentials have been rejected since ${suspended_at.toISOString()}.` : "Its credentials are accepted."} Work that is on its way to the chain continues either way.</p>
<form method="post" action="/console/${act}" class="retry"><input type="hidden" name="id" value="${id}"><button>${suspended_at ? "Resume" : "Suspend"}</button></form>
<dl class="facts">
<div><dt>Default chain</dt><dd>${default_chain_id ?? "none"}</dd></div>
<div><dt>Newest</dt><dd><a href="/console/search?q=${id}">collections and units</a></dd></div>
</dl>
<h2>Operator actions</h2>
${actsTable(acts)}
</main>`,
  )
}
