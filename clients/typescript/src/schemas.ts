/** The types of the HTTP API, from its OpenAPI description, and readers of the members that the client relies on. */

import { invalidArgument, unexpectedAnswer } from "./errors.js";
import type { Json } from "./json/value.js";
import type { components } from "./openapi.js";
import { Malformed, type Reader } from "./verify/forms.js";

/** A schema of the HTTP API by its name in the OpenAPI description. */
export type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

/**
 * Returns the reader of a response. The form has the members on which the client decides anything. All others are as the
 * gateway sent them.
 */
export function answer<T>(form: Reader<unknown>): (body: Json) => T {
  return (body) => {
    try {
      return form(body, "") as T;
    } catch (bad) {
      if (bad instanceof Malformed) throw unexpectedAnswer(`the response has another form: ${bad.message}`);
      throw bad;
    }
  };
}

/** Returns the members that are not undefined. */
export function given(members: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Returns the header of a key, or refuses one that the gateway cannot read. */
export function keyHeader(idempotencyKey: string): Record<string, string> {
  const isKey = typeof idempotencyKey === "string" && /^[!-~]{1,255}$/.test(idempotencyKey);
  if (!isKey) throw invalidArgument("idempotencyKey", "needs 1 to 255 visible ASCII characters, without spaces");
  return { "idempotency-key": idempotencyKey };
}

/**
 * Returns a path with its parts encoded, or refuses a part that would make it the path of something else. Each part is an
 * object with one member, whose name is that of the field.
 */
export function path(texts: TemplateStringsArray, ...parts: readonly Readonly<Record<string, string>>[]): string {
  return texts.reduce((found, text, index) => found + segment(parts[index - 1] ?? {}) + text);
}

function segment(field: Readonly<Record<string, unknown>>): string {
  const [[name, part] = ["id", undefined]] = Object.entries(field);
  // A URL resolves dots.
  const isSegment = typeof part === "string" && !["", ".", ".."].includes(part) && !/\p{Surrogate}/u.test(part);
  if (!isSegment) throw invalidArgument(name, "is not an id or a name of the gateway");
  return encodeURIComponent(part);
}
