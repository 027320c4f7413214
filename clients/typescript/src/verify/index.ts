/**
 * Offline verification of everything that the gateway signs, by the published keys.
 *
 *     const keys = await Keys.read(await client.jwks());
 *     const entry = await checkEntry(made.entry, keys, { issuer: ANY, transition: made.transition });
 *
 * A check returns the signed facts. It throws a `CountersignError` with the gateway's code if they do not hold, and with
 * `could_not_tell` if the given data is not enough.
 */

export { CountersignError } from "../errors.js";
export { canonical, canonicalText } from "../json/canonical.js";
export { readJson, readJsonText, type JsonLimits } from "../json/read.js";
export type { Json, JsonObject } from "../json/value.js";
export { branchThread } from "./branches.js";
export { Chain, checkChain, type Link } from "./chain.js";
export { checkAnswer, checkDenial, checkEntry, checkEpisode, checkReceipt, checkVerification } from "./checks.js";
export type { Answer, Denial, Entry, EnvelopeClaims, Episode, Receipt, Verification } from "./claims.js";
export { tagged } from "./encoding.js";
export { checkEnvelope, type ExpectedEnvelope, type NodeSecrets } from "./envelopes.js";
export { ANY, type Expected } from "./expected.js";
export { manifestDigest, policyDigest, transitionDigest } from "./hashes.js";
export { Keys, thumbprint, type Key, type KeyStatus } from "./keys.js";
export { checkOpening, commitment, type Change, type Difference } from "./openings.js";
export { readStatement, type Statement } from "./statement.js";
