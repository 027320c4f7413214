/** Threads and proposals: create, read, propose, wait, cancel. */

import { unexpectedAnswer } from "./errors.js";
import type { Call, CallOptions, Transport } from "./http/transport.js";
import { waitUntil, type WaitOptions } from "./http/waiting.js";
import type { Json, JsonObject } from "./json/value.js";
import { answer, given, keyHeader, path, type Schema } from "./schemas.js";
import { anyObject, anyText, count, digest, flag, listOf, name, nullable, oneOf, openObject } from "./verify/forms.js";

/** The change was allowed by the policy: it is in the chain. */
export type Committed = Schema<"CommittedResponse"> & { readonly outcome: "committed" };
/** The change requires approval. */
export type Held = Schema<"HeldResponse"> & { readonly outcome: "held" };
/** The end of a transition. `expired` is not a denial. */
export type Decision = Schema<"DecisionResponse">;

const committed = answer<Committed>(
  openObject({ outcome: oneOf("committed"), version: count, transition: digest, entry: anyText }),
);
const held = answer<Held>(
  openObject({ outcome: oneOf("held"), transition: digest, review: openObject({ id: name, url: anyText }) }),
);
const decisionForm = openObject(
  { approved: flag, decision: anyText, transition_digest: digest, reviewers: listOf(name) },
  { receipt: nullable(anyText), superseded_by: nullable(digest) },
);
const thread = openObject({ thread: name, version: count, transition: digest });
// Five edits in a row, and each policy that was activated in between.
const followedMax = 64;
// The gateway's own maximum.
const chainPage = 200;

/** Options of a new thread. */
export interface CreateThreadOptions extends CallOptions {
  /** Your own name of the thread. The same request then is the same thread. */
  readonly thread?: string;
  readonly context?: JsonObject;
  readonly idempotencyKey?: string;
}

export async function createThread(
  transport: Transport,
  flow: string,
  state: JsonObject,
  options: CreateThreadOptions,
): Promise<Schema<"ThreadCreatedResponse">> {
  const key = options.idempotencyKey ?? (options.thread === undefined ? crypto.randomUUID() : undefined);
  const call: Call<Schema<"ThreadCreatedResponse">> = {
    method: "POST",
    path: "/v1/threads",
    body: given({ flow, state, thread: options.thread, context: options.context }),
    ...(key !== undefined && { headers: keyHeader(key) }),
    accepts: { 201: answer(thread) },
    isIdempotent: true,
  };
  return transport.send(call, options);
}

/** Reads something of the gateway. */
export function reading<T>(
  at: string,
  form: Parameters<typeof answer>[0],
  query: NonNullable<Call<T>["query"]> = {},
): Call<T> {
  return { method: "GET", path: at, query, accepts: { 200: answer<T>(form) }, isIdempotent: true };
}

export function readThread(id: string): Call<Schema<"ThreadResponse">> {
  return reading(path`/v1/threads/${{ thread: id }}`, thread);
}

export function readState(id: string, node: string, version?: number): Call<Schema<"StateResponse">> {
  return reading(path`/v1/threads/${{ thread: id }}/state`, openObject({ version: count, transition: digest, state: anyObject }), {
    node,
    version,
  });
}

/** Returns the call of a proposal. The gateway knows a repeated one, so a retry has no second effect. */
export function proposing(id: string, below: "transitions" | "rollbacks" | "joins", body: object): Call<Committed | Held> {
  return {
    method: "POST",
    path: `${path`/v1/threads/${{ thread: id }}`}/${below}`,
    body: given(body),
    accepts: { 201: committed, 202: held },
    isIdempotent: true,
  };
}

export function readTransition(transition: string): Call<Schema<"TransitionResponse">> {
  return reading(path`/v1/transitions/${{ transition }}`, openObject({ transition: digest, thread: name, status: anyText }));
}

export function cancelling(transition: string, reason: string): Call<Schema<"CancelResponse">> {
  return {
    method: "POST",
    path: path`/v1/transitions/${{ transition }}/cancellation`,
    body: { reason },
    accepts: { 200: answer(openObject({ status: anyText })) },
    isIdempotent: true,
  };
}

/** Returns the call for a decision, which answers nothing while the review is pending. */
export function readDecision(transition: string, waitSecs = 0): Call<Decision | undefined> {
  return {
    method: "GET",
    path: path`/v1/transitions/${{ transition }}/decision`,
    ...(waitSecs > 0 && { headers: { prefer: `wait=${waitSecs}` } }),
    accepts: { 200: (body) => decisionOf(transition, body), 202: () => undefined },
    isIdempotent: true,
    waitSecs,
  };
}

function decisionOf(transition: string, body: Json): Decision {
  const found = answer<Decision>(decisionForm)(body);
  if (found.transition_digest !== transition) throw unexpectedAnswer("the decision is about another transition");
  if (found.approved !== ["approved", "committed"].includes(found.decision)) {
    throw unexpectedAnswer("the decision contradicts itself");
  }
  return found;
}

/** Options of a wait for a decision. */
export interface WaitForDecisionOptions extends WaitOptions {
  /**
   * Continues with the transition that superseded this one: an edit, or the same request under a new policy. Check
   * `transition_digest` before you act on it.
   */
  readonly follow?: boolean;
}

export async function waitForDecision(
  transport: Transport,
  transition: string,
  options: WaitForDecisionOptions,
): Promise<Decision> {
  const ends = Date.now() + options.withinSecs * 1000;
  let current = transition;
  let before: Decision | undefined;
  for (let followed = 0; followed < followedMax; followed += 1) {
    const withinSecs = before === undefined ? options.withinSecs : Math.max(0, (ends - Date.now()) / 1000);
    const found = await waitUntil(transport, current, { ...options, withinSecs }, (secs) => readDecision(current, secs));
    // A transition that committed without review did not take the place of the original: it is another one.
    if (before !== undefined && found.decision === "committed") return before;
    const next = found.superseded_by ?? undefined;
    if (options.follow !== true || next === undefined) return found;
    [before, current] = [found, next];
  }
  throw unexpectedAnswer("superseded more often than possible");
}

/** Yields every version of a chain from 0, page by page. */
export async function* chainOf(
  transport: Transport,
  id: string,
  options: CallOptions,
): AsyncGenerator<Schema<"ChainEntryResponse">> {
  const form = openObject({ entries: listOf(openObject({ version: count, transition: digest })), next_page_token: nullable(count) });
  for (let token = 0; ; ) {
    const query = { page_token: token, page_size: chainPage };
    const page = await transport.send(reading<Schema<"ChainResponse">>(path`/v1/threads/${{ thread: id }}/chain`, form, query), options);
    yield* page.entries;
    const next = page.next_page_token ?? undefined;
    if (next === undefined) return;
    if (next <= token) throw unexpectedAnswer("the pages of a chain go backwards");
    token = next;
  }
}
