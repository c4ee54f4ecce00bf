import type { KeyService } from "./key-service-account.ts"

/** The timeouts of one request, in milliseconds; the client makes three attempts. */
const timeouts = { connectionTimeout: 2_000, requestTimeout: 5_000, throwOnRequestTimeout: true }

/**
 * Opens a key of AWS KMS by its ARN, alias or id; a signing key of the spec ECC_SECG_P256K1. The region is that of the
 * ARN, otherwise AWS_REGION; credentials are found as by every AWS tool. Loads the AWS client.
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
  if (!bytes) throw new Error("the response of the key service lacks the requested value")
  return bytes
}
