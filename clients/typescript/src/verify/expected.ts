/**
 * Expectations about a token. Each must be stated. An expectation that is left out by accident, because a variable was
 * undefined, would skip a check.
 */

import { invalidArgument, must } from "../errors.js";

/** Replaces an expectation: every value is accepted. */
export const ANY: unique symbol = Symbol("ANY");

/** An expectation, or `ANY`. */
export type Expected<T> = T | typeof ANY;

/** Refuses a value that differs from the expectation. */
export function expects(argument: string, expected: Expected<string>, found: string, code: string): void {
  must(allows(argument, expected, [found]), code, "another value was signed");
}

/** Returns whether a token's list has the expected value. */
export function allows(argument: string, expected: Expected<string>, found: readonly string[]): boolean {
  if (expected === ANY) return true;
  if (typeof expected !== "string") throw invalidArgument(argument, "state your expectation, or ANY");
  return found.includes(expected);
}

/** Returns the time in seconds at which a token must be valid, if one is required. */
export function seconds(at: Expected<Date>): number | undefined {
  if (at === ANY) return undefined;
  if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw invalidArgument("at", "state a Date, or ANY");
  return at.getTime() / 1000;
}
