/** The published keys: each named by its thumbprint, each with its use and status. */

import { must, refused } from "../errors.js";
import { canonical } from "../json/canonical.js";
import { isList, isObject, member, type JsonObject } from "../json/value.js";
import { isOnCurve, isStrictPoint } from "./curve.js";
import { base64url, sha256, unbase64url, type Bytes } from "./encoding.js";

const statuses = ["next", "signing", "retired", "revoked"] as const;
const uses = ["chain", "log", "webhook"] as const;
const publicKey: JsonObject = { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" };

export type KeyStatus = (typeof statuses)[number];

/** A public Ed25519 key. */
export interface Key {
  readonly kid: string;
  readonly raw: Bytes;
  readonly status: KeyStatus;
}

/**
 * The keys of a set that sign tokens. Store the set with the data that you check, so that a later gateway cannot replace
 * it.
 */
export class Keys {
  readonly #keys: ReadonlyMap<string, Key>;
  /** The issuer, if the set names it. */
  readonly issuer: string | undefined;

  private constructor(keys: ReadonlyMap<string, Key>, issuer: string | undefined) {
    this.#keys = keys;
    this.issuer = issuer;
  }

  /**
   * Reads a published set, as `client.jwks()` returns it. Keys of other software are ignored. A key that is misnamed,
   * malformed, private, of small order or listed twice makes the whole set invalid.
   */
  static async read(jwks: unknown): Promise<Keys> {
    const listed = isObject(jwks) ? member(jwks, "keys") : undefined;
    if (!isObject(jwks) || !isList(listed)) throw refused("jwks", "not a key set");
    const found = new Map<string, Key>();
    const kids = new Set<string>();
    for (const it of listed) {
      if (!isObject(it)) throw refused("jwks", "a key is an object");
      must(!Object.hasOwn(it, "d"), "jwks", "a private key");
      const use = uses.find((one) => one === member(it, "countersign_use"));
      if (use === undefined || Object.entries(publicKey).some(([name, value]) => member(it, name) !== value)) continue;
      const key = await readKey(it);
      must(!kids.has(key.kid), "jwks", "duplicate key");
      kids.add(key.kid);
      if (use === "chain") found.set(key.kid, key);
    }
    return new Keys(found, issuerOf(jwks));
  }

  /** Returns the key of that name. */
  named(kid: string): Key | undefined {
    return this.#keys.get(kid);
  }
}

/** Returns the name of a key (RFC 7638). */
export async function thumbprint(raw: Uint8Array): Promise<string> {
  return base64url(await sha256(canonical({ crv: "Ed25519", kty: "OKP", x: base64url(raw) })));
}

function issuerOf(jwks: JsonObject): string | undefined {
  const issuer = member(jwks, "issuer");
  if (issuer === undefined) return undefined;
  const isIssuer = typeof issuer === "string" && /^[!-~]{1,256}$/.test(issuer);
  if (!isIssuer) throw refused("jwks", "an issuer has 1 to 256 visible ASCII characters");
  return issuer;
}

async function readKey(it: JsonObject): Promise<Key> {
  const x = member(it, "x");
  const status = statuses.find((one) => one === member(it, "status"));
  const raw = typeof x === "string" ? unbase64url(x) : undefined;
  if (raw === undefined || raw.length !== 32 || member(it, "kid") !== (await thumbprint(raw))) {
    throw refused("jwks", "a key that is not the one of its name");
  }
  must(isStrictPoint(raw) && isOnCurve(raw), "jwks", "a key that is no point of the curve, or one of small order");
  if (status === undefined) throw refused("jwks", "a key of no known status");
  return { kid: await thumbprint(raw), raw, status };
}
