/** The claims of each kind of token, exactly. */

import {
  byKind, count, digest, exactObject, fits, flag, jti, listOf, moment, name, nullable, oneOf, text, type Read, type Reader,
} from "./forms.js";

const vote = exactObject({ reviewer: name, stage: count, at: moment }, { for: name });
const approval = exactObject(
  { reviewer: name, stage: count, at: moment, method: oneOf("password", "oidc", "passkey_session", "passkey") },
  { evidence: digest, for: name },
);
const gate = byKind({
  auto: exactObject({ kind: oneOf("auto") }),
  observed: exactObject({ kind: oneOf("observed") }),
  approved: exactObject({ kind: oneOf("approved"), review: name, receipt: jti }),
  written: exactObject({ kind: oneOf("written"), write_id: name }, { receipt: jti }),
});

const entry = exactObject(
  {
    iss: text, thread: name, version: count, transition: digest, parent: nullable(digest), gate, owes: flag,
    policy: digest, committed_at: moment,
  },
  {},
  (it) => {
    fits((it.version === 0) === (it.parent === null), "exactly version 0 has no parent");
    fits(it.version > 0 || ["auto", "observed"].includes(it.gate.kind), "version 0 cannot be approved or written");
  },
);

const envelope = exactObject({
  iss: text, thread: name, node: name, version: count, transition: digest, timestamp: moment, budget: nullable(count),
  tokens: count, encoding: oneOf("o200k_base", "cl100k_base"), requires: listOf(text), payload: digest, truncated: digest,
});

const receipt = exactObject(
  {
    iss: text, sub: name, aud: listOf(name), jti, iat: count, nbf: count, exp: count, flow: name, policy: digest,
    transition: digest, parent: digest, version: count, to: digest, approvals: listOf(approval),
  },
  {},
  (it) => {
    fits(it.iat <= it.exp, "exp is before iat");
    fits(it.version > 0, "version 0 cannot be approved");
    fits(it.approvals.length > 0, "it has no approval");
  },
);

const denial = exactObject(
  {
    iss: text, sub: name, jti, iat: count, flow: name, policy: digest, transition: digest, parent: digest, review: name,
    outcome: oneOf("denied"), reviewers: listOf(vote),
  },
  {},
  (it) => fits(it.reviewers.length > 0, "it has no denial"),
);

const verification = exactObject(
  {
    iss: text, sub: name, aud: name, iat: count, exp: count, write_id: name, fence: count, flow: name, policy: digest,
    transition: digest, version: count, to: digest, receipt: nullable(jti), enforced: flag,
  },
  {},
  (it) => {
    fits(it.iat <= it.exp, "exp is before iat");
    fits(it.fence > 0, "fences count from 1");
  },
);

const answer = exactObject(
  {
    iss: text, sub: name, aud: name, jti, iat: count, flow: name, policy: digest, asserted: digest,
    decision: oneOf("approved", "denied", "expired", "superseded"), approved: flag, interrupt_id: text,
    transition_digest: text, approvals: listOf(approval), refusals: listOf(vote),
  },
  { exp: count },
  (it) => {
    fits(it.approved === (it.decision === "approved"), "approved is not what was decided");
    fits(it.approvals.length > 0 === it.approved, "approvals are those of an approval");
    fits(it.refusals.length > 0 === (it.decision === "denied"), "refusals are those of a denial");
    fits((it.exp !== undefined) === it.approved, "exactly an approval ends");
    fits(it.exp === undefined || it.iat <= it.exp, "exp is before iat");
  },
);

const episode = exactObject({ iss: text, episode: name, iat: count, manifest: digest });

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

/** The kinds of tokens, by the `typ` of their header. */
export const tokenKinds = {
  entry: { typ: "countersign-entry+jwt", reader: entry },
  receipt: { typ: "countersign-receipt+jwt", reader: receipt },
  denial: { typ: "countersign-denial+jwt", reader: denial },
  verification: { typ: "countersign-verification+jwt", reader: verification },
  answer: { typ: "countersign-interrupt-answer+jwt", reader: answer },
  envelope: { typ: "countersign-envelope+jwt", reader: envelope },
  episode: { typ: "countersign-episode+jwt", reader: episode },
} as const satisfies Readonly<Record<string, { typ: string; reader: Reader<unknown> }>>;

export type TokenKind = keyof typeof tokenKinds;
export type Claims<K extends TokenKind> = Read<(typeof tokenKinds)[K]["reader"]>;
