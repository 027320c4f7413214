/** Sends requests with `fetch`: bounded in time and size, and repeated only if a repeat has no second effect. */

import { CountersignError, invalidArgument, unexpectedAnswer } from "../errors.js";
import { canonical } from "../json/canonical.js";
import { readJson } from "../json/read.js";
import type { Json } from "../json/value.js";
import { address } from "./address.js";
import { within } from "./deadline.js";
import { problem } from "./problem.js";
import { defaultRetries, mayRepeat, pause, pauseSecs, type Failed, type Retries } from "./retries.js";

/** How a client reaches its gateway. */
export interface ClientOptions {
  /** Scheme, host and port: `https://gate.example.com`. */
  readonly url: string;
  readonly token: string;
  /** The time for a response, 30 seconds by default. A wait for a decision comes on top. */
  readonly timeoutSecs?: number;
  readonly retries?: Partial<Retries>;
  /** Sends the token over plain HTTP to other hosts than localhost. */
  readonly allowPlainHttp?: boolean;
  /** The largest response, 64 MiB by default. */
  readonly answerBytesMax?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call. Its `reason` is thrown. The request may have been carried out. */
  readonly signal?: AbortSignal;
}

/** A request, and the meaning of each status that is no refusal. */
export interface Call<T> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly accepts: Readonly<Record<number, (body: Json, headers: Headers) => T | Promise<T>>>;
  /** Whether the protocol makes a repeat safe. */
  readonly isIdempotent: boolean;
  /** The time that the gateway may wait before it answers. */
  readonly waitSecs?: number;
}

// A state has 64 levels. A page of a chain with openings has three levels for each of them.
const answerDepthMax = 256;
const defaultAnswerBytesMax = 64 * 1024 * 1024;

/** The connection of a client. Its token is private: nothing prints it. */
export class Transport {
  readonly retries: Retries;
  readonly answerBytesMax: number;
  readonly #origin: string;
  readonly #token: string;
  readonly #timeoutSecs: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#origin = address(options.url, options.allowPlainHttp ?? false);
    this.#token = options.token;
    // A variable that is not set is undefined, whatever its type says.
    if (!this.#token) throw invalidArgument("token", "is empty: is the variable set?");
    if (!/^[!-~]+$/.test(this.#token)) throw invalidArgument("token", "has spaces, line breaks or other characters that no token has");
    this.#timeoutSecs = options.timeoutSecs ?? 30;
    if (!(this.#timeoutSecs > 0)) throw invalidArgument("timeoutSecs", "must be positive");
    this.retries = { ...defaultRetries, ...options.retries };
    if (!(this.retries.attempts >= 1)) throw invalidArgument("retries", "at least one attempt");
    this.answerBytesMax = options.answerBytesMax ?? defaultAnswerBytesMax;
    // Some runtimes refuse `fetch` with another `this` than the global object.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Sends a request until there is an answer, as often as allowed. */
  async send<T>(call: Call<T>, options: CallOptions = {}, attempts = this.retries.attempts): Promise<T> {
    let wasSent = false;
    for (let attempt = 1; ; attempt += 1) {
      const outcome: { readonly value: T } | Failed = await this.once(call, options, wasSent);
      if (!("error" in outcome)) return outcome.value;
      const wait = pauseSecs(this.retries, attempt, outcome.retryAfter);
      const isLast = attempt >= attempts || wait === undefined;
      if (isLast || !mayRepeat(outcome, call.isIdempotent)) throw outcome.error;
      // The gateway answers 429 before any effect.
      wasSent ||= outcome.error.status !== 429 && !wasRefused(outcome.error.cause);
      await pause(wait, options.signal);
    }
  }

  /**
   * Makes one attempt. An answer that is no refusal and has another form throws. `wasSent` is true if an earlier attempt may
   * have been carried out.
   */
  async once<T>(call: Call<T>, options: CallOptions = {}, wasSent = false): Promise<{ readonly value: T } | Failed> {
    const where = `${call.method} ${call.path}`;
    let response: Response;
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      [response, bytes] = await within(this.#timeoutSecs + (call.waitSecs ?? 0), options.signal, async (signal) => {
        const opened = await this.open(call, signal);
        return [opened, await this.bytesOf(opened)] as const;
      });
    } catch (error) {
      return { error: lost(`${where}: ${this.#origin}`, error, wasSent, options.signal), retryAfter: null };
    }
    const accept = call.accepts[response.status];
    if (accept !== undefined) return { value: await accept(parsedAnswer(bytes, this.answerBytesMax), response.headers) };
    if (response.status < 400) throw unexpectedAnswer(`${where}: status ${response.status}`);
    return { error: problem(response.status, parsedOrNothing(bytes)), retryAfter: response.headers.get("retry-after") };
  }

  /** Sends a request, and returns its response before its body. The caller limits its time. */
  async open(call: Omit<Call<unknown>, "accepts" | "isIdempotent" | "waitSecs">, signal: AbortSignal): Promise<Response> {
    const url = new URL(this.#origin + call.path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { accept: "application/json", ...call.headers };
    headers["authorization"] = `Bearer ${this.#token}`;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    return this.#fetch(url, {
      method: call.method,
      headers,
      ...(call.body !== undefined && { body: sendable(call.body) }),
      // A redirect would carry the token to another place. It is an unexpected status instead.
      redirect: "manual",
      signal,
    });
  }

  /** Reads a body, up to the limit. */
  async bytesOf(response: Response): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (const reader = response.body?.getReader(); reader !== undefined; ) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > this.answerBytesMax) {
        await reader.cancel();
        throw answerTooLarge(this.answerBytesMax);
      }
      chunks.push(value);
    }
    const whole = new Uint8Array(length);
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }
}

