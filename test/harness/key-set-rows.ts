import type * as schema from "../../src/db/key-set-schema.ts"
import { newId } from "../../src/platform/ids.ts"
import { type Scene, startOfTime } from "./scene.ts"

// Valid rows of key sets, orders of tags and receipt keys; tests change what they are about.

export function keySetRow(
  scene: Pick<Scene, "organization_id">,
  changes: Partial<typeof schema.keySets.$inferInsert> = {},
) {
  const id = newId()
  return {
    id,
    organization_id: scene.organization_id,
    name: id,
    scheme: "an10922" as const,
    created_at: startOfTime,
    ...changes,
  }
}

export function keySetVersionRow(keySetId: string, version = 1) {
  return { key_set_id: keySetId, version, sealed_master: "sealed", created_at: startOfTime }
}

export function manifestRow(scene: Pick<Scene, "organization_id">, keySetId: string) {
  return {
    id: newId(),
    organization_id: scene.organization_id,
    key_set_id: keySetId,
    key_version: 1,
    url_template: "https://tap.example/t/{chip_id}",
    mac: true,
    tamper: false,
    size: 1,
    created_at: startOfTime,
  }
}

/** The first key. */
export function receiptKeyRow(kid: string) {
  const public_jwk = { kty: "EC", crv: "P-256", x: "x", y: "y", kid, alg: "ES256", use: "sig" } as const
  return { number: 1, kid, public_jwk, sealed_key: "sealed", created_at: startOfTime }
}
