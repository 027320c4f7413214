/** Tokens: compact JWS by EdDSA with exactly `alg`, `kid` and `typ`, one `typ` for each meaning. */

import { must, refused, CountersignError } from "../errors.js";
import { canonical } from "../json/canonical.js";
import { readJson } from "../json/read.js";
import { isObject, member, type Json } from "../json/value.js";
import { tokenKinds, type Claims, type TokenKind } from "./claims.js";
import { isStrictPoint, isStrictScalar } from "./curve.js";
import { unbase64url, utf8, type Bytes } from "./encoding.js";
import { exactly } from "./forms.js";
import { Keys, type Key } from "./keys.js";

const tokenCharsMax = 64 * 1024;
const malformed = "receipt_malformed";

/** A token in its parts, before its signature is checked. */
interface Parts {
  readonly kid: string;
  readonly signed: Bytes;
  readonly payload: Bytes;
  readonly signature: Bytes;
}

/** A genuine token's claims, and the key that signed it. */
export interface Genuine<K extends TokenKind> {
  readonly claims: Claims<K>;
  readonly key: Key;
}

/** Returns the claims of a genuine token of that kind. The caller checks times, audience and the rest. */
export async function genuine<K extends TokenKind>(kind: K, token: unknown, keys: Keys): Promise<Genuine<K>> {
  if (!(keys instanceof Keys)) throw refused("jwks", "Use the keys that Keys.read returns.");
  const parts = partsOf(token, tokenKinds[kind].typ);
  const claims = claimsOf(kind, parts.payload);
  const key = keys.named(parts.kid);
  if (key === undefined || key.status === "next" || key.status === "revoked") {
    throw refused("unknown_key", "no key of that name signs, or signed, tokens");
  }
  must(await isSigned(key.raw, parts.signature, parts.signed), "signature_invalid", "not signed by that key");
  return { claims, key };
}

/** Returns a token's claims without checking its signature, only for comparison with known values. */
export function unverifiedClaims<K extends TokenKind>(kind: K, token: unknown): Claims<K> {
  return claimsOf(kind, partsOf(token, tokenKinds[kind].typ).payload);
}

/** Returns whether a key signed these bytes, by the strict rules. */
export async function isSigned(key: Bytes, signature: Bytes, signed: Bytes): Promise<boolean> {
  const strict =
    isStrictPoint(key) && isStrictPoint(signature.subarray(0, 32)) && isStrictScalar(signature.subarray(32));
  if (!strict) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, imported, signature, signed);
  } catch (error) {
    // A runtime without Ed25519 cannot check anything. A key that is no point of the curve has signed nothing.
    if (error instanceof DOMException && error.name === "NotSupportedError") throw error;
    return false;
  }
}

/** Returns claims in their one spelling that do not contradict each other. */
function claimsOf<K extends TokenKind>(kind: K, payload: Bytes): Claims<K> {
  const found = read(payload);
  must(isEqual(canonical(found), payload), malformed, "its claims are not in canonical form");
  const claims = exactly<unknown>(tokenKinds[kind].reader, found, malformed) as Claims<K>;
  exactly((it) => tokenKinds[kind].whole(it as never), claims as unknown as Json, malformed);
  return claims;
}

/** Returns the parts of a token in its one spelling. */
function partsOf(token: unknown, typ: string): Parts {
  if (typeof token !== "string" || token.length > tokenCharsMax || !/^[\u0000-\u007f]*$/.test(token)) {
    throw refused(malformed, "not a token");
  }
  const raws = token.split(".").map(unbase64url);
  const [header, payload, signature] = raws;
  must(raws.length === 3, malformed, "a token has three parts");
  if (!header?.length || !payload?.length || signature?.length !== 64) {
    throw refused(malformed, "not base64url in its one spelling");
  }
  const found = read(header);
  const kid = isObject(found) ? member(found, "kid") : undefined;
  if (typeof kid !== "string" || !isEqual(header, canonical({ alg: "EdDSA", kid, typ }))) {
    throw refused(malformed, `its header is not exactly alg, kid and ${typ}`);
  }
  return { kid, signed: utf8(token.slice(0, token.lastIndexOf("."))), payload, signature };
}

function read(raw: Bytes): Json {
  try {
    return readJson(raw);
  } catch (bad) {
    const code = bad instanceof CountersignError ? bad.code : "syntax";
    throw refused(malformed, `no JSON of the protocol (${code})`);
  }
}

function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
