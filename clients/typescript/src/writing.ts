/** A writer's calls. `verify` returns a permission that is bound to exactly one write, and `confirm` ends that write. */

import { invalidArgument, must, refused, unexpectedAnswer } from "./errors.js";
import { reportAttempts } from "./http/retries.js";
import type { Call, CallOptions, Transport } from "./http/transport.js";
import { canonicalText, isSame } from "./json/canonical.js";
import { at, type Json, type JsonObject } from "./json/value.js";
import { answer, given, path, type Schema } from "./schemas.js";
import { checkVerification } from "./verify/checks.js";
import type { Verification } from "./verify/claims.js";
import { ANY } from "./verify/expected.js";
import { anyObject, anyText, count, flag, isTrue, moment, name, oneOf, openObject } from "./verify/forms.js";
import { Keys } from "./verify/keys.js";
import { unverifiedClaims } from "./verify/tokens.js";

/** The write for which a writer asks. Take `thread` and `transition` from your own job, never from an agent. */
export interface WriteRequest {
  readonly thread: string;
  readonly transition: string;
  /** Store it with the job before the call. The same id gets the same answer while its lease is valid. */
  readonly write_id: string;
  readonly receipt?: string;
  /** Expected values of the view, by JSON Pointer. */
  readonly expect?: JsonObject;
}

/** Options of `verify`. */
export interface VerifyOptions extends CallOptions {
  /** With keys, the answer must be signed by one of them. Then no proxy can forge a permission. */
  readonly keys?: Keys;
}

/** A permission for one write. Write only values of `view`, before `lease_expires_at`, and store `fence`. */
export interface Verified {
  readonly thread: string;
  readonly transition: string;
  readonly write_id: string;
  /** The id (`jti`) of the receipt that the gateway used, or null if the transition requires none. */
  readonly receipt: string | null;
  /** The fencing token. It is larger than that of every earlier write of the thread. */
  readonly fence: number;
  readonly lease_expires_at: string;
  readonly view: JsonObject;
  /** The signed answer. */
  readonly verification: string;
  readonly enforced: boolean;
  readonly replayed: boolean;
  /** Whether the signature was checked by the keys of the caller. */
  readonly isSignatureChecked: boolean;
}

/** The outcome of a write. `late` means that the head had changed. */
export type WriteOutcome = Schema<"WriteOutcomeResponse">;

const verifyForm = answer<Schema<"VerifyResponse">>(
  openObject({
    allow: isTrue, write_id: name, fence: count, lease_expires_at: moment, view: anyObject, verification: anyText,
    enforced: flag, replayed: flag,
  }),
);
const outcomeForm = answer<WriteOutcome>(
  openObject({ write_id: name, outcome: oneOf("confirmed", "aborted", "late") }),
);

export async function verify(transport: Transport, request: WriteRequest, options: VerifyOptions): Promise<Verified> {
  checkKeys(options.keys);
  checkComparable(request.expect ?? {});
  const receiptId = request.receipt === undefined ? null : unverifiedClaims("receipt", request.receipt).jti;
  const { thread, transition, write_id, receipt, expect } = request;
  const call: Call<Verified> = {
    method: "POST",
    path: "/v1/verify",
    body: given({ thread, transition, write_id, receipt, expect }),
    accepts: { 200: async (body) => bound(verifyForm(body), { ...request, receiptId }, options.keys) },
    isIdempotent: true,
  };
  return transport.send(call, options);
}

/** Refuses something else than keys, before a permission is spent on it. */
export function checkKeys(keys: Keys | undefined): void {
  if (keys !== undefined && !(keys instanceof Keys)) throw invalidArgument("keys", "use Keys.read(…)");
}

/** Refuses an expectation that no view can match, before a permission is spent on it. */
function checkComparable(expect: JsonObject): void {
  try {
    canonicalText(expect);
  } catch (bad) {
    throw invalidArgument("expect", `no view has such a value (${(bad as Error).message})`);
  }
}

/** Returns the answer bound to the request. Throws if it is the answer to another one, or signed for another write. */
async function bound(
  found: Schema<"VerifyResponse">,
  request: WriteRequest & { readonly receiptId: string | null },
  keys: Keys | undefined,
): Promise<Verified> {
  must(found.write_id === request.write_id, "write_mismatch", "the answer is about another write");
  const claims = await verificationClaims(found.verification, request, keys);
  const lease = Date.parse(found.lease_expires_at);
  must(claims.fence === found.fence, "fence_mismatch", "another fencing token was signed");
  must(claims.exp === Math.floor(lease / 1000), "lease_mismatch", "another lease was signed");
  must(claims.enforced === found.enforced, "enforced_mismatch", "another value of `enforced` was signed");
  must(claims.receipt === null || claims.receipt === request.receiptId, "receipt_mismatch", "another receipt was used");
  must(Date.now() < lease, "expired", "the lease has expired by the local clock");
  const view = found.view as JsonObject;
  for (const [pointer, value] of Object.entries(request.expect ?? {})) {
    const shown = at(view, pointer);
    must(shown !== undefined && isSame(shown, value), "expectation_failed", `the view is not as expected at ${pointer}`);
  }
  return Object.freeze({
    thread: request.thread,
    transition: request.transition,
    write_id: request.write_id,
    receipt: claims.receipt,
    fence: claims.fence,
    lease_expires_at: found.lease_expires_at,
    view,
    verification: found.verification,
    enforced: claims.enforced,
    replayed: found.replayed,
    isSignatureChecked: keys !== undefined,
  });
}

/** Returns the claims of a verification of exactly this write. Without keys, they bind the answer and prove nothing. */
export async function verificationClaims(
  token: string,
  write: { readonly thread: string; readonly transition: string | typeof ANY; readonly write_id: string },
  keys: Keys | undefined,
): Promise<Verification> {
  if (keys !== undefined) {
    const { thread, transition, write_id } = write;
    // `exp` has whole seconds, so the caller compares the lease itself.
    return checkVerification(token, keys, { issuer: keys.issuer ?? ANY, thread, transition, write_id, at: ANY });
  }
  const claims = unverifiedClaims("verification", token);
  must(claims.sub === write.thread, "thread_mismatch", "the verification is about another thread");
  for (const [expected, found, code] of [
    [write.transition, claims.transition, "digest_mismatch"],
    [write.write_id, claims.write_id, "write_mismatch"],
  ] as const) {
    if (expected !== ANY && expected !== found) throw refused(code, "the verification is about another write");
  }
  return claims;
}

/** Ends a write, and repeats the report until there is an answer. */
export async function endWrite(
  transport: Transport,
  write: Verified | string,
  how: "confirm" | "abort",
  body: object,
  options: CallOptions,
): Promise<WriteOutcome> {
  const writeId = typeof write === "object" && write !== null ? write.write_id : write;
  const call: Call<WriteOutcome> = {
    method: "POST",
    path: `${path`/v1/writes/${{ write_id: writeId }}`}/${how}`,
    body,
    accepts: { 200: (sent) => outcomeOf(sent, writeId) },
    isIdempotent: true,
  };
  return transport.send(call, options, reportAttempts(transport.retries));
}

function outcomeOf(body: Json, writeId: string): WriteOutcome {
  const found = outcomeForm(body);
  if (found.write_id !== writeId) throw unexpectedAnswer("the answer is about another write");
  return found;
}
