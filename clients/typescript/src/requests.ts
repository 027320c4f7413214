/** Approval requests: the approval of single tool calls, by the Agent Approval Protocol. */

import { CountersignError, must, unexpectedAnswer } from "./errors.js";
import { reportAttempts } from "./http/retries.js";
import type { Call, CallOptions, Transport } from "./http/transport.js";
import { waitUntil, type WaitOptions } from "./http/waiting.js";
import { isSame } from "./json/canonical.js";
import type { Json, JsonObject } from "./json/value.js";
import { answer, given, keyHeader, path, type Schema } from "./schemas.js";
import { base64url, sha256, utf8 } from "./verify/encoding.js";
import { ANY } from "./verify/expected.js";
import { anyObject, anyText, flag, oneOf, openObject } from "./verify/forms.js";
import type { Keys } from "./verify/keys.js";
import { checkKeys, verificationClaims } from "./writing.js";

const statuses = ["pending", "approved", "denied", "expired", "cancelled"] as const;

/** A tool call that needs approval. */
export type NewRequest = Omit<Schema<"CreateApprovalRequest">, "arguments" | "context"> & {
  readonly arguments: JsonObject;
  readonly context?: JsonObject;
};

/** An approval request. */
export type ApprovalRequest = Omit<Schema<"ApprovalRequestResponse">, "arguments" | "context" | "status"> & {
  readonly status: (typeof statuses)[number];
  readonly arguments: JsonObject;
  readonly context?: JsonObject;
  /** The page of the pending review. */
  readonly reviewUrl?: string;
  /** The signed receipt of an approval by reviewers. */
  readonly receipt?: string;
};

/** A used approval. Run the call once, now, with exactly these `arguments`, and report its outcome. */
export interface Consumption {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly thread: string;
  readonly transition: string;
  readonly write_id: string;
  readonly fence: number;
  /** The id (`jti`) of the receipt that the gateway used, or null if the policy allowed the call. */
  readonly receipt: string | null;
  /** The signed reservation. */
  readonly verification: string;
  /** Whether the signature was checked by the keys of the caller. */
  readonly isSignatureChecked: boolean;
}

/** The outcome of a call. */
export interface Outcome {
  readonly status: "succeeded" | "failed";
  readonly note?: string;
}

/** Options of a new request. */
export interface CreateRequestOptions extends CallOptions {
  /** Your key of this call. The same key with the same call is the same request, also from another process. */
  readonly idempotencyKey: string;
  /** Shares the request with equal calls of the instance. */
  readonly share?: boolean;
}

/** Options of `consume`. */
export interface ConsumeOptions extends CallOptions {
  /** A new random key for each attempt to run the call, which is the default. Never derive it. */
  readonly idempotencyKey?: string;
  /**
   * With keys, one of them must have signed that this attempt uses this request. The arguments are not signed: TLS protects
   * them.
   */
  readonly keys?: Keys;
}

const form = answer<ApprovalRequest>(
  openObject(
    { id: anyText, tool: anyText, arguments: anyObject, status: oneOf(...statuses) },
    { server: anyText, consumption: anyObject, tool_has_changed: flag },
  ),
);

/** The calls of an instance. */
export class RequestsApi {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Asks for the approval of a tool call. The policy may have decided it already. */
  async create(request: NewRequest, options: CreateRequestOptions): Promise<ApprovalRequest> {
    const call: Call<ApprovalRequest> = {
      method: "POST",
      path: "/aap/v1/requests",
      ...(options.share === true && { query: { share: true } }),
      headers: keyHeader(options.idempotencyKey),
      body: given(request),
      accepts: { 200: (body, headers) => sameCall(body, headers, request), 201: (body, headers) => sameCall(body, headers, request) },
      isIdempotent: true,
    };
    return this.#transport.send(call, options);
  }

  /** Returns the current state of a request. */
  async get(id: string, options: CallOptions = {}): Promise<ApprovalRequest> {
    return this.#transport.send(reading(id), options);
  }

