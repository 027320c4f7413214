/** Signed data of a wrong form, beyond the published vectors. Each is refused with the code of the gateway's own reader. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";

import {
  ANY, canonical, checkChain, checkEntry, checkEnvelope, checkOpening, checkReceipt, commitment, Keys, readJsonText, tagged, thumbprint, transitionDigest,
  type ExpectedEnvelope, type Json,
} from "countersign-gateway/verify";

import { SigningKey } from "./signing.js";
import { codeOf, load, patched, type Vectors } from "./vectors.js";

const [claims, statements, envelopes] = [load("claims.json"), load("statements.json"), load("envelopes.json")];
const any = { issuer: ANY, thread: ANY, transition: ANY, audience: ANY, at: ANY } as const;
const [receiptType, entryType] = ["countersign-receipt+jwt", "countersign-entry+jwt"];
const noDays = ["2026-02-30T00:00:00.000Z", "2026-02-29T00:00:00.000Z", "2026-04-31T00:00:00.000Z", "2026-11-02T24:00:00.000Z", "+010000-01-01T00:00:00.000Z"];

/** Returns the code with which a well-signed token is refused. `change` is a JSON Patch on whole claims. */
async function refusalOf(typ: string, change: Vectors[]): Promise<string | undefined> {
  const key = await SigningKey.make();
  const keys = await Keys.read(key.jwks);
  const token = await key.sign(typ, patched(claims.whole[typ], change));
  return codeOf(() => (typ === receiptType ? checkReceipt(token, keys, any) : checkEntry(token, keys, any)));
}

const replaced = (path: string, value: unknown) => [{ op: "replace", path, value }];
const proposed = () => statements.cases.find((it: Vectors) => it.statement.type === "propose").statement;

