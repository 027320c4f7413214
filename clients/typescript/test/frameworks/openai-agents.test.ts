/** The adapter of the OpenAI Agents SDK with the real package and a scripted model. */

import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";

import { Agent, run as runAgent, RunState, setTracingDisabled, tool } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { guardedTools } from "countersign-gateway/openai-agents";
import { z } from "zod";

import { flow, type Flow } from "../flows.js";
import { scenarios, type ModelCall, type Turn } from "../scenarios.js";
import { codeOf } from "../vectors.js";

setTracingDisabled(true);

scenarios("OpenAI Agents", (options, ran) => {
  function agentOf(run: string, calls: readonly ModelCall[]) {
    const { tool: guarded, decide } = guardedTools(tool, { ...options, run });
    const asked = calls.map((call) => functionCall(call.tool, { ...call.arguments }, { callId: call.id }));
    const model = new ScriptedModel([...(asked.length > 0 ? [asked] : []), [assistantMessage("finished")]]);
    const tools = [
      guarded({
        name: "refund",
        description: "Refunds an amount.",
        parameters: z.object({ amount: z.number() }),
        execute: async ({ amount }) => {
          ran("refund", { amount });
          return `done ${amount}`;
        },
      }),
      guarded({
        name: "search",
        description: "Searches.",
        parameters: z.object({ text: z.string() }),
        execute: async ({ text }) => {
          ran("search", { text });
          return "done";
        },
      }),
    ];
    return { agent: new Agent({ name: "support", model, tools }), model, decide };
  }
  async function turn({ agent, model }: Pick<ReturnType<typeof agentOf>, "agent" | "model">, input: string | RunState<unknown, Agent>): Promise<Turn> {
    const result = await runAgent(agent, input as string);
    if (result.interruptions.length > 0) return { saved: result.state.toString() };
    const items = (model.lastCall?.request.input ?? []) as readonly { type?: string; callId?: string; output?: unknown }[];
    const outputs = items.filter((item) => item.type === "function_call_result");
    return { results: Object.fromEntries(outputs.map((item) => [item.callId ?? "", JSON.stringify(item.output)])) };
  }
  return {
    start: (run, calls) => turn(agentOf(run, calls), "Refund it."),
    async resume(run, saved, approves = false) {
      const made = agentOf(run, []);
      const state = await RunState.fromString<unknown, Agent>(made.agent, saved);
      if (approves) {
        for (const item of state.getInterruptions()) state.approve(item, { alwaysApprove: true });
        return turn(made, state);
      }
      const approved = mock.method(state, "approve");
      await made.decide(state);
      const ids = approved.mock.calls.map((call) => (call.arguments[0].rawItem as { callId: string }).callId);
      const done = await turn(made, state);
      if ("results" in done) for (const id of ids) assert.doesNotMatch(done.results[id] ?? "", /was denied/);
      return done;
    },
  };
});

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

const note = { name: "note", description: "Notes a text.", parameters: z.object({ text: z.string() }), execute: async () => "noted" };

/** A process with an agent whose model calls the tool `issue-refund` with optional arguments, and a tool that the gateway does not guard. */
function refunding(run: string, calls: readonly (readonly [name: string, given: Record<string, unknown>])[]) {
  const ran: unknown[] = [];
  const { tool: guarded, decide } = guardedTools(tool, { requests: it.instance.requests, run, timeout: "10m" });
  const refund = guarded({
    name: "issue-refund",
    description: "Refunds an amount.",
    parameters: z.object({ amount: z.number(), currency: z.string().default("EUR"), reason: z.string().optional() }),
    execute: async (given) => {
      ran.push(given);
      return "done";
    },
  });
  const unguarded = tool({ ...note, needsApproval: true });
  const asked = calls.map(([name, given], at) => functionCall(name, given, { callId: `call-${at}` }));
  const model = new ScriptedModel([...(asked.length > 0 ? [asked] : []), [assistantMessage("finished")]]);
  return { agent: new Agent({ name: "support", model, tools: [refund, unguarded] }), decide, ran };
}

test("a stored call with defaults and empty optional arguments finds its request again", async () => {
  const first = refunding("defaults", [["issue_refund", { amount: 40, reason: null }]]);
  const paused = await runAgent(first.agent, "Refund it.");
  const [request] = paused.interruptions;
  assert.equal(request?.name, "issue_refund");
  const next = refunding("defaults", []);
  const state = await RunState.fromString<unknown, Agent>(next.agent, paused.state.toString());
  const key = { idempotencyKey: "defaults/call-0" };
  const asked = { tool: "issue_refund", arguments: { amount: 40, currency: "EUR" }, timeout: "10m" };
  const { reviewUrl = "" } = await it.instance.requests.create(asked, key);
  await it.ada.vote(reviewUrl, "approve");
  await next.decide(state);
  assert.equal((await runAgent(next.agent, state)).finalOutput, "finished");
  assert.deepEqual(next.ran, [{ amount: 40, currency: "EUR" }]);
});

test("an interruption of another tool is decided by your function, or refused", async () => {
  const { agent, decide } = refunding("others", [["note", { text: "x" }]]);
  const { state } = await runAgent(agent, "Note it.");
  assert.equal(await codeOf(() => decide(state)), "not_guarded");
  const others: string[] = [];
  await decide(state, (item) => {
    others.push(item.name ?? "");
    state.approve(item);
  });
  assert.deepEqual([others, (await runAgent(agent, state)).finalOutput], [["note"], "finished"]);
});

test("a run or a call without a name is refused, because others could have the same", async () => {
  for (const missing of [undefined, null, "", 7]) {
    const { requests } = it.instance;
    assert.equal(await codeOf(() => guardedTools(tool, { requests, run: missing as never })), "invalid_argument", String(missing));
    const made = guardedTools(tool, { requests, run: "r" }).tool(note);
    assert.equal(await codeOf(() => made.needsApproval({} as never, { text: "x" }, missing as never)), "invalid_argument", String(missing));
  }
});

test("a tool with a rule of its own about approval is refused", async () => {
  const { tool: guarded } = guardedTools(tool, { requests: it.instance.requests, run: "rules" });
  for (const needsApproval of [true, async () => false]) {
    assert.equal(await codeOf(async () => guarded({ ...note, needsApproval })), "invalid_argument");
  }
  assert.equal(guarded({ ...note, needsApproval: false }).name, "note");
});
