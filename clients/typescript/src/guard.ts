/** Guards functions and tools: a call runs only with an approval of its own, once, with exactly the approved arguments. */

import { CountersignError, invalidArgument } from "./errors.js";
import { isPlain } from "./json/canonical.js";
import { isObject, levelsMax, setMember, type JsonObject } from "./json/value.js";
import { notRun, refusal } from "./refusals.js";
import type { ApprovalRequest, Consumption, Outcome, RequestsApi } from "./requests.js";
import type { Keys } from "./verify/keys.js";
import { checkKeys } from "./writing.js";

/** Options of a guard. Use the same ones when a run is resumed. */
export interface GuardOptions {
  /** The requests of an instance: `client.requests`. */
  readonly requests: RequestsApi;
  /** The server of the tools. The policy then names a tool `server:tool`. */
  readonly server?: string;
  /** The time in which reviewers can decide, `10m` by default. The policy's `ttl` is the maximum. */
  readonly timeout?: string;
  /** The time that a call waits for its decision. By default, it waits until the request has ended. 0 does not wait. */
  readonly withinSecs?: number;
  /** With keys, one of them must have signed that this call uses its request. The arguments are not signed: TLS protects them. */
  readonly keys?: Keys;
  /** Gets each request that requires approval, for example to show its `reviewUrl`. The call fails if it throws or rejects. */
  readonly onPending?: (request: ApprovalRequest) => unknown;
  /** Gets a call that ran without a recorded outcome. The gateway then shows its outcome as unknown. Its errors are ignored. */
  readonly onUnreported?: (call: Consumption, error: unknown) => unknown;
}

/** A call of a tool. */
export interface GuardedCall {
  readonly tool: string;
  /** The server of this tool, if it is another one than that of the guard. */
  readonly server?: string | undefined;
  readonly arguments: unknown;
  /**
   * Your key of this call, which no other call has: 1 to 255 visible ASCII characters. The same key finds the same request
   * again, also from another process. Without a key, the request ends with the wait.
   */
  readonly key?: string | undefined;
  /** The agent's reason. Reviewers see it as a claim of the agent. */
  readonly reasoning?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Cancels the request when `signal` is aborted, also with a key. */
  readonly cancelsOnAbort?: boolean | undefined;
}

const defaultTimeout = "10m";
// The gateway ends a request at its deadline, and the answer takes a moment.
const answerSecs = 30;

/** Asks for the approval of calls, and runs approved ones. The adapters of agent frameworks are built on it. */
export class ToolGuard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    checkKeys(options.keys);
    this.#options = options;
  }

  /** Asks without a wait. The request is pending, or the policy or reviewers have decided it. */
  async ask(call: GuardedCall): Promise<ApprovalRequest> {
    const { requests, timeout = defaultTimeout, onPending } = this.#options;
    const { server = this.#options.server } = call;
    const asked = { tool: call.tool, arguments: argumentsOf(call), timeout };
    const more = { ...(server !== undefined && { server }), ...(call.reasoning !== undefined && { agent_reasoning: call.reasoning }) };
    call.signal?.throwIfAborted();
    // A request that is to be cancelled is made first, because its id is needed.
    const signal = call.signal && call.key !== undefined && call.cancelsOnAbort !== true && { signal: call.signal };
    const idempotencyKey = call.key === undefined ? crypto.randomUUID() : call.key;
    const request = await requests.create({ ...asked, ...more }, { idempotencyKey, ...signal });
    if (request.status !== "pending") return request;
    try {
      await onPending?.(request);
    } catch (error) {
      if (call.key === undefined) await requests.cancel(request).catch(() => undefined);
      throw error;
    }
    return request;
  }

  /** Asks, and waits for the decision. The request is still pending if no reviewer decided in time. */
  async decide(call: GuardedCall): Promise<ApprovalRequest> {
    const { requests, timeout = defaultTimeout, withinSecs = secsOf(timeout) + answerSecs } = this.#options;
    const request = await this.ask(call);
    if (request.status !== "pending") return request;
    try {
      call.signal?.throwIfAborted();
      if (withinSecs !== 0) return await requests.wait(request, { withinSecs, ...(call.signal && { signal: call.signal }) });
    } catch (error) {
      const isLate = error instanceof CountersignError && error.code === "still_held";
      if (!isLate) {
        const isOver = call.key === undefined || (call.cancelsOnAbort === true && call.signal?.aborted === true);
        if (isOver) await requests.cancel(request).catch(() => undefined);
        throw error;
      }
    }
    // Without its key, no call can use an approval, so reviewers are not asked any longer.
    return call.key === undefined ? requests.cancel(request).catch(() => requests.get(request.id)) : request;
  }

  /** Runs a call once if it is approved, and reports its outcome. If it throws without a call of `fn`, the call did not run. */
  async run<T>(call: GuardedCall, fn: (approved: JsonObject) => T | Promise<T>): Promise<T> {
    const own = { ...call, arguments: argumentsOf(call) };
    const request = await this.decide(own).catch((error: unknown) => fail(notRun(call.tool, error, false)));
    if (request.status !== "approved") throw refusal(request);
    const approved = await this.#consume(request, own);
    let outcome: Outcome = { status: "failed", note: "The call was aborted before it ran." };
    try {
      call.signal?.throwIfAborted();
      outcome = { status: "failed" };
      const result = await fn(approved.arguments);
      if (isGenerator(result)) {
        outcome = { status: "failed", note: "The function returned a generator, whose body may not have run." };
        throw invalidArgument("fn", `${call.tool} returned a generator, whose body may not have run. Return the result itself. The approval is used up`);
      }
      outcome = { status: "succeeded" };
      return result;
    } finally {
      await this.#report(approved, outcome);
    }
  }

  /** Reports the outcome of a call. The call has run, so no error of the report replaces its result. */
  async #report(call: Consumption, outcome: Outcome): Promise<void> {
    try {
      await this.#options.requests.report(call, outcome);
    } catch (error) {
      try {
        await this.#options.onUnreported?.(call, error);
      } catch {
        // The caller gets the result of the call.
      }
    }
  }

  /** Uses the approval. The answer must be about the call as its caller made it, and not as the request has it. */
  async #consume(request: ApprovalRequest, call: GuardedCall & { readonly arguments: JsonObject }): Promise<Consumption> {
    const { requests, keys } = this.#options;
    const { server = this.#options.server } = call;
    // A signal in the middle of this request would use the approval up.
    call.signal?.throwIfAborted();
    const used = { id: request.id, tool: call.tool, arguments: call.arguments, ...(server !== undefined && { server }) };
    try {
      return await requests.consume(used, keys && { keys });
    } catch (error) {
      if (!(error instanceof CountersignError) || error.code !== "already_consumed") throw notRun(call.tool, error, true);
      // Without an answer, the outcome is unknown.
      throw refusal(await requests.get(request.id).catch(() => request), error);
    }
  }
}

