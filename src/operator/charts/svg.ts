import { html, type Markup, trusted } from "../../platform/html.ts"
import { anywhereText, lineHeight } from "./drawing-sizes.ts"
import type { Box, Layout, PlacedEdge, PlacedState } from "./layout.ts"

/**
 * A chart as a self-contained SVG document. States have `data-state` and a text with `data-count-of` for a number;
 * transitions have `data-source`, `data-target` and `data-event`.
 */
export function drawChart(layout: Layout, definitionHash: string): string {
  const { name, width, height } = layout
  const inner = [...layout.states].sort((one, other) => one.path.length - other.path.length)
  return String(html`<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="group" aria-label="${name}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" data-machine="${name}" data-definition="${definitionHash}">
<style>${trusted(standaloneStyle)}</style>
<defs><marker id="${name}-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="arrow" d="M0 0.5 8 4 0 7.5z"/></marker></defs>
${lines(inner.flatMap(drawState))}
${lines(layout.edges.map((edge) => drawEdge(name, edge)))}
${lines(layout.dots.map((dot) => html`<circle class="dot" cx="${round(dot.x + dot.width / 2)}" cy="${round(dot.y + dot.height / 2)}" r="${dot.width / 2}"/>`))}
</svg>
`)
}

/** The drawing without its own style, for a page that has its own. */
export function withoutStyle(svg: string): string {
  return svg.replace(/<style>[^<]*<\/style>\n/, "")
}

const standaloneStyle = `
.chart{color-scheme:light dark;--ink:#1d2430;--soft:#5b6678;--line:#7b8798;--paper:#fff;--box:#f4f6f9;--inner:#fff;--accent:#2457d6}
@media (prefers-color-scheme:dark){.chart{--ink:#e8ecf3;--soft:#a3aec0;--line:#8592a6;--paper:#12161d;--box:#1a202a;--inner:#222a36;--accent:#8db0ff}}
.chart{background:var(--paper);font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.state rect{fill:var(--inner);stroke:var(--line)}
.compound rect{fill:var(--box)}
.state text{fill:var(--ink)}
.state .effect,.label{fill:var(--soft);font-size:11px}
.count{font-weight:700;text-anchor:end}
.anywhere rect{stroke-dasharray:4 3}
.edge{fill:none;stroke:var(--line)}
.arrow,.dot{fill:var(--line)}
`

/** Joined by line ends, with none after the last. */
function lines(parts: Markup[]): Markup {
  return trusted(parts.join("\n"))
}

function drawState({ path, name, kind, effects, box, anywhere }: PlacedState): Markup[] {
  const drawnEffects = (left: number, top: number) =>
    effects.map(
      (effect, index) =>
        html`<text class="effect" x="${round(left + 12)}" y="${round(top + 24 + lineHeight * (index + 1))}">⚙ ${effect}</text>`,
    )
  const around = anywhere
    ? [
        html`<g class="state anywhere"${!box && html` data-state=""`}>`,
        rect(anywhere, 14),
        html`<text x="${round(anywhere.x + 12)}" y="${round(anywhere.y + 24)}">${anywhereText}</text>`,
        ...drawnEffects(anywhere.x, anywhere.y),
        html`</g>`,
      ]
    : []
  if (!box) return around
  return [
    html`<g class="state ${kind}" data-state="${path}">`,
    rect(box, kind === "compound" ? 10 : 7),
    ...(kind === "final" ? [rect(inset(box), 5)] : []),
    html`<text class="name" x="${round(box.x + 12)}" y="${round(box.y + 24)}">${name}</text>`,
    html`<text class="count" x="${round(box.x + box.width - 12)}" y="${round(box.y + 24)}" data-count-of="${path}"></text>`,
    ...(anywhere ? [] : drawnEffects(box.x, box.y)),
    html`</g>`,
    ...around,
  ]
}

function rect({ x, y, width, height }: Box, radius: number): Markup {
  return html`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}"/>`
}

function inset({ x, y, width, height }: Box): Box {
  return { x: x + 3, y: y + 3, width: width - 6, height: height - 6 }
}

function drawEdge(name: string, { transition, points, label }: PlacedEdge): Markup {
  const path = points.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${round(x)} ${round(y)}`).join(" ")
  const line = html`<path class="edge" d="${path}" marker-end="url(#${name}-arrow)"/>`
  if (!transition) return line
  const text = label
    ? html`<text class="label" x="${round(label.box.x + 4)}" y="${round(label.box.y + 12)}">${label.text}</text>`
    : null
  const { source, target, event } = transition
  return html`<g class="transition" data-source="${source}" data-target="${target}" data-event="${event}">${line}${text}</g>`
}

function round(length: number): number {
  return Math.round(length * 10) / 10
}
