/** Digests over canonical JSON. */

import type { Json, JsonObject } from "../json/value.js";
import { taggedJson } from "./encoding.js";
import { readStatement } from "./statement.js";

/** Returns a transition's digest from its statement, or throws if the statement is incomplete. */
export async function transitionDigest(statement: Json): Promise<string> {
  await readStatement(statement);
  return taggedJson("countersign.transition.v1", statement);
}

/** Returns a policy's digest from its texts. */
export async function policyDigest(policy: string, schemas: Readonly<Record<string, string>>): Promise<string> {
  return taggedJson("countersign.policy.v1", { policy, schemas });
}

/** Returns the digest of a run's manifest that a gateway signs: everything except its `signer`. */
export async function manifestDigest(manifest: JsonObject): Promise<string> {
  return taggedJson("countersign.episode.v1", { ...manifest, signer: null });
}
