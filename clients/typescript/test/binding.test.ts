/** A peer that answers wrongly gets no write: each forged, mixed-up or changed answer is refused. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, Keys } from "countersign-gateway";

import { approvedChange, flow, type Flow } from "./flows.js";
import { Peer, proxy, reply } from "./peer.js";
import { SigningKey } from "./signing.js";
import { codeOf } from "./vectors.js";

let it: Flow;
let keys: Keys;
let counter = 0;
before(async () => {
  it = await flow();
  keys = await Keys.read(await it.writer.jwks());
});
after(() => it.gateway.close());

type Answer = Record<string, unknown>;
const verificationTyp = "countersign-verification+jwt";

function claimsOf(token: unknown): Record<string, unknown> {
  return JSON.parse(Buffer.from(String(token).split(".")[1] ?? "", "base64url").toString());
}

/** Returns the code with which `verify` refuses a changed answer, with the gateway's keys and without keys. */
async function refusals(change: (answer: Answer) => unknown): Promise<(string | undefined)[]> {
  const peer = await proxy(it.gateway.url, ({ body }) => change(body));
  const writer = new Client({ url: peer.url, token: it.writerToken });
  const found = [];
  try {
    for (const options of [{ keys }, {}]) {
      counter += 1;
      const thread = `order-${counter}`;
      const approved = await approvedChange(it, thread);
      const write = { thread, ...approved, write_id: `write-${counter}`, expect: { "/target_user_id": 42 } };
      found.push(await codeOf(() => writer.verify(write, options)));
    }
  } finally {
    peer.close();
  }
  return found;
}

test("an answer that is forwarded unchanged is a permission", async () => {
  assert.deepEqual(await refusals(() => undefined), [undefined, undefined]);
});

test("an answer about another write, fence, lease or mode is refused", async () => {
  assert.deepEqual(await refusals((it) => (it["write_id"] = "another")), ["write_mismatch", "write_mismatch"]);
  assert.deepEqual(await refusals((it) => (it["fence"] = Number(it["fence"]) + 1)), ["fence_mismatch", "fence_mismatch"]);
  const later = (it: Answer) => (it["lease_expires_at"] = new Date(Date.now() + 600_000).toISOString());
  assert.deepEqual(await refusals(later), ["lease_mismatch", "lease_mismatch"]);
  assert.deepEqual(await refusals((it) => (it["enforced"] = false)), ["enforced_mismatch", "enforced_mismatch"]);
  assert.deepEqual(await refusals((it) => (it["allow"] = false)), ["unexpected_answer", "unexpected_answer"]);
  const changed = (it: Answer) => (it["view"] = { ...(it["view"] as Answer), target_user_id: 43 });
  assert.deepEqual(await refusals(changed), ["expectation_failed", "expectation_failed"]);
});

test("the genuine verification of an earlier write is refused for this one", async () => {
  const thread = "earlier";
  const approved = await approvedChange(it, thread);
  const earlier = await it.writer.verify({ thread, ...approved, write_id: "earlier" }, { keys });
  const mixed = (it: Answer) => (it["verification"] = earlier.verification);
  assert.deepEqual(await refusals(mixed), ["thread_mismatch", "thread_mismatch"]);
});

test("a forged verification is refused with keys", async () => {
  const forger = await SigningKey.make();
  const forged = async (answer: Answer) => {
    answer["verification"] = await forger.sign(verificationTyp, claimsOf(answer["verification"]));
  };
  assert.deepEqual(await refusals(forged), ["unknown_key", undefined]);
  const spoiled = (answer: Answer) => {
    const [header, , signature] = String(answer["verification"]).split(".");
    const claims = Buffer.from(JSON.stringify({ ...claimsOf(answer["verification"]), version: 7 })).toString("base64url");
    answer["verification"] = [header, claims, signature].join(".");
  };
  assert.deepEqual((await refusals(spoiled))[0], "signature_invalid");
});

test("each member that binds the write is compared", async () => {
  const forger = await SigningKey.make();
  const digest = `sha256:${"0".repeat(64)}`;
  for (const [member, value, code] of [
    ["sub", "another", "thread_mismatch"],
    ["transition", digest, "digest_mismatch"],
    ["write_id", "another", "write_mismatch"],
    ["receipt", "AAAAAAAAAAAAAAAAAAAAAA", "receipt_mismatch"],
    ["fence", 99, "fence_mismatch"],
  ] as const) {
    const own = await Keys.read(forger.jwks);
    const peer = await proxy(it.gateway.url, async ({ body }) => {
      body["verification"] = await forger.sign(verificationTyp, { ...claimsOf(body["verification"]), [member]: value });
    });
    const writer = new Client({ url: peer.url, token: it.writerToken });
    counter += 1;
    const thread = `order-${counter}`;
    const write = { thread, ...(await approvedChange(it, thread)), write_id: `write-${counter}` };
    // By the keys of the forger, and without keys.
    for (const options of [{ keys: own }, {}]) assert.equal(await codeOf(() => writer.verify(write, options)), code, member);
    peer.close();
  }
});

