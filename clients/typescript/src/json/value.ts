/** JSON values. */

/** A value of JSON. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** The most levels of any value. A deeper one is a mistake, a cycle or an attack, and the stack would overflow. */
export const levelsMax = 1000;

/** An object of JSON. */
export type JsonObject = { readonly [key: string]: Json };

/** Returns whether a value is an object of JSON, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns whether a value is a list. */
export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

/** Returns an object's own member. `value.toString` of an empty object is no member of it. */
export function member(value: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Sets a member of an object that is being built, also one that is called `__proto__`. */
export function setMember(object: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    (object as Record<string, unknown>)[key] = value;
  }
}

/** Returns the value at a JSON Pointer, or nothing. */
export function at(value: Json, pointer: string): Json | undefined {
  let found: Json | undefined = value;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (isObject(found)) found = member(found, name);
    else if (isList(found) && /^(0|[1-9][0-9]{0,9})$/.test(name)) found = found[Number(name)];
    else return undefined;
    if (found === undefined) return undefined;
  }
  return found;
}
