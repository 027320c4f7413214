/** Options that all adapters have. */

import type { GuardOptions } from "../guard.js";

/** Options of an adapter. */
export interface AdapterOptions extends GuardOptions {
  /**
   * Your name of the conversation or run, which no other one has. A resumed run has the same name. The model's ids of its
   * calls are unique only within a run.
   */
  readonly run: string;
}

/** Returns the key of a call of a run. No other run or id has the same one. */
export function keyOf(options: AdapterOptions, id: string): string {
  return `${encodeURIComponent(options.run)}/${encodeURIComponent(id)}`;
}
