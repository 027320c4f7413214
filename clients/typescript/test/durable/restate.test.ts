/** The guide of durable workflows as it stands, with a real gateway and a real Restate server. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";

import type { ApprovalRequest } from "countersign-gateway";

import { Gateway } from "../gateway.js";
import { proxy, type Peer } from "../peer.js";
import { Reviewer } from "../reviewer.js";
import { until } from "../scenarios.js";
import { block, Engine } from "./engine.js";

const linesMax = 40;
const clientAttempts = 4;
const password = "correct horse battery staple";

let gateway: Gateway;
let engine: Engine;
let ada: Reviewer;
let admin: string;
/** Everything between the worker and the gateway passes through it. */
let between: Peer;
/** Changes an answer to the worker. */
let change: Parameters<typeof proxy>[1] = () => undefined;
/** Refuses a request of the worker. */
let refuse: NonNullable<Parameters<typeof proxy>[2]> = () => undefined;
/** The pages of the pending requests, by their ids. */
const reviews = new Map<string, string>();

before(async () => {
  gateway = await Gateway.start({ COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS: "127.0.0.1" });
  between = await proxy(gateway.url, async (answer, path) => {
    const review = answer.headers["countersign-review"];
    if (review !== undefined) reviews.set(String(answer.body["id"]), review);
    await change(answer, path);
  }, (path) => refuse(path));
  engine = await Engine.start({ GATE: between.url, COUNTERSIGN_DATA: gateway.data });
  await engine.run("init");
  await engine.startWorker();
  await engine.run("connect");
  admin = gateway.addToken("admin");
  ada = await Reviewer.signIn(gateway.site, "ada", password);
  activate('when = "true"', `when = 'tool.arguments.order != "free"'`);
});
after(async () => {
  await engine.close();
  between.close();
  await gateway.close();
});

/** Activates the policy of the guide with a change. */
function activate(before: string, after: string): void {
  const policy = readFileSync(`${engine.folder}/durable.toml`, "utf8");
  assert.ok(policy.includes(before));
  writeFileSync(`${engine.folder}/changed.toml`, policy.replace(before, after));
  gateway.run(["policy", "activate", `${engine.folder}/changed.toml`]);
}

const refund = (order: string, amount: unknown = 40) => engine.call("Refunds/refund", { order, amount });
const wake = (id: string) => engine.call(`WakeUps/request:${id}/decided/send`, {});
const vote = (id: string, verdict: "approve" | "deny", note = "") => ada.vote(reviews.get(id) ?? "", verdict, note);
const requestOf = (id: string): Promise<ApprovalRequest> => gateway.client(engine.token).requests.get(id);
const outcomeOf = async (id: string) => (await requestOf(id)).consumption?.outcome?.status;
/** When the gateway woke a workflow last. */
const arrival = async (): Promise<string> => {
  const response = await fetch(`${gateway.url}/v1/endpoints`, { headers: { authorization: `Bearer ${admin}` } });
  return String(((await response.json()) as { endpoints: { arrived_at: unknown }[] }).endpoints[0]?.arrived_at);
};
const sent = (call: string) => between.seen.filter((it) => it === `POST /aap/v1/requests${call}`).length;

/** Makes calls, and returns the ids of their requests when they wait for reviewers. */
async function held<T>(calls: () => T, count = 1): Promise<{ readonly running: T; readonly ids: string[] }> {
  const known = reviews.size;
  const running = calls();
  await until(() => reviews.size === known + count);
  return { running, ids: Array.from(reviews.keys()).slice(known) };
}
async function heldOne(order: string, amount: unknown = 40): Promise<{ readonly running: Promise<string>; readonly id: string }> {
  const { running, ids } = await held(() => ({ result: refund(order, amount) }));
  return { running: running.result, id: ids[0] ?? "" };
}

test("the script has at most 40 lines", () => {
  assert.ok(block("ts restate").trimEnd().split("\n").length <= linesMax);
});

test("the call of the guide runs once after its approval, and its outcome is reported", async () => {
  const { running, ids: [id = ""] } = await held(() => ({ output: engine.run("call") }));
  await vote(id, "approve");
  assert.equal(await running.output, '"refunded 40.00 of order 7"');
  assert.deepEqual([await outcomeOf(id), sent(`/${id}/outcome`)], ["succeeded", 1]);
});

test("a call that the policy allows runs at once", async () => {
  assert.equal(await refund("free"), "refunded 40.00 of order free");
});

test("a denied call does not run", async () => {
  const { running, id } = await heldOne("denied");
  await vote(id, "deny", "Too much.");
  assert.match(await running, /denied: The call of refund was denied and did not run\. Do not repeat it with the same arguments\. The reason is: "Too much\."/);
  assert.equal(sent(`/${id}/consume`), 0);
});

test("a call that no reviewer decides does not run", async () => {
  activate('ttl = "24h"', 'ttl = "1s"');
  const { running, id } = await heldOne("expired");
  activate('when = "true"', `when = 'tool.arguments.order != "free"'`);
  assert.match(await running, /expired: The call of refund did not run, because no reviewer approved it in time/);
  assert.equal(sent(`/${id}/consume`), 0);
});

test("an approval with other arguments is refused", async () => {
  const { running, id } = await heldOne("edited");
  change = ({ body }, path) => {
    if (path.endsWith("/consume")) body["arguments"] = { order: "edited", amount: 4000 };
  };
  await vote(id, "approve");
  assert.match(await running, /arguments_mismatch/);
  change = () => undefined;
  assert.equal(sent(`/${id}/outcome`), 0);
});

