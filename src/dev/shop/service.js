// The service from a browser: what is asked with which credential, and reading until something is final.

export function createService(baseUrl, note) {
  /** The answer's body; what never arrived looks like an error, too. */
  async function ask(method, path, token, body) {
    const headers = { Authorization: `Bearer ${token}` }
    if (body) Object.assign(headers, { "Content-Type": "application/json", "Idempotency-Key": newKey() })
    try {
      const response = await fetch(baseUrl + path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      })
      note(response.headers)
      return await response.json()
    } catch {
      return { error: { code: "browser.refused" } }
    }
  }

  /** Reads with growing pauses until the status is another one; a connection that comes back is not an end. */
  async function readUntilOther({ path, status }, token) {
    for (let pause = 500; ; pause = Math.min(5000, pause * 1.5)) {
      const resource = await ask("GET", path, token)
      const isAway = ["browser.refused", "rate_limit.exceeded"].includes(resource.error?.code)
      if (!isAway && resource.status !== status) return resource
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  return { ask, readUntilOther }
}

/** A page on an address without https has no `crypto.randomUUID`. */
function newKey() {
  return crypto.getRandomValues(new Uint32Array(4)).join("-")
}
