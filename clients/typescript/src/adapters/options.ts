/** Options that all adapters have. */

import { invalidArgument } from "../errors.js";
import type { GuardOptions } from "../guard.js";

/** Options of an adapter. */
export interface AdapterOptions extends GuardOptions {
  /**
   * Your name of the conversation or run, which no other one has. A resumed run has the same name. The model's ids of its
   * calls are unique only within a run.
   */
  readonly run: string;
}

const keyCharsMax = 255;

/** Returns the keys of the calls of a run by the ids of the calls. No other run or id has the same key. */
export function keysOf({ run }: Pick<AdapterOptions, "run">): (id: string) => string {
  const prefix = encoded("run", run);
  return (id) => {
    const key = `${prefix}/${encoded("the id of the call", id)}`;
    if (key.length > keyCharsMax) throw invalidArgument("run", `with the id of the call, it makes a key of more than ${keyCharsMax} characters`);
    return key;
  };
}

function encoded(name: string, text: unknown): string {
  // Plain JavaScript can leave it out. The text "undefined" would be the same for all runs.
  if (typeof text !== "string" || text === "") throw invalidArgument(name, "must be a text that is not empty");
  try {
    return encodeURIComponent(text);
  } catch {
    throw invalidArgument(name, "is no well-formed Unicode");
  }
}
