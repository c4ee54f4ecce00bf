/** What a key may do, as the bits in contracts/Roles.sol. */
const roleBits = { issue: 1, claim: 2, replace: 4, deploy: 8 } as const
/** Set in addition while the service is paused: the key may then do nothing. */
export const pausedBit = 128

export type Role = keyof typeof roleBits

/** What a signer does: a single key does everything; several keys share the work. */
export type Purpose = "issuance" | "ownership" | "all"

/**
 * Returns the purpose of a key by its position in `SIGNER_KEYS`: the first half for ownership, the rest for issuance.
 */
export function purposeAt(index: number, count: number): Purpose {
  if (count === 1) return "all"
  return index < Math.floor(count / 2) ? "ownership" : "issuance"
}

const rolesByPurpose = {
  issuance: ["issue", "deploy"],
  ownership: ["claim", "replace"],
  all: ["issue", "claim", "replace", "deploy"],
} as const satisfies Record<Purpose, Role[]>

/** Returns exactly the roles that a signer needs. */
export function rolesFor(purpose: Purpose): number {
  return bitsOf(rolesByPurpose[purpose])
}

/** What the desk needs to act for signers. Its callers also need the roles for the calls that they make through it. */
export const deskRoles = bitsOf(["issue", "claim", "replace"])

export function bitsOf(roles: readonly Role[]): number {
  return roles.reduce((bits, role) => bits | roleBits[role], 0)
}

/** Returns the names of roles, in the order of their bits. */
export function rolesIn(bits: number): Role[] {
  return (Object.keys(roleBits) as Role[]).filter((role) => (bits & roleBits[role]) !== 0)
}

export function isRole(text: string): text is Role {
  return Object.hasOwn(roleBits, text)
}
