/** Every call against a real gateway. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { CountersignError, Keys } from "countersign-gateway";
import { ANY, checkChain, checkEnvelope, checkReceipt } from "countersign-gateway/verify";

import { approvedChange, flow, heldChange, state, type Flow } from "./flows.js";
import { codeOf } from "./vectors.js";

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

test("a change is held, approved, verified, written and confirmed", async () => {
  const { transition, receipt } = await approvedChange(it, "order-1");
  const keys = await Keys.read(await it.writer.jwks());
  const claims = await checkReceipt(receipt, keys, {
    issuer: keys.issuer ?? "", thread: "order-1", transition, audience: "database_writer", at: new Date(),
  });
  assert.equal(claims.approvals.length, 1);
  const write = { thread: "order-1", transition, receipt, write_id: "write-1", expect: { "/target_user_id": 42 } };
  const verified = await it.writer.verify(write, { keys });
  assert.deepEqual(
    [verified.thread, verified.transition, verified.receipt, verified.write_id, verified.isSignatureChecked],
    ["order-1", transition, claims.jti, "write-1", true],
  );
  assert.equal(verified.view["target_user_id"], 42);
  assert.equal((await it.writer.confirm(verified, { result: { result_ref: "row-7" } })).outcome, "confirmed");
  // Another write with the same receipt is refused, with the advice of what to do.
  const second = it.writer.verify({ ...write, write_id: "write-2" }, { keys });
  await assert.rejects(second, (error: CountersignError) => error.status === 403 && error.advice === "look");
});

test("the same proposal has the same outcome, and a rejected one its errors", async () => {
  const held = await heldChange(it, "order-2");
  assert.equal((await heldChange(it, "order-2")).transition, held.transition);
  const made = await it.host.createThread("payments", state, { thread: "order-3" });
  const injected = { node: "planner", parent: made.transition, patch: { is_admin: true } };
  await assert.rejects(it.planner.propose("order-3", injected), (error: CountersignError) => {
    assert.deepEqual([error.status, error.code, error.source], [422, "rejected", "gateway"]);
    assert.equal(error.errors[0]?.pointer, "/is_admin");
    return error.requestId !== undefined;
  });
});

test("a denial is a decision, and a wait that ends leaves the proposal pending", async () => {
  const held = await heldChange(it, "order-4");
  assert.equal(await codeOf(() => it.planner.wait(held.transition, { withinSecs: 0.1 })), "still_held");
  const waiting = it.planner.wait(held.transition, { withinSecs: 30 });
  await it.ada.vote(held.review.url, "deny", "Who is 42?");
  const decision = await waiting;
  assert.deepEqual([decision.approved, decision.decision, decision.comment], [false, "denied", "Who is 42?"]);
  const other = await heldChange(it, "order-5");
  assert.equal((await it.planner.cancel(other.transition, "not needed")).status, "cancelled");
});

test("a wait ends with the caller's signal", async () => {
  const held = await heldChange(it, "order-6");
  const signal = AbortSignal.timeout(300);
  await assert.rejects(it.planner.wait(held.transition, { withinSecs: 30, signal }), { name: "TimeoutError" });
});

test("states, chains and envelopes are read and checked", async () => {
  const made = await it.host.createThread("payments", state, { thread: "order-7" });
  const view = await it.planner.state("order-7", { node: "planner" });
  assert.equal(view.transition, made.transition);
  assert.deepEqual(view.state["payment"], { amount: 10, currency: "EUR" });
  const keys = await Keys.read(await it.auditor.jwks());
  const entries = [];
  for await (const entry of it.auditor.chain("order-7")) entries.push(entry);
  const chain = await checkChain(entries, keys, { issuer: keys.issuer ?? ANY, thread: "order-7" });
  assert.equal(chain.links.length, 1);
  const envelope = await it.planner.envelope("order-7", { node: "planner", hmac: true });
  const secrets = await it.planner.nodeSecrets("payments", "planner");
  const expected = { issuer: ANY, thread: "order-7", node: "planner", version: 0, fits: ANY, count: ANY, secrets } as const;
  assert.equal((await checkEnvelope(envelope, keys, expected)).transition, made.transition);
});

test("events are read to the end, and followed over a restart", async () => {
  const own = await flow();
  try {
    await own.host.createThread("payments", state, { thread: "one" });
    const threads: (string | null | undefined)[] = [];
    let last = 0;
    for await (const event of own.auditor.followEvents()) {
      assert.equal(event.index, last + 1);
      last = event.index;
      if (event.type !== "thread.created") continue;
      threads.push(event.thread);
      if (event.thread === "two") break;
      await own.gateway.kill();
      await own.gateway.up();
      await own.host.createThread("payments", state, { thread: "two" });
    }
    assert.deepEqual(threads, ["one", "two"]);
    const found = [];
    for await (const event of own.auditor.events()) found.push(event.index);
    assert.deepEqual(found.slice(0, last), Array.from({ length: last }, (_, index) => index + 1));
    const stopped = own.auditor.followEvents({ after: found.length, signal: AbortSignal.timeout(200) });
    await assert.rejects(stopped.next(), { name: "TimeoutError" });
  } finally {
    await own.gateway.close();
  }
});

test("a wrong token is unauthenticated, and no message has the token", async () => {
  const client = it.gateway.client("cs_wrong");
  await assert.rejects(client.thread("order-1"), (error: CountersignError) => {
    assert.deepEqual([error.status, error.code], [401, "unauthenticated"]);
    return !JSON.stringify(error, Object.getOwnPropertyNames(error)).includes("cs_wrong");
  });
});