test("a time on a day that does not exist is refused", async () => {
  for (const day of noDays) {
    assert.equal(await refusalOf(receiptType, replaced("/approvals/0/at", day)), "receipt_malformed", day);
    assert.equal(await refusalOf(entryType, replaced("/committed_at", day)), "receipt_malformed", day);
    assert.equal(await codeOf(() => transitionDigest({ ...proposed(), proposed_at: day })), "statement", day);
    assert.equal(await codeOf(() => check({ timestamp: day }, { timestamp: day })), "envelope_malformed", day);
  }
  for (const day of ["2024-02-29T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
    assert.equal(await refusalOf(entryType, replaced("/committed_at", day)), undefined, day);
  }
});

test("a stage or an attempt of more than 32 bits is refused", async () => {
  for (const [number, isRefused] of [[2 ** 32 - 1, false], [2 ** 32, true], [Number.MAX_SAFE_INTEGER, true]] as const) {
    assert.equal(await refusalOf(receiptType, replaced("/approvals/0/stage", number)), isRefused ? "receipt_malformed" : undefined);
    assert.equal(await codeOf(() => transitionDigest({ ...proposed(), attempt: number })), isRefused ? "statement" : undefined);
  }
});

const payload = { x: "hello world" };

/** Checks an envelope, with these changes of its claims and members, without the secrets of its node. */
async function check(changedClaims: object, changed: object = {}): Promise<unknown> {
  const key = await SigningKey.make();
  const { hmac: _hmac, signature: _signature, ...whole } = envelopes.genuine[0].envelope;
  const envelope = { ...whole, payload, ...changed };
  const signed = {
    iss: "https://countersign.example", thread: envelopes.thread, node: envelopes.node, version: envelope.version, transition: envelope.transition,
    timestamp: envelope.timestamp, budget: envelope.tokenBudget, tokens: envelope.tokens, encoding: "o200k_base", requires: ["/x"],
    payload: await tagged("countersign.payload.v1", canonical(payload)), truncated: await tagged("countersign.truncated.v1", canonical(envelope.truncated)),
    ...changedClaims,
  };
  const expected: ExpectedEnvelope = { issuer: ANY, thread: envelopes.thread, node: envelopes.node, version: ANY, fits: ANY, count: ANY };
  const signature = await key.sign("countersign-envelope+jwt", signed);
  return checkEnvelope({ ...envelope, signature }, await Keys.read(key.jwks), expected);
}

test("a path of an envelope that is no JSON Pointer is refused", async () => {
  assert.equal(await codeOf(() => check({}, { truncated: [{ pointer: "/a~1b", how: "dropped" }] })), undefined);
  for (const path of ["x", "x/y", "/~", "/~2", ""]) {
    assert.equal(await codeOf(() => check({ requires: [path] })), "envelope_malformed", `required ${path}`);
  }
  for (const path of ["x", "/~", 7, null]) {
    assert.equal(await codeOf(() => check({}, { truncated: [{ pointer: path, how: "dropped" }] })), "envelope_malformed", `truncated ${path}`);
  }
});

test("an HMAC of another form is refused, also without the secrets of the node", async () => {
  const hmac = { alg: "HS256", epoch: "2026-11-02T00:00:00.000Z", value: "AAAA" };
  assert.equal(await codeOf(() => check({}, { hmac })), undefined);
  for (const changed of [{ value: 7 }, { value: null }, { epoch: noDays[0] }, { alg: "none" }]) {
    assert.equal(await codeOf(() => check({}, { hmac: { ...hmac, ...changed } })), "envelope_malformed", JSON.stringify(changed));
  }
});

/** A published key of these bytes. */
const published = async (raw: Uint8Array, more = {}) => ({
  kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", countersign_use: "chain", status: "signing", kid: await thumbprint(raw),
  x: Buffer.from(raw).toString("base64url"), ...more,
});

test("a set with an issuer that no gateway can have is refused", async () => {
  const { keys } = (await SigningKey.make()).jwks as Vectors;
  for (const issuer of [null, "", "a b", "é", "x".repeat(257), 7]) assert.equal(await codeOf(() => Keys.read({ issuer, keys })), "jwks", String(issuer));
  assert.equal((await Keys.read({ issuer: "https://countersign.example", keys })).issuer, "https://countersign.example");
  assert.equal((await Keys.read({ keys })).issuer, undefined);
});

test("a set with a malformed key of any use is refused, and a key of other software is ignored", async () => {
  const { keys: [own] } = (await SigningKey.make()).jwks as Vectors;
  const other = ((await SigningKey.make()).jwks as Vectors).keys[0];
  const point = (first: number) => Uint8Array.of(first, ...new Uint8Array(31));
  for (const use of ["chain", "log", "webhook"]) {
    const read = (key: object) => codeOf(() => Keys.read({ keys: [own, { ...key, countersign_use: use }] }));
    assert.equal(await read(other), undefined, use);
    for (const wrong of [{ kid: "x" }, { x: "AAAA" }, { status: "lost" }, { d: "x" }, { kid: own.kid, x: own.x }]) {
      assert.equal(await read({ ...other, ...wrong }), "jwks", `${use} ${JSON.stringify(wrong)}`);
    }
    // The neutral element, a point of order 4, one that is not canonical, and one that is not on the curve.
    for (const raw of [point(1), point(0), new Uint8Array(32).fill(255), point(7)]) assert.equal(await read(await published(raw)), "jwks", `${use} ${raw}`);
  }
  for (const foreign of [{ kty: "RSA", n: "x", e: "AQAB" }, { ...other, countersign_use: "login" }, { ...other, use: "enc", kid: "x" }]) {
    assert.equal(await codeOf(() => Keys.read({ keys: [own, foreign] })), undefined);
  }
  assert.equal(await codeOf(() => Keys.read({ keys: [own, { kty: "RSA", d: "x" }] })), "jwks");
});

test("a key of another use signs no tokens", async () => {
  const key = await SigningKey.make();
  const [own] = (key.jwks as Vectors).keys;
  const token = await key.sign(receiptType, claims.whole[receiptType]);
  for (const [use, code] of [["chain", undefined], ["log", "unknown_key"], ["webhook", "unknown_key"]] as const) {
    const keys = await Keys.read({ keys: [{ ...own, countersign_use: use }] });
    assert.equal(await codeOf(() => checkReceipt(token, keys, any)), code, use);
  }
});

test("claims are checked before the key and the signature", async () => {
  const [key, other] = [await SigningKey.make(), await SigningKey.make()];
  const whole = claims.whole[receiptType];
  const [own, strange] = [await Keys.read(key.jwks), await Keys.read(other.jwks)];
  // Of another form, and in contradiction to each other.
  for (const changed of [{ exp: "soon" }, { iss: "" }, { iat: whole.exp + 1 }]) {
    const token = await key.sign(receiptType, { ...whole, ...changed });
    const forged = token.slice(0, token.lastIndexOf(".") + 1) + Buffer.alloc(64, 1).toString("base64url");
    for (const keys of [own, strange]) {
      for (const it of [token, forged]) assert.equal(await codeOf(() => checkReceipt(it, keys, any)), "receipt_malformed");
    }
  }
});

test("a version of an export with a member of another kind is no version", async () => {
  const [chain, jwks] = [load("export/chain.json"), load("export/jwks.json")];
  const keys = await Keys.read(jwks);
  const codeWith = (patch: Vectors[]) => codeOf(() => checkChain(patched(chain, patch).entries, keys, any));
  for (const member of ["version", "transition", "statement", "entry"]) {
    assert.equal(await codeWith([{ op: "remove", path: `/entries/1/${member}` }]), "chain", member);
    assert.equal(await codeWith(replaced(`/entries/1/${member}`, null)), "chain", member);
  }
  for (const [member, value] of [["version", "1"], ["transition", 7], ["transition", "sha256:AB"], ["entry", { jws: "x" }]] as const) {
    assert.equal(await codeWith(replaced(`/entries/1/${member}`, value)), "chain", member);
  }
  assert.equal(await codeWith(replaced("/entries/1", "x")), "chain");
  assert.equal(await codeWith(replaced("/entries/1/statement", "x")), "statement");
  // The form of the opening is checked before anything is computed.
  assert.equal(await codeWith([...replaced("/entries/1/opening/from", "x"), ...replaced("/entries/1/entry", "a.b.c")]), "opening");
});

test("a gate that fits neither the type nor what the parent requires has the code of the type", async () => {
  const key = await SigningKey.make();
  const keys = await Keys.read(key.jwks);
  const versions = load("export/chain.json").entries.slice(0, 2);
  const codeWith = async (gate: object) => {
    const signed = await Promise.all(versions.map(async ({ version, transition, statement }: Vectors) => {
      const { thread, parent, policy, proposed_at: committed_at } = statement;
      const gated = version === 0 ? { gate: { kind: "observed" }, owes: true } : { gate, owes: false };
      const entry = await key.sign(entryType, { iss: "https://countersign.example", thread, version, transition, parent, policy, committed_at, ...gated });
      return { version, transition, statement, entry };
    }));
    return codeOf(() => checkChain(signed, keys, any));
  };
  assert.equal(await codeWith({ kind: "written", write_id: "w" }), "gate");
  assert.equal(await codeWith({ kind: "auto" }), "owes");
});

const bare = `sha256:${"a".repeat(64)}`;

test("a node without a root has the code of another root, and one of no known form another code", async () => {
  const salt = Buffer.alloc(32).toString("base64url");
  for (const node of [{ object: {} }, { array: [] }, { value: [1], salt }, { value: { a: 1 }, salt }, { object: { a: { array: [] } } }]) {
    assert.equal(await codeOf(() => checkOpening({ from: node, to: bare } as Json, bare, bare)), "root_mismatch", JSON.stringify(node));
    // The form of both sides comes first.
    assert.equal(await codeOf(() => checkOpening({ from: node, to: "x" } as Json, bare, bare)), "opening", JSON.stringify(node));
  }
  for (const node of [null, 7, [], "sha256:AB", {}, { object: [] }, { array: {} }, { value: 1 }, { value: 1, salt: "AA" }, { value: 1, salt, x: 1 }]) {
    assert.equal(await codeOf(() => checkOpening({ from: node, to: bare } as Json, bare, bare)), "opening", JSON.stringify(node));
  }
});

test("a text of too many levels is refused with a code, whatever its limit is", async () => {
  const text = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`;
  assert.equal(await codeOf(() => readJsonText(text(64))), undefined);
  assert.equal(await codeOf(() => readJsonText(text(66))), "too_deep");
  assert.equal(await codeOf(() => readJsonText(text(1000), { depthMax: 1000 })), undefined);
  assert.equal(await codeOf(() => readJsonText(text(50_000), { depthMax: 60_000 })), "too_deep");
});

test("an opening of too many levels is refused with a code", async () => {
  let node: Json = bare;
  for (let level = 0; level < 20_000; level += 1) node = level % 2 === 0 ? { object: { a: node } } : { array: [node] };
  assert.equal(await codeOf(() => checkOpening({ from: node, to: bare }, bare, bare)), "too_deep");
  assert.equal(await codeOf(() => commitment(node)), "too_deep");
});
