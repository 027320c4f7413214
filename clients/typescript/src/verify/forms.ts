/** Readers that check the form of a value. A missing, additional or malformed member is refused. */

import { refused } from "../errors.js";
import { isList, isObject, type Json } from "../json/value.js";

/** Reads a value at a path, or throws `Malformed`. */
export type Reader<T> = (value: Json, path: string) => T;

/** What a reader reads. */
export type Read<R> = R extends Reader<infer T> ? T : never;

/** A malformed value, with its path. */
export class Malformed extends Error {}

/** Reads a value exactly, or throws with that code. */
export function exactly<T>(reader: Reader<T>, value: Json, code: string): T {
  try {
    return reader(value, "");
  } catch (bad) {
    if (bad instanceof Malformed) throw refused(code, bad.message);
    throw bad;
  }
}

function that<T>(holds: (value: Json) => boolean): Reader<T> {
  return (value, path) => {
    if (!holds(value)) throw new Malformed(`${path || "the value"} has another form`);
    return value as T;
  };
}

function shaped(shape: RegExp): Reader<string> {
  return that((value) => typeof value === "string" && shape.test(value));
}

export const text = shaped(/^[^]+$/);
export const anyText: Reader<string> = that((value) => typeof value === "string");
export const name = shaped(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/);
export const digest = shaped(/^sha256:[0-9a-f]{64}$/);
// 16 bytes in base64url: the last character has two significant bits.
export const jti = shaped(/^[A-Za-z0-9_-]{21}[AQgw]$/);
export const moment: Reader<string> = that((value) => typeof value === "string" && isMoment(value));
export const count: Reader<number> = that((value) => isCount(value, Number.MAX_SAFE_INTEGER));
/** Reads the number of a stage or an attempt, which has 32 bits. */
export const shortCount: Reader<number> = that((value) => isCount(value, 0xffff_ffff));
/** Reads a JSON Pointer. The empty one is the root. */
export const pointer: Reader<string> = that((value) => typeof value === "string" && isPointer(value));
export const flag: Reader<boolean> = that((value) => typeof value === "boolean");
export const isTrue: Reader<true> = that((value) => value === true);
export const anything: Reader<Json> = (value) => value;
export const present: Reader<Json> = that((value) => value !== null);
export const anyObject: Reader<{ readonly [key: string]: Json }> = that(isObject);

function isCount(value: Json, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
}

/** Returns whether a text is the one spelling of a time in UTC with milliseconds, on a day that exists. */
function isMoment(text: string): boolean {
  const date = new Date(text);
  // A longer text has a year with a sign.
  return text.length === 24 && !Number.isNaN(date.getTime()) && date.toISOString() === text;
}

function isPointer(text: string): boolean {
  return (text === "" || text.startsWith("/")) && !/~(?![01])/.test(text);
}

/** Reads one of these texts. */
export function oneOf<const T extends string>(...texts: readonly T[]): Reader<T> {
  return that((value) => (texts as readonly Json[]).includes(value));
}

/** Reads null or a value. */
export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value, path) => (value === null ? null : reader(value, path));
}

/** Reads a list of such values. */
export function listOf<T>(reader: Reader<T>): Reader<readonly T[]> {
  return (value, path) => {
    if (!isList(value)) throw new Malformed(`${path || "the value"} is not a list`);
    return value.map((item, index) => reader(item, `${path}/${index}`));
  };
}

type Readers = Readonly<Record<string, Reader<unknown>>>;
type Members<R extends Readers, O extends Readers> = { readonly [K in keyof R]: Read<R[K]> } & {
  readonly [K in keyof O]?: Read<O[K]>;
};

/** Reads an object with exactly these members. The optional ones may be left out. `check` throws `Malformed`. */
export function exactObject<R extends Readers, O extends Readers = Readonly<Record<never, never>>>(
  required: R,
  optional?: O,
  check?: (found: Members<R, O>) => void,
): Reader<Members<R, O>> {
  const all: Readers = { ...required, ...optional };
  return (value, path) => {
    const found = membersOf(value, path, required, all);
    const extra = Object.keys(value as object).find((key) => !Object.hasOwn(all, key));
    if (extra !== undefined) throw new Malformed(`${path}/${extra} is no member`);
    check?.(found as Members<R, O>);
    return found as Members<R, O>;
  };
}

/** Reads an object with at least these members. A later gateway may add others, and they stay. */
export function openObject<R extends Readers, O extends Readers = Readonly<Record<never, never>>>(
  required: R,
  optional?: O,
): Reader<Members<R, O>> {
  const all: Readers = { ...required, ...optional };
  return (value, path) => ({ ...(value as object), ...membersOf(value, path, required, all) }) as Members<R, O>;
}

function membersOf(value: Json, path: string, required: Readers, all: Readers): Record<string, unknown> {
  if (!isObject(value)) throw new Malformed(`${path || "the value"} is not an object`);
  const missing = Object.keys(required).find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) throw new Malformed(`${path}/${missing} is missing`);
  const present = Object.entries(all).filter(([key]) => Object.hasOwn(value, key));
  return Object.fromEntries(present.map(([key, read]) => [key, read(value[key] as Json, `${path}/${key}`)]));
}

/** Reads one of several objects by its member `kind`. */
export function byKind<T extends Readers>(kinds: T): Reader<Read<T[keyof T]>> {
  return (value, path) => {
    const kind = isObject(value) ? value["kind"] : undefined;
    if (typeof kind !== "string" || !Object.hasOwn(kinds, kind)) throw new Malformed(`${path} is of no known kind`);
    return kinds[kind]?.(value, path) as Read<T[keyof T]>;
  };
}

/** Throws `Malformed` unless the condition holds. */
export function fits(holds: boolean, detail: string): void {
  if (!holds) throw new Malformed(detail);
}
