/** The adapter of the OpenAI Agents SDK with the real package and a scripted model. */

import assert from "node:assert/strict";
import { mock } from "node:test";

import { Agent, run as runAgent, RunState, setTracingDisabled, tool } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { guardedTools } from "countersign-gateway/openai-agents";
import { z } from "zod";

import { scenarios, type ModelCall, type Turn } from "../scenarios.js";

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