  /** Waits for the decision, at most `withinSecs`. Then it throws `still_held`, and the request is still pending. */
  async wait(request: string | { readonly id: string }, options: WaitOptions): Promise<ApprovalRequest> {
    const id = idOf(request);
    return waitUntil(this.#transport, `the approval request ${id}`, options, (waitSecs) => {
      const call = reading(id, waitSecs);
      const accept = call.accepts[200];
      const decided = async (body: Json, headers: Headers) => {
        const found = await accept?.(body, headers);
        return found?.status === "pending" ? undefined : found;
      };
      return { ...call, accepts: { 200: decided } };
    });
  }

  /** Cancels a pending request. */
  async cancel(request: string | { readonly id: string }, options: CallOptions = {}): Promise<ApprovalRequest> {
    const id = idOf(request);
    const call: Call<ApprovalRequest> = { ...reading(id), method: "DELETE" };
    try {
      return await this.#transport.send(call, options);
    } catch (error) {
      if (!(error instanceof CountersignError) || error.code !== "already_terminal") throw error;
      // An earlier attempt, whose response was lost, may have cancelled it.
      const found = await this.get(id, options);
      if (found.status !== "cancelled") throw error;
      return found;
    }
  }

  /**
   * Uses the approval, right before you run the call. If it throws, do not run the call. The answer must be about exactly
   * the tool and the arguments of `request`, which come from your own call.
   */
  async consume(
    request: Pick<ApprovalRequest, "id" | "tool" | "arguments"> & { readonly server?: string },
    options: ConsumeOptions = {},
  ): Promise<Consumption> {
    const { idempotencyKey = crypto.randomUUID(), keys } = options;
    checkKeys(keys);
    const call: Call<Consumption> = {
      method: "POST",
      path: path`/aap/v1/requests/${{ id: request.id }}/consume`,
      headers: keyHeader(idempotencyKey),
      accepts: { 200: async (body, headers) => consumed(sameCall(body, headers, request), headers, { idempotencyKey, keys }) },
      isIdempotent: true,
    };
    return this.#transport.send(call, options);
  }

  /**
   * Reports the outcome, and repeats the report until there is a response. A failed call may have had a part of its effect,
   * so its approval is used up too.
   */
  async report(
    request: string | { readonly id: string },
    outcome: Outcome,
    options: CallOptions = {},
  ): Promise<ApprovalRequest> {
    const id = idOf(request);
    const call: Call<ApprovalRequest> = {
      method: "POST",
      path: path`/aap/v1/requests/${{ id }}/outcome`,
      body: given({ status: outcome.status, note: outcome.note }),
      accepts: { 200: (body, headers) => sameRequest(body, headers, id) },
      isIdempotent: true,
    };
    return this.#transport.send(call, options, reportAttempts(this.#transport.retries));
  }
}

function idOf(request: string | { readonly id: string }): string {
  // Plain JavaScript can pass nothing.
  return typeof request === "object" && request !== null ? request.id : request;
}

function reading(id: string, waitSecs = 0): Call<ApprovalRequest> {
  return {
    method: "GET",
    path: path`/aap/v1/requests/${{ id }}`,
    query: { wait: waitSecs > 0 ? `${waitSecs}s` : undefined },
    accepts: { 200: (body, headers) => sameRequest(body, headers, id) },
    isIdempotent: true,
    waitSecs,
  };
}

function read(body: Json, headers: Headers): ApprovalRequest {
  const reviewUrl = headers.get("countersign-review");
  const receipt = headers.get("countersign-receipt");
  return { ...form(body), ...(reviewUrl !== null && { reviewUrl }), ...(receipt !== null && { receipt }) };
}

function sameRequest(body: Json, headers: Headers, id: string): ApprovalRequest {
  const found = read(body, headers);
  if (found.id !== id) throw unexpectedAnswer("the answer is about another approval request");
  return found;
}

/** Refuses the answer about another call: another tool, server or other arguments. */
function sameCall(
  body: Json,
  headers: Headers,
  call: { readonly id?: string; readonly tool: string; readonly server?: string; readonly arguments: JsonObject },
): ApprovalRequest {
  const found = read(body, headers);
  must(call.id === undefined || found.id === call.id, "request_mismatch", "the answer is about another approval request");
  must(found.tool === call.tool && found.server === call.server, "tool_mismatch", "the answer is about another tool");
  must(isSame(found.arguments, call.arguments), "arguments_mismatch", "the answer has other arguments");
  return found;
}

/** Returns the use of the approval by this attempt. Throws for the answer to another attempt, although it was signed. */
async function consumed(
  found: ApprovalRequest,
  headers: Headers,
  { idempotencyKey, keys }: { readonly idempotencyKey: string; readonly keys: Keys | undefined },
): Promise<Consumption> {
  if (found.consumption === undefined || found.status !== "approved") {
    throw unexpectedAnswer("the answer does not say that the approval was used");
  }
  const verification = headers.get("countersign-verification");
  if (verification === null) throw unexpectedAnswer("the answer has no signed reservation");
  const thread = `request:${found.id}`;
  const reservation = await writeId(found.id, idempotencyKey);
  const claims = await verificationClaims(verification, { thread, transition: ANY, write_id: reservation }, keys);
  must(Date.now() < (claims.exp + 1) * 1000, "expired", "the lease has expired by the local clock");
  const { transition, write_id, fence, receipt } = claims;
  return Object.freeze({
    id: found.id, tool: found.tool, arguments: found.arguments, thread, transition, write_id, fence, receipt, verification,
    isSignatureChecked: keys !== undefined,
  });
}

/** Returns the name that the gateway gives the reservation of an attempt. */
async function writeId(id: string, idempotencyKey: string): Promise<string> {
  return `call-${base64url(await sha256(utf8(`${id}\0${idempotencyKey}`)))}`;
}
