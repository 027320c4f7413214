/** Chains, receipts of a chain and envelopes, by the published vectors. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ANY, checkChain, checkEnvelope, Keys, type Chain, type ExpectedEnvelope, type Json } from "countersign-gateway/verify";

import { codeOf, load, patched, repository, type Vectors } from "./vectors.js";

const any = { issuer: ANY, thread: ANY } as const;

function exported(): Vectors {
  const receipt = readFileSync(`${repository}/tests/vectors/export/receipt.jwt`, "utf8").replace(/\n$/, "");
  return { chain: load("export/chain.json"), jwks: load("export/jwks.json"), receipt };
}

async function checked(held: Vectors): Promise<Chain> {
  const keys = await Keys.read(held.jwks);
  const chain = await checkChain(held.chain.entries, keys, any);
  await chain.receipt(held.receipt, keys);
  return chain;
}

test("the export is valid, with every change", async () => {
  const chain = await checked(exported());
  assert.equal(chain.links.length, load("export/chain.json").entries.length);
  assert.ok(chain.links.every((it) => it.difference !== null));
});

test("exports.json: each spoiled export is refused with its code, and no other", async () => {
  const exports = load("exports.json");
  assert.ok(exports.cases.length >= 70);
  for (const it of exports.cases) {
    assert.equal(await codeOf(() => checked(patched(exported(), it.patch))), it.code, it.name);
  }
  for (const it of exports.accepted) await checked(patched(exported(), it.patch));
});

test("branches.json: the chains of a thread and its branches are valid, a wrong gate is refused", async () => {
  const document = load("branches.json");
  const keys = await Keys.read(document.jwks);
  const { parent, branches } = document.chains;
  for (const entries of [parent, ...Object.values<Vectors>(branches)]) await checkChain(entries, keys, any);
  const gates = document.spoiled.filter((it: Vectors) => it.code === "gate");
  assert.ok(gates.length > 0);
  for (const it of gates) {
    const spoiled = patched(document.chains, it.patch);
    const [, side, name] = it.patch[0].path.split("/");
    const entries = side === "parent" ? spoiled.parent : spoiled.branches[name];
    assert.equal(await codeOf(() => checkChain(entries, keys, any)), "gate", it.name);
  }
});

const envelopes = load("envelopes.json");
const genuine = envelopes.genuine[0].envelope;
const expected: ExpectedEnvelope = {
  issuer: "https://countersign.example",
  thread: envelopes.thread,
  node: envelopes.node,
  version: envelopes.version,
  count: () => genuine.tokens,
  fits: (payload: Json) => JSON.stringify(payload) === JSON.stringify(genuine.payload),
};

const check = async (envelope: Vectors, other: Partial<ExpectedEnvelope> = {}) =>
  checkEnvelope(envelope, await Keys.read(envelopes.jwks), { ...expected, ...other });

test("envelopes.json: genuine envelopes are accepted, spoiled ones are refused with their code", async () => {
  for (const it of envelopes.genuine) assert.equal((await check(it.envelope)).node, envelopes.node);
  for (const it of envelopes.spoiled) assert.equal(await codeOf(() => check(it.envelope)), it.code, it.name);
  assert.equal(await codeOf(() => check(genuine, { fits: () => false })), "schema_mismatch");
});

test("envelopes.json: an HMAC is accepted while its secret is valid", async () => {
  const { hmac } = envelopes;
  const [now, later] = [new Date(hmac.now), new Date(hmac.later)];
  const secrets = hmac.secrets;
  for (const it of hmac.genuine) await check(it.envelope, { secrets, at: now });
  for (const it of hmac.spoiled) assert.equal(await codeOf(() => check(it.envelope, { secrets, at: now })), it.code, it.name);
  assert.equal(await codeOf(() => check(hmac.genuine[0].envelope, { secrets, at: later })), "hmac_expired");
});

test("an expectation that is undefined is refused, and skips no check", async () => {
  for (const name of ["issuer", "thread", "node", "version", "fits", "count"]) {
    const spoiled = { [name]: undefined } as unknown as Partial<ExpectedEnvelope>;
    assert.equal(await codeOf(() => check(genuine, spoiled)), "invalid_argument", name);
  }
});
