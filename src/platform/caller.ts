/** The holder of a credential, as authentication found it. */
export type Caller = {
  organization_id: string
  kind: CredentialKind
  /** The id of the key or session, never the secret. */
  credential_id: string
  /** Set exactly when the credential is a session token. */
  session: { chip_id: string; unit_id: string; expires_at: Date } | null
}

export type CredentialKind = "api_key" | "session_token" | "publishable_key"
