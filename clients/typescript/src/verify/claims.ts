/** The claims of each kind of token, exactly. */

import {
  anyText, byKind, count, digest, exactObject, fits, flag, jti, listOf, moment, name, nullable, oneOf, pointer, shortCount, text,
  type Read, type Reader,
} from "./forms.js";

const vote = exactObject({ reviewer: name, stage: shortCount, at: moment }, { for: name });
const approval = exactObject(
  { reviewer: name, stage: shortCount, at: moment, method: oneOf("password", "oidc", "passkey_session", "passkey") },
  { evidence: digest, for: name },
);
const gate = byKind({
  auto: exactObject({ kind: oneOf("auto") }),
  observed: exactObject({ kind: oneOf("observed") }),
  approved: exactObject({ kind: oneOf("approved"), review: name, receipt: jti }),
  written: exactObject({ kind: oneOf("written"), write_id: name }, { receipt: jti }),
});

const entry = exactObject({
  iss: anyText, thread: name, version: count, transition: digest, parent: nullable(digest), gate, owes: flag,
  policy: digest, committed_at: moment,
});

const envelope = exactObject({
  iss: anyText, thread: name, node: name, version: count, transition: digest, timestamp: moment, budget: nullable(count),
  tokens: count, encoding: oneOf("o200k_base", "cl100k_base"), requires: listOf(pointer), payload: digest, truncated: digest,
});

const receipt = exactObject({
  iss: anyText, sub: name, aud: listOf(name), jti, iat: count, nbf: count, exp: count, flow: name, policy: digest,
  transition: digest, parent: digest, version: count, to: digest, approvals: listOf(approval),
});

const denial = exactObject({
  iss: anyText, sub: name, jti, iat: count, flow: name, policy: digest, transition: digest, parent: digest, review: name,
  outcome: oneOf("denied"), reviewers: listOf(vote),
});

const verification = exactObject({
  iss: anyText, sub: name, aud: name, iat: count, exp: count, write_id: name, fence: count, flow: name, policy: digest,
  transition: digest, version: count, to: digest, receipt: nullable(jti), enforced: flag,
});

const answer = exactObject(
  {
    iss: anyText, sub: name, aud: name, jti, iat: count, flow: name, policy: digest, asserted: digest,
    decision: oneOf("approved", "denied", "expired", "superseded"), approved: flag, interrupt_id: text,
    transition_digest: text, approvals: listOf(approval), refusals: listOf(vote),
  },
  { exp: count },
);

const episode = exactObject({ iss: anyText, episode: name, iat: count, manifest: digest });

/** A transition is in the chain. */
export type Entry = Read<typeof entry>;
/** A payload is a node's view of a version, with its number of tokens. */
export type EnvelopeClaims = Read<typeof envelope>;
/** Reviewers approved a transition. Valid from `nbf` until before `exp`, for the writers in `aud`. */
export type Receipt = Read<typeof receipt>;
/** Reviewers denied a transition. */
export type Denial = Read<typeof denial>;
/** A writer was allowed to write. `exp` is the end of its lease. */
export type Verification = Read<typeof verification>;
/** The decision on a host application's interrupt. It allows no write. */
export type Answer = Read<typeof answer>;
/** The files of a finished run. `manifest` is the digest of its manifest without the signature. */
export type Episode = Read<typeof episode>;

/** Returns a kind of token. `whole` throws `Malformed` if claims of the right form contradict each other. */
function kind<T extends { readonly iss: string }>(typ: string, reader: Reader<T>, check?: (claims: T) => void) {
  const whole = (claims: T) => {
    fits(claims.iss !== "", "it has no issuer");
    check?.(claims);
  };
  return { typ, reader, whole };
}

/** The kinds of tokens, by the `typ` of their header. */
export const tokenKinds = {
  entry: kind("countersign-entry+jwt", entry, (it) => {
    fits((it.version === 0) === (it.parent === null), "exactly version 0 has no parent");
    fits(it.version > 0 || ["auto", "observed"].includes(it.gate.kind), "version 0 cannot be approved or written");
  }),
  receipt: kind("countersign-receipt+jwt", receipt, (it) => {
    fits(it.iat <= it.exp, "exp is before iat");
    fits(it.version > 0, "version 0 cannot be approved");
    fits(it.approvals.length > 0, "it has no approval");
  }),
  denial: kind("countersign-denial+jwt", denial, (it) => fits(it.reviewers.length > 0, "it has no denial")),
  verification: kind("countersign-verification+jwt", verification, (it) => {
    fits(it.iat <= it.exp, "exp is before iat");
    fits(it.fence > 0, "fences count from 1");
  }),
  answer: kind("countersign-interrupt-answer+jwt", answer, (it) => {
    fits(it.approved === (it.decision === "approved"), "approved is not what was decided");
    fits(it.approvals.length > 0 === it.approved, "approvals are those of an approval");
    fits(it.refusals.length > 0 === (it.decision === "denied"), "refusals are those of a denial");
    fits((it.exp !== undefined) === it.approved, "exactly an approval ends");
    fits(it.exp === undefined || it.iat <= it.exp, "exp is before iat");
  }),
  envelope: kind("countersign-envelope+jwt", envelope, (it) => fits(!it.requires.includes(""), "it requires the root")),
  episode: kind("countersign-episode+jwt", episode),
} as const;

export type TokenKind = keyof typeof tokenKinds;
export type Claims<K extends TokenKind> = Read<(typeof tokenKinds)[K]["reader"]>;