/** Returns the error of a response that is larger than the client reads. The rest was not read. */
export function answerTooLarge(bytesMax: number): CountersignError {
  return new CountersignError("answer_too_large", { source: "client", detail: `more than ${bytesMax} bytes` });
}

/** Reads a response as strict JSON. A duplicate key or an inexact number makes it an unexpected answer. */
export function parsedAnswer(bytes: Uint8Array, bytesMax: number): Json {
  try {
    return readJson(bytes, { bytesMax, depthMax: answerDepthMax });
  } catch (bad) {
    throw unexpectedAnswer(`the body is not JSON of the protocol (${(bad as CountersignError).code})`);
  }
}

/** Reads the body of a refusal, which may be that of a proxy. */
export function parsedOrNothing(bytes: Uint8Array): Json | undefined {
  try {
    return readJson(bytes);
  } catch {
    return undefined;
  }
}

/** Returns a body as JSON. A value that JSON cannot represent is refused before anything is sent. */
function sendable(body: unknown): Uint8Array<ArrayBuffer> {
  try {
    return canonical(body);
  } catch (bad) {
    throw invalidArgument("body", `cannot be represented in JSON (${(bad as Error).message})`);
  }
}

/** Returns the error of a missing response, or throws what the caller's signal or the client said. */
function lost(where: string, error: unknown, wasSent: boolean, signal: AbortSignal | undefined): CountersignError {
  if (signal?.aborted) throw signal.reason;
  if (error instanceof CountersignError) throw error;
  const isLate = error instanceof Error && error.name === "TimeoutError";
  const why = isLate ? "did not answer in time" : "cannot be reached, or the connection was lost";
  const detail = wasRefused(error)
    ? `${where} refused the connection. Is \`countersign serve\` running there?${wasSent ? " An earlier attempt may have been carried out. Send the same again." : ""}`
    : `${where} ${why}. The request may have been carried out. Send the same again.`;
  return new CountersignError("unreachable", { source: "client", detail, cause: error });
}

/** Returns whether no program listens at the address. Node has the code in the cause, and Bun in the error. */
function wasRefused(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  return [code, cause?.code].some((it) => it === "ECONNREFUSED" || it === "ConnectionRefused");
}
