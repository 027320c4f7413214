/** Waits by long polling, over disconnects, restarts and 5xx, until a deadline. */

import { CountersignError, invalidArgument } from "../errors.js";
import { isPassing, pause, pauseSecs } from "./retries.js";
import type { Call, CallOptions, Transport } from "./transport.js";

// Proxies close connections that are silent for a minute.
const pollSecs = 25;
// A gateway that answers "pending" at once, for example during a shutdown, is not polled in a tight loop.
const soonSecs = 1;

/** The limit of a wait. */
export interface WaitOptions extends CallOptions {
  readonly withinSecs: number;
}

/** Repeats a call until it returns a value. `callFor` gets the seconds that the gateway may wait. */
export async function waitUntil<T>(
  transport: Transport,
  what: string,
  options: WaitOptions,
  callFor: (waitSecs: number) => Call<T | undefined>,
): Promise<T> {
  const { withinSecs, signal } = options;
  if (!(withinSecs >= 0)) throw invalidArgument("withinSecs", "a number of seconds");
  const ends = Date.now() + withinSecs * 1000;
  const leftSecs = () => Math.max(0, (ends - Date.now()) / 1000);
  let trouble: CountersignError | undefined;
  for (let failures = 0; ; ) {
    const begun = Date.now();
    if (begun >= ends) throw trouble ?? stillHeld(what, withinSecs);
    const outcome = await transport.once(callFor(Math.max(1, Math.ceil(Math.min(leftSecs(), pollSecs)))), options);
    if (!("error" in outcome)) {
      if (outcome.value !== undefined) return outcome.value;
      [failures, trouble] = [0, undefined];
      const isSoon = Date.now() - begun < soonSecs * 1000;
      if (isSoon) await pause(Math.min(leftSecs(), soonSecs * (0.5 + 0.5 * Math.random())), signal);
      continue;
    }
    if (!isPassing(outcome.error)) throw outcome.error;
    failures += 1;
    trouble = outcome.error;
    const { retries } = transport;
    const wait = pauseSecs(retries, failures, outcome.retryAfter) ?? retries.retryAfterMostSecs;
    await pause(Math.min(leftSecs(), wait), signal);
  }
}

/** Returns the error of a wait that ended before the decision. */
function stillHeld(what: string, withinSecs: number): CountersignError {
  const detail = `${what} is still pending after ${withinSecs} s. Wait again, or cancel it.`;
  return new CountersignError("still_held", { source: "client", detail });
}
