/** A key that signs anything, as a dishonest gateway would. */

import { Buffer } from "node:buffer";

import { canonical, thumbprint } from "countersign-gateway/verify";

const url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");

export class SigningKey {
  private constructor(
    private readonly key: CryptoKey,
    readonly kid: string,
    /** The set with its public half, as the gateway publishes it. */
    readonly jwks: object,
  ) {}

  static async make(issuer?: string): Promise<SigningKey> {
    const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"])) as CryptoKeyPair;
    const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const kid = await thumbprint(raw);
    const key = { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", countersign_use: "chain", kid, x: url(raw), status: "signing" };
    return new SigningKey(pair.privateKey, kid, { ...(issuer && { issuer }), keys: [key] });
  }

  async sign(typ: string, claims: unknown): Promise<string> {
    const signed = `${url(canonical({ alg: "EdDSA", kid: this.kid, typ }))}.${url(canonical(claims))}`;
    return `${signed}.${url(new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, this.key, Buffer.from(signed))))}`;
  }
}
