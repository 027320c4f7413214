/** Ends work after a time, or when the caller's signal says so. */

// A timer that is set for longer fires at once.
const timerMsMax = 2 ** 31 - 1;

/**
 * Runs work with a signal. Throws when the time is over or the caller's signal ends it, even if the work ignores the signal.
 * Node 20 can collect the signal of a pending `fetch` as garbage. Such a request never ends by itself.
 */
export async function within<T>(secs: number, caller: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  caller?.throwIfAborted();
  const own = new AbortController();
  let stop!: (reason: unknown) => void;
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      reject(reason as Error);
      own.abort(reason);
    };
  });
  const onCaller = () => stop(caller?.reason);
  const timer = setTimeout(() => stop(new DOMException("The time is over.", "TimeoutError")), Math.min(secs * 1000, timerMsMax));
  caller?.addEventListener("abort", onCaller, { once: true });
  try {
    return await Promise.race([work(own.signal), stopped]);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener("abort", onCaller);
  }
}
