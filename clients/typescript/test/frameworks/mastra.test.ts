/** The adapter of Mastra with the real package and a scripted model. */

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";

import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createDurableAgent } from "@mastra/core/agent/durable";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { type ApprovalRequest, CountersignError, type GuardOptions } from "countersign-gateway";
import { guardCreateTool } from "countersign-gateway/mastra";
import { z } from "zod";

import { flow, type Flow } from "../flows.js";
import { runProgram } from "../programs.js";
import { scenarios, type ModelCall, type Turn } from "../scenarios.js";
import { codeOf } from "../vectors.js";
import { forMastra, scripted } from "./language-model.js";
import { processOf, storageOf, textOf, toolsOf, turnOf } from "./mastra-agent.js";

scenarios("Mastra", (options, ran) => ({
  async start(runId, calls) {
    const made = processOf(toolsOf(options, ran), calls);
    return turnOf(made, await made.agent.generate("Refund it.", { runId }));
  },
  async resume(runId, saved, approves = false) {
    const made = processOf(toolsOf(options, ran), [], await storageOf(saved));
    return turnOf(made, await (approves ? made.agent.approveToolCallGenerate({ runId }) : made.agent.resumeGenerate({}, { runId })));
  },
}));

scenarios("Mastra, streams", (options, ran) => {
  async function turn(made: ReturnType<typeof processOf>, output: Awaited<ReturnType<Agent["stream"]>>): Promise<Turn> {
    await output.consumeStream();
    return turnOf(made, { finishReason: await output.finishReason });
  }
  return {
    async start(runId, calls) {
      const made = processOf(toolsOf(options, ran), calls);
      return turn(made, await made.agent.stream("Refund it.", { runId, eagerToolExecution: true }));
    },
    async resume(runId, saved, approves = false) {
      const made = processOf(toolsOf(options, ran), [], await storageOf(saved));
      return turn(made, await (approves ? made.agent.approveToolCall({ runId }) : made.agent.resumeStream({}, { runId })));
    },
  };
});

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

const refundOf = (amount: number): ModelCall => ({ id: "a", tool: "refund", arguments: { amount } });
const results = (turn: Turn) => ("results" in turn ? turn.results["a"] ?? "" : "the run is suspended");

/** A process with a gateway's guard, the calls that wait, and those that ran. */
function guarding() {
  const [pending, ran]: [ApprovalRequest[], unknown[]] = [[], []];
  const options: GuardOptions = { requests: it.instance.requests, onPending: (request) => pending.push(request) };
  const vote = (verdict: "approve" | "deny") => it.ada.vote(pending[0]?.reviewUrl ?? "", verdict);
  return { options, pending, ran, vote, tools: toolsOf(options, (_, given) => ran.push(given)) };
}

/** A guarded tool of this name and body. */
function refundTool(options: GuardOptions, execute: (given: { amount: number; currency: string }, context: any) => Promise<unknown>) {
  const inputSchema = z.object({ amount: z.number().transform((amount) => amount * 2), currency: z.string().default("EUR") });
  return { refund: guardCreateTool(createTool, options)({ id: "refund", description: "Refunds.", inputSchema, execute }) };
}

test("a suspension shows the call with the page of its review, and reviewers see exactly the arguments with which the tool runs", async () => {
  const { options, pending, ran, vote } = guarding();
  const tools = refundTool(options, async (given) => ran.push(given));
  const first = processOf(tools, [refundOf(10)]);
  const output = await first.agent.generate("Refund it.", { runId: "shown" });
  const [request] = pending;
  assert.deepEqual(output.suspendPayload.suspendPayload, { id: request?.id, tool: "refund", arguments: request?.arguments, reviewUrl: request?.reviewUrl });
  await vote("approve");
  const next = processOf(tools, [], await storageOf(await textOf(first.storage)));
  await next.agent.resumeGenerate({}, { runId: "shown" });
  assert.deepEqual(ran, [request?.arguments]);
  assert.equal((ran[0] as { currency: string }).currency, "EUR");
});

