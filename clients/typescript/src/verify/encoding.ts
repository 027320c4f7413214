/** base64url without padding, in its one spelling, and tagged hashes. */

import { canonical } from "../json/canonical.js";

/** Bytes that WebCrypto takes. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Decodes base64url without padding, or returns nothing for any other spelling. */
export function unbase64url(text: string): Bytes | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined;
  const raw = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (it) => it.charCodeAt(0));
  return base64url(raw) === text ? raw : undefined;
}

/** Encodes base64url without padding. */
export function base64url(raw: Uint8Array): string {
  return base64(raw).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Encodes base64. */
export function base64(raw: Uint8Array): string {
  let text = "";
  for (const byte of raw) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Encodes a text as UTF-8. */
export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Joins bytes. */
export function joined(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((length, it) => length + it.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Returns the SHA-256 of bytes. */
export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Computes H(tag, content) of the protocol. */
export async function tagged(tag: string, content: Uint8Array): Promise<string> {
  const hash = await sha256(joined(utf8(`${tag}\0`), content));
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Computes H(tag, JCS(value)). */
export async function taggedJson(tag: string, value: unknown): Promise<string> {
  return tagged(tag, canonical(value));
}