test("a lease that is over by the local clock is refused, although it was signed", async () => {
  const forger = await SigningKey.make();
  const own = await Keys.read(forger.jwks);
  const over = { iat: 1_700_000_000, exp: 1_700_000_030 };
  const sign = (token: unknown) => forger.sign(verificationTyp, { ...claimsOf(token), ...over });
  const peer = await proxy(it.gateway.url, async ({ body, headers }) => {
    if (body["verification"] === undefined) headers["countersign-verification"] = await sign(headers["countersign-verification"]);
    else Object.assign(body, { verification: await sign(body["verification"]), lease_expires_at: "2023-11-14T22:13:50.000Z" });
  });
  const write = { thread: "over", ...(await approvedChange(it, "over")), write_id: "over" };
  const writer = new Client({ url: peer.url, token: it.writerToken });
  assert.equal(await codeOf(() => writer.verify(write, { keys: own })), "expired");
  const searching = { tool: "search", arguments: {}, timeout: "10m" };
  const { id } = await it.instance.requests.create(searching, { idempotencyKey: "over" });
  const { requests } = new Client({ url: peer.url, token: it.instanceToken });
  assert.equal(await codeOf(() => requests.consume({ ...searching, id }, { keys: own })), "expired");
  peer.close();
});

test("a reservation of another approval request is refused", async () => {
  const searching = { tool: "search", arguments: {}, timeout: "10m" };
  const [one, other] = [
    await it.instance.requests.create(searching, { idempotencyKey: "one" }),
    await it.instance.requests.create(searching, { idempotencyKey: "other" }),
  ];
  const used = await it.instance.requests.consume(one, { keys });
  const answers: [string, (answer: { body: Answer; headers: Record<string, string> }) => unknown, string][] = [
    ["another id", ({ body }) => (body["id"] = one.id), "request_mismatch"],
    ["another tool", ({ body }) => (body["tool"] = "refund"), "tool_mismatch"],
    ["other arguments", ({ body }) => (body["arguments"] = { amount: 1 }), "arguments_mismatch"],
    ["not used", ({ body }) => delete body["consumption"], "unexpected_answer"],
    ["no reservation", ({ headers }) => delete headers["countersign-verification"], "unexpected_answer"],
    ["another reservation", ({ headers }) => (headers["countersign-verification"] = used.verification), "thread_mismatch"],
  ];
  for (const [name, change, code] of answers) {
    const peer = await proxy(it.gateway.url, change);
    const client = new Client({ url: peer.url, token: it.instanceToken });
    assert.equal(await codeOf(() => client.requests.consume(other, { idempotencyKey: "attempt", keys })), code, name);
    peer.close();
  }
});

test("the recorded answer to an earlier use of the same approval is refused, also with keys", async () => {
  const searching = { tool: "search", arguments: {}, timeout: "10m" };
  const made = await it.instance.requests.create(searching, { idempotencyKey: "recorded" });
  let recorded: { body: Answer; headers: Record<string, string> } | undefined;
  const recorder = await proxy(it.gateway.url, (answer) => void (recorded = structuredClone(answer)));
  await it.gateway.client(it.instanceToken, { url: recorder.url }).requests.consume(made, { idempotencyKey: "first", keys });
  recorder.close();
  const replay = await Peer.start((_, __, response) => reply(response, 200, recorded?.body, {
    "countersign-verification": recorded?.headers["countersign-verification"] ?? "",
  }));
  const { requests } = it.gateway.client(it.instanceToken, { url: replay.url });
  for (const options of [{ keys }, {}]) {
    assert.equal(await codeOf(() => requests.consume(made, options)), "write_mismatch");
    assert.equal(await codeOf(() => requests.consume(made, { ...options, idempotencyKey: "second" })), "write_mismatch");
    assert.equal(await codeOf(() => requests.consume(made, { ...options, idempotencyKey: "first" })), undefined);
  }
  replay.close();
});

test("a decision, an outcome or a request about something else is refused", async () => {
  const { transition } = await approvedChange(it, "decided");
  const other = `sha256:${"1".repeat(64)}`;
  const lying = (change: (body: Answer) => unknown) => proxy(it.gateway.url, ({ body }) => change(body));
  const peers = [
    await lying((body) => (body["transition_digest"] = other)),
    await lying((body) => (body["approved"] = false)),
  ];
  for (const peer of peers) {
    const client = new Client({ url: peer.url, token: it.plannerToken });
    assert.equal(await codeOf(() => client.decision(transition)), "unexpected_answer");
    peer.close();
  }
});
