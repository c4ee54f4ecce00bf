import type { KeyService } from "./key-service-account.ts"

/** How long one question to the key service may take; the client asks three times. */
const timeouts = { connectionTimeout: 2_000, requestTimeout: 5_000 }

/**
 * A key of AWS KMS by its ARN, alias or id, of the spec ECC_SECG_P256K1 for signing. The region is that of the ARN,
 * else AWS_REGION; who asks is found as by every tool of AWS. Loads its client.
 */
export async function awsKeyService(keyId: string): Promise<KeyService> {
  const { GetPublicKeyCommand, KMSClient, SignCommand } = await import("@aws-sdk/client-kms")
  const [, , , region] = keyId.startsWith("arn:") ? keyId.split(":") : []
  const client = new KMSClient({ ...(region ? { region } : {}), requestHandler: timeouts })
  return {
    async publicKey() {
      const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId: keyId }))
      return requireBytes(PublicKey)
    },
    async sign(digest) {
      const command = new SignCommand({
        KeyId: keyId,
        Message: digest,
        MessageType: "DIGEST",
        SigningAlgorithm: "ECDSA_SHA_256",
      })
      return requireBytes((await client.send(command)).Signature)
    },
  }
}

function requireBytes(bytes: Uint8Array | undefined): Uint8Array {
  if (!bytes) throw new Error("the key service answered without what was asked for")
  return bytes
}
