/** The client of a gateway. */

import { events, followEvents, type AuditEvent, type EventsOptions } from "./events.js";
import { Transport, type CallOptions, type ClientOptions } from "./http/transport.js";
import type { JsonObject } from "./json/value.js";
import { RequestsApi } from "./requests.js";
import { path, type Schema } from "./schemas.js";
import * as threads from "./threads.js";
import type { Committed, CreateThreadOptions, Decision, Held, WaitForDecisionOptions } from "./threads.js";
import type { NodeSecrets } from "./verify/envelopes.js";
import { anyObject, anyText, count, listOf, openObject } from "./verify/forms.js";
import * as writing from "./writing.js";
import type { Verified, VerifyOptions, WriteOutcome, WriteRequest } from "./writing.js";

/** A rollback, as `propose` takes a change. */
export type Rollback = Schema<"RollbackRequest">;
/** A proposal: the node, the head that it is based on, and the patch. */
export type Proposal = Omit<Schema<"ProposeRequest">, "reaffirm">;
/** A request for a new receipt of the current head. */
export type Reaffirmation = Pick<Schema<"ProposeRequest">, "node" | "parent" | "attempt" | "rationale">;

/**
 * A client. Requests and responses have the names of the HTTP API, and options of the client are in camelCase. Each method
 * throws a `CountersignError` with a code.
 */
export class Client {
  /** The approval of single tool calls, for a token with the role `instance`. */
  readonly requests: RequestsApi;
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    this.requests = new RequestsApi(this.#transport);
  }

  /** Creates a thread. Name it after your own job: then the same request is the same thread. */
  async createThread(flow: string, state: JsonObject, options: CreateThreadOptions = {}) {
    return threads.createThread(this.#transport, flow, state, options);
  }

  /** Returns the current status of a thread. */
  async thread(thread: string, options: CallOptions = {}): Promise<Schema<"ThreadResponse">> {
    return this.#transport.send(threads.readThread(thread), options);
  }

  /** Returns the part of the head, or of an earlier version, that a node may read. Give your model only this. */
  async state(
    thread: string,
    options: CallOptions & { readonly node: string; readonly version?: number },
  ): Promise<Schema<"StateResponse">> {
    return this.#transport.send(threads.readState(thread, options.node, options.version), options);
  }

  /** Proposes a change on the head `parent`. The same proposal returns the outcome of the first one. */
  async propose(thread: string, proposal: Proposal, options: CallOptions = {}): Promise<Committed | Held> {
    return this.#transport.send(threads.proposing(thread, "transitions", proposal), options);
  }

  /** Requests a new receipt for the current head, for example after one expired. */
  async reaffirm(thread: string, request: Reaffirmation, options: CallOptions = {}): Promise<Committed | Held> {
    const body = { ...request, patch: {}, reaffirm: true };
    return this.#transport.send(threads.proposing(thread, "transitions", body), options);
  }

  /** Proposes to bring back the state of an earlier version. */
  async rollback(thread: string, request: Rollback, options: CallOptions = {}): Promise<Committed | Held> {
    return this.#transport.send(threads.proposing(thread, "rollbacks", request), options);
  }

  /** Returns a transition: its statement, and the part of its effect that the caller may see. */
  async transition(transition: string, options: CallOptions = {}): Promise<Schema<"TransitionResponse">> {
    return this.#transport.send(threads.readTransition(transition), options);
  }

  /** Cancels a held proposal with the token that made it. */
  async cancel(transition: string, reason: string, options: CallOptions = {}): Promise<Schema<"CancelResponse">> {
    return this.#transport.send(threads.cancelling(transition, reason), options);
  }

  /** Returns the decision on a transition, or undefined while it is pending. */
  async decision(transition: string, options: CallOptions = {}): Promise<Decision | undefined> {
    return this.#transport.send(threads.readDecision(transition), options);
  }

  /** Waits for the decision, at most `withinSecs`. Then it throws `still_held`, and the proposal is still pending. */
  async wait(transition: string, options: WaitForDecisionOptions): Promise<Decision> {
    return threads.waitForDecision(this.#transport, transition, options);
  }

  /** Asks for permission right before a write. It returns only if the gateway allows exactly this write. */
  async verify(write: WriteRequest, options: VerifyOptions = {}): Promise<Verified> {
    return writing.verify(this.#transport, write, options);
  }

  /** Reports that the write happened. `result` is what your own node adds. Repeated until there is a response. */
  async confirm(
    write: Verified | string,
    options: CallOptions & { readonly result?: JsonObject } = {},
  ): Promise<WriteOutcome> {
    return writing.endWrite(this.#transport, write, "confirm", { result: options.result ?? {} }, options);
  }

  /** Reports that nothing was written. Repeated until there is a response. */
  async abort(write: Verified | string, reason: string, options: CallOptions = {}): Promise<WriteOutcome> {
    return writing.endWrite(this.#transport, write, "abort", { reason }, options);
  }

  /** Yields every event of the audit log after a position, up to the current end. */
  events(options: EventsOptions = {}): AsyncGenerator<AuditEvent> {
    return events(this.#transport, options);
  }

  /** Yields each new event, over lost connections and restarts of the gateway, until `signal` ends it. */
  followEvents(options: EventsOptions = {}): AsyncGenerator<AuditEvent> {
    return followEvents(this.#transport, options);
  }

  /** Yields every version of a chain from 0. `checkChain` of `countersign-gateway/verify` checks them. */
  chain(thread: string, options: CallOptions = {}): AsyncGenerator<Schema<"ChainEntryResponse">> {
    return threads.chainOf(this.#transport, thread, options);
  }

  /** Returns the node's view of the head, signed. Check it with `checkEnvelope` before you give it to a model. */
  async envelope(
    thread: string,
    options: CallOptions & { readonly node: string; readonly hmac?: boolean },
  ): Promise<Schema<"Envelope">> {
    const query = { node: options.node, ...(options.hmac === true && { hmac: true }) };
    const form = openObject({ payload: anyObject, version: count, signature: anyText });
    return this.#transport.send(threads.reading(path`/v1/threads/${{ thread }}/envelope`, form, query), options);
  }

  /** Returns the HMAC secrets of a node. Only the node's own agent receives them. */
  async nodeSecrets(flow: string, node: string, options: CallOptions = {}): Promise<NodeSecrets> {
    const secret = openObject({ epoch: anyText, good_until: anyText, secret: anyText });
    const form = openObject({ secrets: listOf(secret) });
    return this.#transport.send(threads.reading(path`/v1/flows/${{ flow }}/nodes/${{ node }}/envelope-secret`, form), options);
  }

  /** Returns the published keys as they came. `Keys.read` reads them. */
  async jwks(options: CallOptions = {}): Promise<JsonObject> {
    return this.#transport.send(threads.reading("/.well-known/jwks.json", anyObject), options);
  }
}