/** Options of `guard`. */
export interface FunctionGuardOptions extends GuardOptions {
  /** The name of the tool in the policy. */
  readonly tool: string;
}

/** Options of one call of a guarded function. */
export type FunctionCallOptions = Pick<GuardedCall, "key" | "reasoning" | "signal">;

/**
 * Returns the function behind an approval. A call asks for approval and waits. If the call is approved, the function runs
 * once with a copy of the approved arguments. Otherwise the call throws a `CountersignError`, for example with the code
 * `denied`. Its message is for a model, and has the next step. A function that returns a generator has failed, because its
 * body would run later.
 */
export function guard<A extends object, T>(
  fn: (approved: A) => T | Promise<T>,
  options: FunctionGuardOptions,
): (args: A, call?: FunctionCallOptions) => Promise<T> {
  const tools = new ToolGuard(options);
  return (args, call = {}) => tools.run({ ...call, tool: options.tool, arguments: args }, (approved) => fn(approved as A));
}

/** Returns a copy of the arguments without undefined members, which JSON does not have. */
function argumentsOf(call: GuardedCall): JsonObject {
  const copy = copyOf(call.arguments, 0);
  if (!isObject(copy)) throw invalidArgument("arguments", `the call of ${call.tool} needs an object`);
  return copy;
}

function copyOf(value: unknown, level: number): JsonObject[string] | undefined {
  if (level > levelsMax) throw invalidArgument("arguments", `more than ${levelsMax} levels, or a cycle`);
  if (Array.isArray(value)) return Array.from(value, (item) => copyOf(item, level + 1)) as JsonObject[string];
  // A value that JSON does not have is refused when it is sent.
  if (typeof value !== "object" || value === null || !isPlain(value)) return value as JsonObject[string];
  const copy = {};
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) setMember(copy, key, copyOf(item, level + 1));
  }
  return copy;
}

/** Returns whether a result is that of a generator function. Its body runs only when it is read. Other iterators are results. */
function isGenerator(result: unknown): boolean {
  return ["[object Generator]", "[object AsyncGenerator]"].includes(Object.prototype.toString.call(result));
}

function secsOf(timeout: string): number {
  const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };
  const parts = Array.from(timeout.matchAll(/([0-9]+)([smhd])/g), ([, count, unit = ""]) => Number(count) * (units[unit] ?? 0));
  return parts.reduce((sum, part) => sum + part, 0);
}

function fail(error: unknown): never {
  throw error;
}
