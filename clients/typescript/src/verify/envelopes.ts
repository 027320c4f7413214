/** Checks signed context envelopes. */

import { CountersignError, invalidArgument, must, refused } from "../errors.js";
import { canonical, canonicalText } from "../json/canonical.js";
import { at as valueAt, isObject, type Json, type JsonObject } from "../json/value.js";
import type { EnvelopeClaims } from "./claims.js";
import { joined, taggedJson, unbase64url, utf8 } from "./encoding.js";
import { ANY, expects, type Expected } from "./expected.js";
import { anyText, anything, count, digest, exactly, exactObject, listOf, moment, nullable, oneOf, pointer, text, type Read } from "./forms.js";
import type { Keys } from "./keys.js";
import { genuine } from "./tokens.js";

const malformed = "envelope_malformed";
// A long text is counted in pieces of this size.
const pieceChars = 16_384;

const sealedForm = exactObject(
  {
    version: count, timestamp: moment, tokenBudget: nullable(count), tokens: count, payload: anything,
    truncated: listOf(exactObject({ pointer, how: oneOf("dropped", "cut") })), transition: digest,
    signature: text,
  },
  { hmac: exactObject({ alg: oneOf("HS256"), epoch: moment, value: anyText }) },
);
type Sealed = Read<typeof sealedForm>;

/** A node's secrets, as `client.nodeSecrets` returns them. */
export interface NodeSecrets {
  readonly secrets: readonly { readonly epoch: string; readonly good_until: string; readonly secret: string }[];
}

/** What is expected of an envelope. */
export interface ExpectedEnvelope {
  readonly issuer: Expected<string>;
  readonly thread: Expected<string>;
  readonly node: Expected<string>;
  /** The version that the thread has reached. A later one is accepted. */
  readonly version: Expected<number>;
  /** Returns whether the payload fits the node's schema. With `ANY` the gateway is trusted, which checks it. */
  readonly fits: Expected<(payload: Json) => boolean>;
  /** Counts tokens by an encoding. With `ANY` the gateway is trusted. */
  readonly count: Expected<(text: string, encoding: string) => number>;
  /** With the node's secrets, an HMAC by one that is valid at `at`, or now, is required. */
  readonly secrets?: Expected<NodeSecrets>;
  readonly at?: Date;
}

/**
 * Checks that a model may receive this envelope: signed for this node of this thread, complete, and within its budget and
 * schema.
 */
export async function checkEnvelope(envelope: unknown, keys: Keys, expected: ExpectedEnvelope): Promise<EnvelopeClaims> {
  const sent = withoutNullHmac(envelope as Json);
  const sealed = exactly(sealedForm, sent, malformed);
  const claims = await signedClaims(sealed, keys);
  expects("issuer", expected.issuer, claims.iss, "issuer_mismatch");
  expects("thread", expected.thread, claims.thread, "thread_mismatch");
  expects("node", expected.node, claims.node, "node_mismatch");
  must(await isItsContent(sealed, claims), "envelope_mismatch", "its content is not the signed content");
  const { version, secrets = ANY } = expected;
  if (secrets !== ANY) await checkHmac(sealed, sent as JsonObject, claims, secrets, expected.at ?? new Date());
  if (version !== ANY) {
    if (typeof version !== "number") throw invalidArgument("version", "state the version of the thread, or ANY");
    must(claims.version >= version, "stale", "the thread has moved on");
  }
  const isComplete = claims.requires.every((pointer) => valueAt(sealed.payload, pointer) !== undefined);
  must(isComplete, "required_missing", "something required is missing");
  checkPayload(sealed, claims, expected);
  must(claims.budget === null || claims.tokens <= claims.budget, "over_budget", "it exceeds the node's budget");
  return claims;
}

/** Removes an HMAC that is null. The gateway leaves out a missing one. */
function withoutNullHmac(envelope: Json): Json {
  if (!isObject(envelope) || envelope["hmac"] !== null) return envelope;
  return Object.fromEntries(Object.entries(envelope).filter(([name]) => name !== "hmac"));
}

async function signedClaims(sealed: Sealed, keys: Keys): Promise<EnvelopeClaims> {
  try {
    return (await genuine("envelope", sealed.signature, keys)).claims;
  } catch (bad) {
    if (bad instanceof CountersignError && bad.code === "receipt_malformed") throw refused(malformed, bad.detail);
    throw bad;
  }
}

async function isItsContent(sealed: Sealed, claims: EnvelopeClaims): Promise<boolean> {
  return (
    sealed.version === claims.version &&
    sealed.timestamp === claims.timestamp &&
    sealed.tokenBudget === claims.budget &&
    sealed.tokens === claims.tokens &&
    sealed.transition === claims.transition &&
    (await taggedJson("countersign.payload.v1", sealed.payload)) === claims.payload &&
    (await taggedJson("countersign.truncated.v1", sealed.truncated)) === claims.truncated
  );
}

function checkPayload(sealed: Sealed, claims: EnvelopeClaims, expected: ExpectedEnvelope): void {
  const { fits, count: counts } = expected;
  if (fits !== ANY) {
    if (typeof fits !== "function") throw invalidArgument("fits", "state a function, or ANY");
    must(fits(sealed.payload) === true, "schema_mismatch", "it does not fit the schema of what the node receives");
  }
  if (counts === ANY) return;
  if (typeof counts !== "function") throw invalidArgument("count", "state a function, or ANY");
  const characters = Array.from(canonicalText(sealed.payload));
  let tokens = 0;
  for (let start = 0; start < characters.length; start += pieceChars) {
    tokens += counts(characters.slice(start, start + pieceChars).join(""), claims.encoding);
  }
  must(tokens === claims.tokens, "tokens_mismatch", "its number of tokens is wrong");
}

/** Checks the HMAC, with a secret that is valid at that time, over the whole envelope. */
async function checkHmac(sealed: Sealed, envelope: JsonObject, claims: EnvelopeClaims, given: NodeSecrets, at: Date) {
  if (!Array.isArray(given?.secrets)) throw invalidArgument("secrets", "state the node's secrets, or ANY");
  const mac = sealed.hmac;
  if (mac === undefined) throw refused("hmac_missing", "it has no HMAC");
  const good = given.secrets.filter((it) => it.epoch === mac.epoch && at.getTime() < Date.parse(it.good_until));
  const secret = good.length === 1 ? good[0]?.secret : undefined;
  if (secret === undefined) throw refused("hmac_expired", "its HMAC uses a secret that is not valid now");
  const raw = secret.startsWith("envsec_") ? unbase64url(secret.slice("envsec_".length)) : undefined;
  if (raw === undefined) throw invalidArgument("secrets", "state the node's secrets, or ANY");
  const bare = Object.fromEntries(Object.entries(envelope).filter(([name]) => name !== "hmac"));
  const message = canonical({ envelope: bare, epoch: mac.epoch, node: claims.node, thread: claims.thread });
  const value = unbase64url(mac.value);
  const signed = joined(utf8("countersign.envelope-mac.v1\0"), message);
  const isGenuine = value !== undefined && (await isHmac(raw, value, signed));
  must(isGenuine, "hmac_mismatch", "its HMAC is not the one of this envelope and its node's secret");
}

/** Returns whether this is the HMAC-SHA-256 of these bytes. WebCrypto compares in constant time. */
export async function isHmac(
  secret: Uint8Array<ArrayBuffer>,
  value: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, value, signed);
}
