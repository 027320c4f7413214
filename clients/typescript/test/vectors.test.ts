/** Each published vector, by this package's own reading of the protocol. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";

import {
  ANY, branchThread, canonicalText, checkAnswer, checkDenial, checkEntry, checkEpisode, checkOpening, checkReceipt,
  checkVerification, commitment, Keys, manifestDigest, policyDigest, readJson, tagged, thumbprint, transitionDigest,
} from "countersign-gateway/verify";

import { SigningKey } from "./signing.js";
import { codeOf, load, type Vectors } from "./vectors.js";

const any = {
  issuer: ANY, thread: ANY, transition: ANY, audience: ANY, write_id: ANY, episode: ANY, manifest: ANY, at: ANY,
} as const;

/** A check of the token itself, that expects nothing of its content. */
const checks: Record<string, (token: unknown, keys: Keys) => Promise<unknown>> = {
  "countersign-entry+jwt": (token, keys) => checkEntry(token, keys, any),
  "countersign-receipt+jwt": (token, keys) => checkReceipt(token, keys, any),
  "countersign-denial+jwt": (token, keys) => checkDenial(token, keys, any),
  "countersign-verification+jwt": (token, keys) => checkVerification(token, keys, any),
  "countersign-interrupt-answer+jwt": (token, keys) => checkAnswer(token, keys, any),
  "countersign-episode+jwt": (token, keys) => checkEpisode(token, keys, any),
};

function checked(typ: string, token: unknown, keys: Keys): Promise<unknown> {
  const check = checks[typ];
  if (check === undefined) throw new Error(`no check of ${typ}`);
  return check(token, keys);
}

/** Runs each case, and names the one that fails. A file without cases is a failure. */
async function each(cases: Vectors[], run: (it: Vectors) => Promise<void>): Promise<void> {
  assert.ok(cases.length > 0);
  for (const it of cases) {
    try {
      await run(it);
    } catch (error) {
      throw new Error(`the case ${JSON.stringify(it.name ?? it.code ?? it)}`, { cause: error });
    }
  }
}

test("json.json: texts have their canonical form or their code", async () => {
  await each(load("json.json").cases, async (it) => {
    const raw = "base64" in it ? Buffer.from(it.base64, "base64") : Buffer.from(it.text);
    const limits = { ...(it.limits?.bytes_max && { bytesMax: it.limits.bytes_max }), ...(it.limits?.depth_max && { depthMax: it.limits.depth_max }) };
    const found = () => canonicalText(readJson(raw, limits));
    if ("code" in it) assert.equal(await codeOf(found), it.code);
    else assert.equal(found(), it.canonical);
  });
});

test("statements.json, branches.json: statements have their digest, incomplete ones none", async () => {
  const [statements, branches] = [load("statements.json"), load("branches.json")];
  await each([...statements.cases, ...branches.statements], async (it) => {
    assert.equal(canonicalText(it.statement), it.jcs);
    assert.equal(await transitionDigest(it.statement), it.digest);
  });
  await each([...statements.refused, ...branches.refused], async (it) => {
    assert.equal(await codeOf(() => transitionDigest(it.statement)), "statement");
  });
  await each(branches.names, async (it) => {
    assert.equal(await branchThread(it.thread, it.transition, it.name), it.branch);
  });
});

test("policies.json, hashes.json, commitments.json: digests, hashes, names of keys and commitments", async () => {
  await each(load("policies.json").cases, async (it) => assert.equal(await policyDigest(it.policy, it.schemas), it.digest));
  const hashes = load("hashes.json");
  await each(hashes.cases, async (it) => assert.equal(await tagged(it.tag, Buffer.from(it.text)), it.hash));
  await each(hashes.thumbprints, async (it) => {
    assert.equal(await thumbprint(Buffer.from(it.x, "base64url")), it.thumbprint);
  });
  const leaves = load("commitments.json").cases.flatMap((it: Vectors) => it.leaves);
  await each(leaves, async (it) => assert.equal(await commitment({ value: it.value, salt: it.salt }), it.commitment));
});

const inOrder = (found: readonly unknown[]) => found.map(canonicalText).sort();

test("openings.json: an opening shows all that differs, a spoiled one is refused", async () => {
  const openings = load("openings.json");
  await each(openings.cases, async (it) => {
    const found = await checkOpening(it.opening, it.from_root, it.to_root);
    assert.deepEqual(inOrder(found.changed), inOrder(it.changed));
    assert.deepEqual(inOrder(found.setAgain), inOrder(it.set_again));
    assert.deepEqual([...found.hidden].sort(), [...it.hidden].sort());
  });
  await each(openings.spoiled, async (it) => {
    const code = await codeOf(() => checkOpening(it.opening, it.from_root, it.to_root));
    assert.ok(code === "opening" || code === "root_mismatch", code);
  });
  await each(openings.inconsistent, async (it) => {
    assert.equal(await commitment(it.opening.from), it.from_root);
    assert.equal(await commitment(it.opening.to), it.to_root);
    assert.equal(await codeOf(() => checkOpening(it.opening, it.from_root, it.to_root)), "salt_kept");
  });
});

test("tokens.json: genuine tokens have their claims, others are refused with their code", async () => {
  const tokens = load("tokens.json");
  const keys = await Keys.read(tokens.jwks);
  await each(tokens.genuine, async (it) => {
    assert.deepEqual(canonicalText(await checked(it.typ, it.token, keys)), canonicalText(it.claims));
  });
  await each(tokens.refused, async (it) => {
    assert.equal(await codeOf(async () => checked(it.accept_as, it.token, await Keys.read(it.jwks ?? tokens.jwks))), it.code);
  });
  await each(tokens.could_not_tell, async (it) => {
    assert.equal(await codeOf(() => checked(it.accept_as, it.token, keys)), "could_not_tell");
  });
});

test("claims.json: claims that are not whole are refused although the signature is valid", async () => {
  const claims = load("claims.json");
  const key = await SigningKey.make();
  const keys = await Keys.read(key.jwks);
  for (const [typ, whole] of Object.entries<Vectors>(claims.whole)) await checked(typ, await key.sign(typ, whole), keys);
  await each(claims.refused, async (it) => {
    const spoiled = { ...claims.whole[it.typ], ...it.with };
    delete spoiled[it.without];
    assert.equal(await codeOf(async () => checked(it.typ, await key.sign(it.typ, spoiled), keys)), "receipt_malformed");
  });
});

test("the digest of a manifest covers everything except its signer", async () => {
  const bare = { schema_version: "manifest/1.0", episode_id: "order-7", files: [] };
  const digest = await manifestDigest(bare);
  assert.equal(await manifestDigest({ ...bare, signer: { jws: "a.b.c", kid: "k" } }), digest);
  assert.notEqual(await manifestDigest({ ...bare, episode_id: "order-8" }), digest);
});
