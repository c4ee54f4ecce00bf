// Keeps an open page true: counts each second, an actor's story every two. Without it everything else still works.

const connection = document.querySelector("[data-connection]")
const overview = document.querySelector("[data-counts]")
const story = document.querySelector("[data-live]")
let shown = story?.innerHTML

if (overview) every(1_000, showCounts)
if (story) {
  showCurrentState()
  every(2_000, showStory)
}

/** @param {number} milliseconds @param {() => Promise<void>} work */
function every(milliseconds, work) {
  const run = async () => {
    if (!document.hidden)
      await work().then(
        () => say(""),
        () => say("The service does not answer"),
      )
    setTimeout(run, milliseconds)
  }
  setTimeout(run, milliseconds)
}

function say(text) {
  if (connection.textContent !== text) connection.textContent = text
}

async function ask(address) {
  const response = await fetch(address, { signal: AbortSignal.timeout(10_000) })
  if (!response.ok || response.redirected) throw new Error(String(response.status))
  return response
}

async function showCounts() {
  const counts = await (await ask(overview.dataset.counts)).json()
  for (const card of document.querySelectorAll("[data-machine-card]")) {
    const states = Object.entries(counts[card.dataset.machineCard] ?? {})
    const within = (path) => (state) => path === "" || state === path || state.startsWith(`${path}.`)
    const sum = (path) =>
      String(states.filter(([state]) => within(path)(state)).reduce((all, [, number]) => all + number, 0))
    set(card.querySelector("[data-total]"), sum(""))
    for (const element of card.querySelectorAll("[data-count-of]")) {
      const number = sum(element.dataset.countOf)
      set(element, number)
      element.classList.toggle("zero", number === "0")
    }
  }
}

function set(element, text) {
  if (element.textContent === text) return
  element.textContent = text
  element.classList.remove("changed")
  requestAnimationFrame(() => element.classList.add("changed"))
}

async function showStory() {
  const text = await (await ask(location.pathname)).text()
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]")
  if (!fresh || fresh.innerHTML === shown) return
  const open = [...story.querySelectorAll("details[open]")].map(({ id }) => id)
  const focused = story.contains(document.activeElement) ? nameOf(document.activeElement) : null
  shown = fresh.innerHTML
  story.replaceChildren(...fresh.childNodes)
  for (const id of open) document.getElementById(id)?.setAttribute("open", "")
  const again = [...story.querySelectorAll("a, button, summary, pre, [tabindex]")]
  again.find((element) => nameOf(element) === focused)?.focus({ preventScroll: true })
  showCurrentState()
}

/** What tells an element from the others, before and after the story is told anew. */
function nameOf(element) {
  return [
    element.tagName,
    element.closest("details")?.id,
    element.getAttribute("href"),
    element.ariaLabel,
  ].join()
}

/** Moves the chart sideways, never the page. */
function showCurrentState() {
  const state = story.querySelector(".state.current:not(.compound)")
  const frame = state?.closest(".scroll")
  if (!frame) return
  const { left, width } = state.getBoundingClientRect()
  frame.scrollLeft += left + width / 2 - frame.getBoundingClientRect().left - frame.clientWidth / 2
}
