// The feed repeats everything on each connection; what the inspector has already seen is not passed on again.

const inspector = "https://stately.ai"
const told = new Map()
let target = null
let isReady = false

addEventListener("message", ({ source, origin, data }) => {
  if (source !== target || origin !== inspector || data?.type !== "@statelyai.connected") return
  isReady = true
  for (const message of told.values()) target.postMessage(message, inspector)
})

document.getElementById("open").addEventListener("click", () => {
  isReady = false
  target = open(`${inspector}/inspect`, "xstateinspector")
})

function connect() {
  const feed = new WebSocket(`ws://${location.host}/feed`)
  feed.onopen = sayHowMany
  feed.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (told.has(message.id)) return
    told.set(message.id, message)
    sayHowMany()
    if (isReady) target.postMessage(message, inspector)
  }
  feed.onclose = () => {
    say("The feed is not there; connecting again …")
    setTimeout(connect, 1000)
  }
}

function sayHowMany() {
  say(told.size === 0 ? "Connected; nothing has happened yet" : `Connected; ${told.size} messages so far`)
}

function say(text) {
  document.getElementById("status").textContent = text
}

connect()
