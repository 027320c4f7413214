/** The check of each kind of token. State each expectation, and `ANY` if there is none. */

import { CountersignError, must } from "../errors.js";
import type { Answer, Denial, Entry, Episode, Receipt, Verification } from "./claims.js";
import { allows, expects, seconds, type Expected } from "./expected.js";
import type { Keys } from "./keys.js";
import { genuine } from "./tokens.js";

/**
 * Checks that a transition was approved. State gateway, thread, transition, writer's node and time. Only the gateway knows
 * whether the receipt was revoked since then, so a writer still calls `verify`.
 */
export async function checkReceipt(
  token: unknown,
  keys: Keys,
  expected: {
    readonly issuer: Expected<string>;
    readonly thread: Expected<string>;
    readonly transition: Expected<string>;
    readonly audience: Expected<string>;
    readonly at: Expected<Date>;
  },
): Promise<Receipt> {
  const { claims, key } = await genuine("receipt", token, keys);
  if (key.status === "retired") {
    const detail = "a retired key is trusted only for receipts that the gateway has stored";
    throw new CountersignError("could_not_tell", { source: "verification", detail });
  }
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  must(allows("audience", expected.audience, claims.aud), "audience_mismatch", "it is for other writers");
  const now = seconds(expected.at);
  if (now !== undefined) {
    must(claims.nbf <= now, "not_yet_valid", "it is not valid yet");
    must(now < claims.exp, "expired", "it has expired");
  }
  expects("thread", expected.thread, claims.sub, "thread_mismatch");
  expects("transition", expected.transition, claims.transition, "digest_mismatch");
  return claims;
}

/** What is expected of an entry or a denial. */
export interface ExpectedTransition {
  readonly issuer: Expected<string>;
  readonly transition: Expected<string>;
}

/** Checks that a transition is in its thread's chain. */
export async function checkEntry(token: unknown, keys: Keys, expected: ExpectedTransition): Promise<Entry> {
  const { claims } = await genuine("entry", token, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("transition", expected.transition, claims.transition, "digest_mismatch");
  return claims;
}

/** Checks that a transition was denied. */
export async function checkDenial(token: unknown, keys: Keys, expected: ExpectedTransition): Promise<Denial> {
  const { claims } = await genuine("denial", token, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("transition", expected.transition, claims.transition, "digest_mismatch");
  return claims;
}

/** Checks that a writer was allowed to write, and until when. */
export async function checkVerification(
  token: unknown,
  keys: Keys,
  expected: {
    readonly issuer: Expected<string>;
    readonly thread: Expected<string>;
    readonly transition: Expected<string>;
    readonly write_id: Expected<string>;
    readonly at: Expected<Date>;
  },
): Promise<Verification> {
  const { claims } = await genuine("verification", token, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("thread", expected.thread, claims.sub, "thread_mismatch");
  expects("transition", expected.transition, claims.transition, "digest_mismatch");
  expects("write_id", expected.write_id, claims.write_id, "write_mismatch");
  const now = seconds(expected.at);
  must(now === undefined || now < claims.exp, "expired", "the lease is over");
  return claims;
}

/**
 * Checks the decision on a host application's interrupt. `transition` is the host's own digest, `audience` the id of its
 * token. Store `jti`, and act on an answer once.
 */
export async function checkAnswer(
  token: unknown,
  keys: Keys,
  expected: {
    readonly issuer: Expected<string>;
    readonly audience: Expected<string>;
    readonly transition: Expected<string>;
    readonly at: Expected<Date>;
  },
): Promise<Answer> {
  const { claims } = await genuine("answer", token, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("audience", expected.audience, claims.aud, "audience_mismatch");
  expects("transition", expected.transition, claims.transition_digest, "digest_mismatch");
  const now = seconds(expected.at);
  must(now === undefined || claims.exp === undefined || now < claims.exp, "expired", "it has expired");
  return claims;
}

/** Checks that a gateway signed the manifest of a run. `manifest` is the `manifestDigest` of the one that you have. */
export async function checkEpisode(
  token: unknown,
  keys: Keys,
  expected: {
    readonly issuer: Expected<string>;
    readonly episode: Expected<string>;
    readonly manifest: Expected<string>;
  },
): Promise<Episode> {
  const { claims } = await genuine("episode", token, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("episode", expected.episode, claims.episode, "thread_mismatch");
  expects("manifest", expected.manifest, claims.manifest, "digest_mismatch");
  return claims;
}