test("stored arguments that were edited do not run", async () => {
  const { tools, ran, vote } = guarding();
  const first = processOf(tools, [refundOf(61)]);
  await first.agent.generate("Refund it.", { runId: "edited" });
  await vote("approve");
  const next = processOf(tools, [], await storageOf((await textOf(first.storage)).replaceAll('"amount":61', '"amount":6100')));
  const done = await turnOf(next, await next.agent.resumeGenerate({}, { runId: "edited" }));
  assert.match(results(done), /idempotency_conflict/);
  assert.deepEqual(ran, []);
});

test("a call that is declined in Mastra does not run, and its request is cancelled", async () => {
  const { tools, pending, ran } = guarding();
  const made = processOf(tools, [refundOf(62)]);
  await made.agent.generate("Refund it.", { runId: "declined" });
  const done = await turnOf(made, await made.agent.declineToolCallGenerate({ runId: "declined", reason: "The customer left." }));
  assert.match(results(done), /was declined and did not run\. Do not repeat it with the same arguments\. The reason is: \\?"The customer left/);
  assert.deepEqual(ran, []);
  assert.equal((await it.instance.requests.get(pending[0]?.id ?? "")).status, "cancelled");
});

test("a call that is declined in Mastra does not run, although reviewers approved it, and its approval is used up", async () => {
  const { tools, pending, ran, vote } = guarding();
  const made = processOf(tools, [refundOf(63)]);
  await made.agent.generate("Refund it.", { runId: "declined-late" });
  const saved = await textOf(made.storage);
  await vote("approve");
  const done = await turnOf(made, await made.agent.declineToolCallGenerate({ runId: "declined-late" }));
  assert.match(results(done), /was declined and did not run/);
  assert.deepEqual(ran, []);
  const { outcome } = (await it.instance.requests.get(pending[0]?.id ?? "")).consumption ?? {};
  assert.deepEqual([outcome?.status, outcome?.note], ["failed", "The call was declined in Mastra and did not run."]);
  // A snapshot from before the decline cannot run it.
  const next = processOf(tools, [], await storageOf(saved));
  assert.match(results(await turnOf(next, await next.agent.resumeGenerate({}, { runId: "declined-late" }))), /its outcome is failed/);
  assert.deepEqual(ran, []);
});

test("a call that is declined in Mastra while reviewers deny it, or while the gateway does not answer, says which request is open", async () => {
  const silent = it.gateway.client(it.instanceToken, {
    retries: { attempts: 1 },
    fetch: (input, init) => (init?.method === "DELETE" ? Promise.reject(new TypeError("the connection was lost")) : fetch(input, init)),
  });
  for (const [at, requests] of [it.instance.requests, silent.requests].entries()) {
    const { options, pending, ran, vote } = guarding();
    const made = processOf(toolsOf({ ...options, requests }, (_, given) => ran.push(given)), [refundOf(68 + at)]);
    await made.agent.generate("Refund it.", { runId: `declined-${at}` });
    if (at === 0) await vote("deny");
    const done = await turnOf(made, await made.agent.declineToolCallGenerate({ runId: `declined-${at}` }));
    assert.equal(/Its request may still be open/.test(results(done)), at === 1);
    assert.deepEqual([ran, (await it.instance.requests.get(pending[0]?.id ?? "")).status], [[], at === 0 ? "denied" : "pending"]);
  }
});

test("a run that requires approvals in Mastra too needs both", async () => {
  const { tools, pending, ran, vote } = guarding();
  const made = processOf(tools, [refundOf(64)]);
  await made.agent.generate("Refund it.", { runId: "both", requireToolApproval: true });
  assert.deepEqual(pending, []);
  const again = await made.agent.approveToolCallGenerate({ runId: "both" });
  assert.deepEqual([again.finishReason, pending.length, ran], ["suspended", 1, []]);
  await vote("approve");
  await made.agent.approveToolCallGenerate({ runId: "both" });
  assert.deepEqual(ran, [{ amount: 64 }]);
});

test("the agent of a supervisor is suspended and resumed with it", async () => {
  const { tools, ran, vote } = guarding();
  const support = new Agent({ id: "support", name: "support", description: "Refunds.", instructions: "", model: forMastra(scripted([refundOf(65)])), tools });
  const delegation = { id: "delegation", tool: "agent-support", arguments: { prompt: "Refund it." } } as unknown as ModelCall;
  const chief = new Agent({ id: "chief", name: "chief", instructions: "", model: forMastra(scripted([delegation])), agents: { support } });
  new Mastra({ agents: { chief, support }, storage: new InMemoryStore(), logger: false });
  await chief.generate("Refund it.", { runId: "supervisor" });
  const early = await chief.resumeGenerate({}, { runId: "supervisor" });
  assert.deepEqual([early.finishReason, ran], ["suspended", []]);
  await vote("approve");
  await chief.resumeGenerate({}, { runId: "supervisor" });
  assert.deepEqual(ran, [{ amount: 65 }]);
});

test("a durable agent is suspended and resumed", async () => {
  const { tools, ran, vote } = guarding();
  const support = new Agent({ id: "support", name: "support", instructions: "", model: forMastra(scripted([refundOf(67)])), tools });
  const agent = createDurableAgent({ agent: support });
  new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false });
  const reaches = async (output: { readonly fullStream: unknown }, wanted: string) => {
    for await (const { type } of output.fullStream as AsyncIterable<{ type: string }>) if (type === wanted) return true;
    return false;
  };
  assert.ok(await reaches(await agent.stream("Refund it.", { runId: "durable" }), "tool-call-suspended"));
  assert.ok(await reaches(await agent.approveToolCall({ runId: "durable" }), "tool-call-suspended"));
  assert.deepEqual(ran, []);
  await vote("approve");
  assert.ok(await reaches(await agent.resume("durable", {}), "finish"));
  assert.deepEqual(ran, [{ amount: 67 }]);
});

