/** Writes canonical JSON (RFC 8785). */

import { refused } from "../errors.js";
import { levelsMax } from "./value.js";

/** Returns the canonical form of a value as a text, or throws if JSON has no such value. */
export function canonicalText(value: unknown): string {
  return written(value, 0);
}

/** Returns the canonical form of a value as UTF-8. */
export function canonical(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(canonicalText(value));
}

/** Returns whether two values have the same canonical form. */
export function isSame(left: unknown, right: unknown): boolean {
  return canonicalText(left) === canonicalText(right);
}

function written(value: unknown, depth: number): string {
  if (depth > levelsMax) throw refused("too_deep", "more levels than JSON can have");
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw refused("not_a_number", String(value));
    // ECMAScript's own spelling is that of the RFC, except for -0.
    return String(value === 0 ? 0 : value);
  }
  if (Array.isArray(value)) return `[${Array.from(value, (item) => written(item, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || !isPlain(value)) throw refused("syntax", `${kindOf(value)} is not JSON`);
  // The default order of texts is by UTF-16 unit, as the RFC requires.
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${quoted(key)}:${written((value as Record<string, unknown>)[key], depth + 1)}`).join(",")}}`;
}

function quoted(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw refused("encoding", "half of a surrogate pair");
  return JSON.stringify(text);
}

/** Returns whether a value is an object that JSON has. A date or a map is not. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm, such as a test runner's sandbox, has another `Object.prototype`.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: unknown): string {
  return typeof value === "object" ? (value?.constructor?.name ?? "object") : typeof value;
}
