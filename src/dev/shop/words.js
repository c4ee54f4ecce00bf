// What the codes of the service mean to somebody with a jacket in their hands.

const tapAgain = "Please hold your phone to the jacket again."
export const words = {
  "chip.already_scanned": `This tap was already used. ${tapAgain}`,
  "chip.invalid_e_value": "This tap does not come from the jacket's tag. Be careful: it may be a copy.",
  "chip.not_found": "We do not know this tag. Be careful: it may be a copy.",
  "unit.not_found": "The tag is genuine, but belongs to no jacket.",
  "session_token.invalid_or_expired": `Your tap was too long ago. ${tapAgain}`,
  "claim.already_claimed": "This jacket already has an owner.",
  "claim.already_to_recipient": "This jacket is already yours.",
  "claim.in_progress": "This jacket is being claimed right now.",
  "transfer.already_to_recipient": "This address already owns the jacket.",
  "transfer.in_progress": "This jacket is being handed on right now.",
  "transfer.owner_unknown": "We cannot see yet who owns this jacket. Try again in a minute.",
  "unit.issuance_pending": "This jacket is still being prepared. Try again in a minute.",
  "unit.not_minted": "This jacket is still being prepared. Try again in a minute.",
  "rate_limit.exceeded": "That was a little too fast. Try again in a minute.",
  "browser.refused": "We cannot reach the service from this page. Try again later.",
}
