/** Approval requests of tool calls against a real gateway. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Keys, type ApprovalRequest } from "countersign-gateway";
import { ANY, checkReceipt } from "countersign-gateway/verify";

import { flow, type Flow } from "./flows.js";
import { codeOf } from "./vectors.js";

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

const call = { tool: "refund", arguments: { amount: 40 }, timeout: "10m" };

async function held(key: string, amount = 40): Promise<ApprovalRequest & { reviewUrl: string }> {
  const made = await it.instance.requests.create({ ...call, arguments: { amount } }, { idempotencyKey: key });
  assert.equal(made.status, "pending");
  return made as ApprovalRequest & { reviewUrl: string };
}

test("a call is held, approved, used once and reported", async () => {
  const { requests } = it.instance;
  const made = await held("call-1");
  const waiting = requests.wait(made, { withinSecs: 30 });
  await it.ada.vote(made.reviewUrl, "approve");
  const decided = await waiting;
  assert.equal(decided.status, "approved");
  const keys = await Keys.read(await it.instance.jwks());
  const expected = { issuer: ANY, thread: `request:${made.id}`, transition: ANY, audience: "agent", at: ANY } as const;
  const receipt = await checkReceipt(decided.receipt, keys, expected);
  const used = await requests.consume({ ...call, id: made.id }, { keys, idempotencyKey: "attempt-1" });
  assert.deepEqual([used.arguments, used.receipt, used.isSignatureChecked], [{ amount: 40 }, receipt.jti, true]);
  // The same attempt has the same answer, another one is refused.
  assert.equal((await requests.consume(made, { idempotencyKey: "attempt-1" })).write_id, used.write_id);
  assert.equal(await codeOf(() => requests.consume(made)), "already_consumed");
  for (let times = 0; times < 2; times += 1) {
    const reported = await requests.report(used, { status: "succeeded", note: "refund 7" });
    assert.equal(reported.consumption?.outcome?.status, "succeeded");
  }
  assert.equal(await codeOf(() => requests.report(used, { status: "failed" })), "outcome_conflict");
});

test("a denied call and an undecided one cannot be used", async () => {
  const { requests } = it.instance;
  const made = await held("call-2");
  assert.equal(await codeOf(() => requests.consume(made)), "not_approved");
  assert.equal(await codeOf(() => requests.wait(made, { withinSecs: 0.1 })), "still_held");
  await it.ada.vote(made.reviewUrl, "deny", "Too much.");
  const decided = await requests.wait(made, { withinSecs: 30 });
  assert.deepEqual([decided.status, decided.decision?.note], ["denied", "Too much."]);
  assert.equal(await codeOf(() => requests.consume(made)), "not_approved");
});

test("a repeated request is the same, its key belongs to one call, and cancelling ends it", async () => {
  const { requests } = it.instance;
  const made = await held("call-3");
  assert.equal((await held("call-3")).id, made.id);
  assert.equal(await codeOf(() => held("call-3", 41)), "idempotency_conflict");
  assert.equal((await requests.cancel(made)).status, "cancelled");
  assert.equal((await requests.cancel(made)).status, "cancelled");
});

test("a call that the policy allows is approved at once, and the approval of one call opens no other", async () => {
  const { requests } = it.instance;
  const searching = { tool: "search", arguments: {}, timeout: "10m" };
  const made = await requests.create(searching, { idempotencyKey: "call-4" });
  assert.deepEqual([made.status, (await requests.consume(made)).receipt], ["approved", null]);
  const other = await held("call-5");
  await it.ada.vote(other.reviewUrl, "approve");
  await requests.wait(other, { withinSecs: 30 });
  // The job's own call has other arguments than the approved one.
  assert.equal(await codeOf(() => requests.consume({ ...call, arguments: { amount: 4000 }, id: other.id })), "arguments_mismatch");
});