test("a forged wake-up opens nothing", async () => {
  const { running, id } = await heldOne("forged");
  for (let round = 0; round < 3; round += 1) {
    const asked = sent("");
    await wake(id);
    // It asks before and after it listens again.
    await until(() => sent("") >= asked + 1);
  }
  await engine.call("WakeUps/request:unknown/decided/send", {});
  assert.deepEqual([(await requestOf(id)).status, sent(`/${id}/consume`)], ["pending", 0]);
  await vote(id, "approve");
  assert.equal(await running, "refunded 40.00 of order forged");
});

test("a decision before the workflow listens is not lost", async () => {
  change = async ({ body }, path) => {
    if (path !== "/aap/v1/requests" || body["status"] !== "pending") return;
    change = () => undefined;
    const last = await arrival();
    await vote(String(body["id"]), "approve");
    while ((await arrival()) === last) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  assert.equal(await refund("decided early"), "refunded 40.00 of order decided early");
});

test("a replayed wake-up runs nothing twice", async () => {
  const { running, id } = await heldOne("replayed");
  await vote(id, "approve");
  await Promise.all([1, 2, 3].map(() => wake(id)));
  assert.equal(await running, "refunded 40.00 of order replayed");
  await Promise.all([1, 2, 3].map(() => wake(id)));
  // A later call shows that the wake-ups have been handled.
  assert.equal(await refund("free"), "refunded 40.00 of order free");
  assert.deepEqual([sent(`/${id}/consume`), sent(`/${id}/outcome`)], [1, 1]);
});

test("a workflow whose worker was killed while it waits resumes and runs once", async () => {
  const { running, id } = await heldOne("killed while it waits");
  await engine.killWorker();
  await vote(id, "approve");
  await engine.startWorker();
  assert.equal(await running, "refunded 40.00 of order killed while it waits");
  assert.deepEqual([sent(`/${id}/consume`), sent(`/${id}/outcome`)], [1, 1]);
});

test("a call whose worker was killed while it ran is not run again", async () => {
  for (const [killedAt, code] of [["consume", /outcome_unknown/], ["outcome", /already_consumed: .*its outcome is succeeded/]] as const) {
    const { running, id } = await heldOne(`killed at ${killedAt}`);
    const killed = new Promise<void>((resolve) => {
      change = async (_, path) => {
        if (path.endsWith(`/${killedAt}`)) await engine.killWorker().then(resolve);
      };
    });
    await vote(id, "approve");
    await killed;
    change = () => undefined;
    await engine.startWorker();
    assert.match(await running, code);
    assert.equal(sent(`/${id}/outcome`), killedAt === "outcome" ? 1 : 0);
  }
});

test("a call that failed is not run again", async () => {
  const { running, id } = await heldOne("failed", "forty");
  await vote(id, "approve");
  assert.match(await running, /already_consumed: .*its outcome is failed/);
  assert.deepEqual([await outcomeOf(id), sent(`/${id}/outcome`)], ["failed", 1]);
});

test("parallel calls need one approval each", async () => {
  const { running, ids } = await held(() => [1, 2, 3].map(() => refund("parallel")), 3);
  await vote(ids[0] ?? "", "approve");
  await until(() => sent(`/${ids[0]}/outcome`) === 1);
  assert.deepEqual(await Promise.all(ids.map(async (id) => (await requestOf(id)).status)), ["approved", "pending", "pending"]);
  await vote(ids[1] ?? "", "deny");
  await vote(ids[2] ?? "", "approve");
  const results = await Promise.all(running);
  assert.equal(results.filter((result) => result === "refunded 40.00 of order parallel").length, 2);
  assert.equal(results.filter((result) => /was denied/.test(result)).length, 1);
  assert.deepEqual(ids.map((id) => sent(`/${id}/outcome`)), [1, 0, 1]);
});

test("a halt stops an approved call, which runs after the halt", async () => {
  const { running, id } = await heldOne("halted");
  gateway.run(["halt", "set", "durable", "--only", "verifying"]);
  await vote(id, "approve");
  await until(() => sent(`/${id}/consume`) > 0);
  gateway.run(["halt", "lift", "durable"]);
  assert.equal(await running, "refunded 40.00 of order halted");
  assert.equal(sent(`/${id}/outcome`), 1);
});

test("a refusal that passes delays an approved call", async () => {
  for (const [status, code] of [[429, "too_many_requests"], [409, "request_in_progress"]] as const) {
    const { running, id } = await heldOne(code);
    refuse = (path) => (path.endsWith("/consume") ? { status, code } : undefined);
    await vote(id, "approve");
    // The client itself repeats a request. After that, Restate repeats the step.
    await until(() => sent(`/${id}/consume`) > clientAttempts);
    refuse = () => undefined;
    assert.equal(await running, `refunded 40.00 of order ${code}`);
    assert.equal(sent(`/${id}/outcome`), 1);
  }
});

test("a gateway that does not answer delays a call", async () => {
  const { running, id } = await heldOne("delayed");
  await gateway.kill();
  const asked = sent("");
  await wake(id);
  // The client itself repeats a request. After that, Restate repeats the step.
  await until(() => sent("") > asked + clientAttempts);
  await gateway.up();
  await vote(id, "approve");
  assert.equal(await running, "refunded 40.00 of order delayed");
  assert.equal(sent(`/${id}/outcome`), 1);
});
