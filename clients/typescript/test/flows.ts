/** The flows of the tests: the payments example with a client for each role, and one of tools. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";

import type { Client, Held, JsonObject } from "countersign-gateway";

import { Gateway } from "./gateway.js";
import type { Reviewer } from "./reviewer.js";
import { repository } from "./vectors.js";

export const state: JsonObject = {
  raw_text: "Please refund 10 EUR.",
  requested_action: "none",
  target_user_id: 17,
  payment: { amount: 10, currency: "EUR", card: "4111111111111111" },
};

export const toolsPolicy = `
flow = "refunds"
[nodes.agent]
reads = []
writes = []
writer = true
[tools]
allow = ["search", "refund", "issue_refund", "crm:search", "crm:refund"]
[[rules]]
name = "refunds"
tools = ["refund", "issue_refund", "crm:refund"]
when = "true"
then = "hold"
reason = "A person approves each refund."
[approval]
[[approval.stages]]
groups = ["finance"]
`;

export interface Flow {
  readonly gateway: Gateway;
  readonly host: Client;
  readonly planner: Client;
  readonly writer: Client;
  readonly auditor: Client;
  readonly instance: Client;
  readonly instanceToken: string;
  readonly writerToken: string;
  readonly plannerToken: string;
  readonly ada: Reviewer;
}

/** A gateway with both flows. */
export async function flow(settings: Record<string, string> = {}): Promise<Flow> {
  const gateway = await Gateway.start(settings);
  gateway.run(["policy", "activate", `${repository}/examples/payments/policy.toml`]);
  const folder = mkdtempSync(`${tmpdir()}/policy-`);
  writeFileSync(`${folder}/refunds.toml`, toolsPolicy);
  gateway.run(["policy", "activate", `${folder}/refunds.toml`]);
  rmSync(folder, { recursive: true });
  const client = (role: string, bound = {}) => gateway.client(gateway.addToken(role, bound));
  const [instanceToken, writerToken, plannerToken] = [
    gateway.addToken("instance", { flow: "refunds", node: "agent" }),
    gateway.addToken("writer", { flow: "payments", node: "database_writer" }),
    gateway.addToken("agent", { flow: "payments", node: "planner" }),
  ];
  return {
    gateway,
    host: client("host", { flow: "payments" }),
    planner: gateway.client(plannerToken),
    auditor: client("auditor"),
    writer: gateway.client(writerToken),
    instance: gateway.client(instanceToken),
    instanceToken,
    writerToken,
    plannerToken,
    ada: await gateway.reviewer("ada", "finance"),
  };
}

/** Proposes a change of a protected key on a new thread. */
export async function heldChange(flow: Flow, thread: string, user = 42): Promise<Held> {
  const made = await flow.host.createThread("payments", state, { thread });
  const change = { node: "planner", parent: made.transition, patch: { target_user_id: user, requested_action: "refund" } };
  const found = await flow.planner.propose(thread, change);
  if (found.outcome !== "held") throw new Error("it was not held");
  return found;
}

/** A change that ada approved, with its receipt. */
export async function approvedChange(flow: Flow, thread: string): Promise<{ transition: string; receipt: string }> {
  const held = await heldChange(flow, thread);
  await flow.ada.vote(held.review.url, "approve");
  const decision = await flow.planner.wait(held.transition, { withinSecs: 30 });
  if (decision.receipt == null) throw new Error("no receipt");
  return { transition: held.transition, receipt: decision.receipt };
}
