// Copying, tabs that stay, search while typing, and the reader's own key. Every page works without it.

fillInKey()
for (const block of document.querySelectorAll(".blocks > *")) addCopyButton(block)
keepTabs()
searchWhileTyping()
foldMenuOnPhones()
const [nav, here] = ["nav", ".menu [aria-current]"].map((each) => document.querySelector(each))
if (here) nav.scrollTop = here.offsetTop - nav.clientHeight / 2

function foldMenuOnPhones() {
  const narrow = matchMedia("(max-width: 50rem)")
  const fold = () => {
    document.querySelector(".menu").open = !narrow.matches
  }
  fold()
  narrow.addEventListener("change", fold)
}

/** A development service prints an address with its key behind the #, which no browser sends to a server. */
function fillInKey() {
  if (!["localhost", "127.0.0.1"].includes(location.hostname)) return
  const handed = /^#key=(end_sk_\w+)$/.exec(location.hash)?.[1]
  if (handed) {
    unlessBlocked(() => sessionStorage.setItem("key", handed))
    history.replaceState(null, "", location.pathname)
  }
  const key = handed ?? unlessBlocked(() => sessionStorage.getItem("key"))
  if (!key) return
  for (const code of document.querySelectorAll("pre code")) {
    // The guides name the key once and keep to the name; a request by itself has nobody to name it.
    const placeholder = code.textContent.startsWith("curl") ? "$KEY" : "end_sk_…"
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(placeholder, key)
  }
}

function addCopyButton(block) {
  const button = document.createElement("button")
  button.type = "button"
  button.className = "copy"
  button.textContent = "Copy"
  button.addEventListener("click", async () => {
    const shown = [...block.querySelectorAll("pre")].find((pre) => pre.offsetParent !== null)
    await navigator.clipboard.writeText(shown.textContent)
    button.textContent = "Copied"
    setTimeout(() => {
      button.textContent = "Copy"
    }, 1500)
  })
  block.append(button)
}

function keepTabs() {
  choose(unlessBlocked(() => localStorage.getItem("language")))
  document.addEventListener("change", ({ target }) => {
    if (!target.closest(".tabs")) return
    unlessBlocked(() => localStorage.setItem("language", target.value))
    choose(target.value)
  })
}

/** A browser that blocks cookies throws wherever storage is named. */
function unlessBlocked(stored) {
  try {
    return stored()
  } catch {
    return null
  }
}

function choose(language) {
  for (const input of document.querySelectorAll(".tabs input"))
    if (input.value === language) input.checked = true
}

function searchWhileTyping() {
  const input = document.getElementById("q")
  const found = document.getElementById("found")
  let asked = ""
  input.addEventListener("input", async () => {
    asked = input.value
    if (asked.trim() === "") return hide()
    const response = await fetch(new URL(`search?${new URLSearchParams({ q: asked })}`, import.meta.url))
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    // Whoever has begun to choose keeps the list that they see.
    if (asked !== input.value || found.contains(document.activeElement)) return
    const results = page.getElementById("results")
    found.replaceChildren(results.children.length > 0 ? results : "Nothing found")
    found.hidden = false
  })
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)
    if (event.key === "Escape") hide()
    if (event.key === "/" && !isTyping) {
      event.preventDefault()
      input.focus()
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event)
  })
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("form")) hide()
  })

  function hide() {
    found.hidden = true
  }

  function move(event) {
    const stops = [input, ...found.querySelectorAll("a")]
    const place = stops.indexOf(document.activeElement)
    if (found.hidden || place < 0) return
    event.preventDefault()
    stops[(place + (event.key === "ArrowDown" ? 1 : stops.length - 1)) % stops.length].focus()
  }
}
