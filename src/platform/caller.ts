/** Who asks: the holder of a credential, as the credential look-up found it. */
export type Caller = {
  organization_id: string
  kind: CredentialKind
  /** The key's or session's own id: never the secret. */
  credential_id: string
  /** Present exactly when the credential is a session token. */
  session: { chip_id: string; unit_id: string; expires_at: Date } | null
}

export type CredentialKind = "api_key" | "session_token" | "publishable_key"
