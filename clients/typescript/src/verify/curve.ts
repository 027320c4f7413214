/** Strict Ed25519 checks that a library may omit (RFC 8032 and nothing more). */

import { unbase64url } from "./encoding.js";

const prime = 2n ** 255n - 19n;
// The constant d of the curve: -121665/121666.
const curve = 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3n;
const order = 2n ** 252n + 27742317777372353535851937790883648493n;
// The y coordinate of a point of order 8. Other points of small order have its negative, 1, -1 and 0.
const eighth = littleEndian(unbase64url("JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_AU") ?? new Uint8Array());
const small = new Set([0n, 1n, prime - 1n, eighth, prime - eighth]);

/** Returns whether a point is canonical, and not one of the eight of small order, for which anyone can sign. */
export function isStrictPoint(raw: Uint8Array): boolean {
  const y = littleEndian(raw) & ((1n << 255n) - 1n);
  return raw.length === 32 && y < prime && !small.has(y);
}

/** Returns whether a point is on the curve, apart from the other rules of a strict point. */
export function isOnCurve(raw: Uint8Array): boolean {
  const y = littleEndian(raw) & ((1n << 255n) - 1n);
  const square = (y * y) % prime;
  // x² is u/v, which is a square exactly if u·v is one, by Euler's criterion.
  const [u, v] = [square - 1n, curve * square + 1n];
  return power((((u * v) % prime) + prime) % prime, (prime - 1n) / 2n) <= 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let [result, factor] = [1n, base];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * factor) % prime;
    factor = (factor * factor) % prime;
  }
  return result;
}

/** Returns whether a scalar is below the group's order, so that a signature has one spelling. */
export function isStrictScalar(raw: Uint8Array): boolean {
  return raw.length === 32 && littleEndian(raw) < order;
}

function littleEndian(raw: Uint8Array): bigint {
  return raw.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}