test("a run continues in another process", async () => {
  const folder = mkdtempSync(`${tmpdir()}/mastra-`);
  const [program, run] = [new URL("./mastra-program.js", import.meta.url), { GATE: it.gateway.url, INSTANCE: it.instanceToken, RUN: "processes", STORE: `${folder}/store` }];
  const review = await runProgram(program, run);
  copyFileSync(`${folder}/store`, `${folder}/old`);
  await it.ada.vote(review.trim(), "approve");
  assert.match(await runProgram(program, run), /^ran refund\n.*done 47/);
  assert.match(await runProgram(program, { ...run, STORE: `${folder}/old` }), /^[^\n]*was run before, and its outcome is succeeded/);
  rmSync(folder, { recursive: true });
});

test("a tool that suspends itself, or fails with the error of another guard, has failed", async () => {
  const bodies = [
    async (_: unknown, { agent }: any) => agent.suspend({}),
    async () => { throw new CountersignError("still_held", { source: "gateway", detail: "Another call waits." }); },
  ];
  for (const [at, body] of bodies.entries()) {
    const { options, pending, vote } = guarding();
    const made = processOf(refundTool(options, body), [refundOf(66)]);
    await made.agent.generate("Refund it.", { runId: `fails-${at}` });
    await vote("approve");
    const done = await turnOf(made, await made.agent.resumeGenerate({}, { runId: `fails-${at}` }));
    assert.match(results(done), /cannot suspend itself|Another call waits/);
    assert.equal((await it.instance.requests.get(pending[0]?.id ?? "")).consumption?.outcome?.status, "failed");
  }
});

test("a call without a run or an id does not run", async () => {
  const { tools, pending, ran } = guarding();
  const call = tools.refund.execute as (given: object, context: unknown) => Promise<unknown>;
  for (const context of [{}, { runId: "r" }, { runId: "r", agent: {} }, { agent: { toolCallId: "a" } }, { workflow: { runId: "r" } }, { runId: 7, agent: { toolCallId: "a" } }, { runId: "r", agent: { toolCallId: 7 } }]) {
    assert.equal(await codeOf(() => call({ amount: 1 }, context)), "invalid_argument");
  }
  assert.deepEqual([pending, ran], [[], []]);
});

test("a definition that suspends or approves by itself, or does not run here, is refused", async () => {
  const guarded = guardCreateTool(createTool, { requests: it.instance.requests }) as (definition: object) => { id: string };
  const definition = { id: "refund", description: "Refunds.", execute: async () => "done" };
  for (const more of [{ requireApproval: true }, { requireApproval: () => false }, { suspendSchema: z.object({}) }, { resumeSchema: z.object({}) }, { execute: undefined }]) {
    assert.equal(await codeOf(() => guarded({ ...definition, ...more })), "invalid_argument", Object.keys(more)[0]);
  }
  assert.equal(guarded({ ...definition, requireApproval: false }).id, "refund");
});
