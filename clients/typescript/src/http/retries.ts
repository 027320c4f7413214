/** Which requests are repeated, and after which waits. */

import { CountersignError } from "../errors.js";

/** How often a request is repeated. Each wait doubles, and up to half of it is random. */
export interface Retries {
  readonly attempts: number;
  readonly firstSecs: number;
  readonly mostSecs: number;
  /** A longer `Retry-After`, such as an hour, ends the call instead. */
  readonly retryAfterMostSecs: number;
}

export const defaultRetries: Retries = { attempts: 4, firstSecs: 0.2, mostSecs: 5, retryAfterMostSecs: 60 };

// A report must survive a restart of the gateway of half a minute.
const patientAttempts = 10;

/** Returns how often the report about a write or a call is sent, which happened already. */
export function reportAttempts(retries: Retries): number {
  return retries.attempts > 1 ? Math.max(retries.attempts, patientAttempts) : 1;
}

/** The outcome of an attempt that brought no accepted answer. */
export interface Failed {
  readonly error: CountersignError;
  /** The header `Retry-After`. */
  readonly retryAfter: string | null;
}

const onlyPeopleFix = ["chain_broken", "archive_missing", "archive_damaged"];

/** Returns whether the same request may be sent again without a second effect, and whether that can help. */
export function mayRepeat({ error }: Failed, isIdempotent: boolean): boolean {
  // The gateway answers 429 before any effect.
  if (error.status === 429) return true;
  if (!isIdempotent) return false;
  // Our own first request is still in progress, and its response follows soon.
  return error.code === "request_in_progress" || isPassing(error);
}

/** Returns whether an error may go away by itself, so that a wait continues. */
export function isPassing(error: CountersignError): boolean {
  if (error.code === "unreachable" || error.status === 429) return true;
  return error.status !== undefined && error.status >= 500 && !onlyPeopleFix.includes(error.code);
}

/** Returns how long to wait before the next attempt, or nothing if the gateway asks for longer than the limit. */
export function pauseSecs(retries: Retries, attempt: number, retryAfter: string | null): number | undefined {
  const most = Math.min(retries.mostSecs, retries.firstSecs * 2 ** Math.min(attempt - 1, 16));
  const pause = most * (0.5 + 0.5 * Math.random());
  const wanted = retryAfterSecs(retryAfter);
  if (wanted === undefined) return pause;
  // All clients receive the same second, so randomness is added.
  return wanted > retries.retryAfterMostSecs ? undefined : wanted + pause;
}

function retryAfterSecs(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^[0-9]{1,9}$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

/** Waits, or throws the reason of the signal. */
export async function pause(secs: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, secs * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
