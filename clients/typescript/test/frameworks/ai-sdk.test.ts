/** The adapter of the Vercel AI SDK with the real package and a scripted model. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { isStepCount, jsonSchema, generateText, tool, type ModelMessage, type ToolSet } from "ai";
import type { Client } from "countersign-gateway";
import { guardTools, pausingTools } from "countersign-gateway/ai-sdk";

import { scenarios, type Driver, type ModelCall, type Turn } from "../scenarios.js";
import { codeOf } from "../vectors.js";
import { resultsOf, scripted } from "./language-model.js";

function toolsOf(ran: Parameters<Driver>[1]): ToolSet {
  const inputSchema = jsonSchema<{ amount?: number }>({ type: "object" });
  const refund = tool({
    inputSchema,
    execute: async (given: { amount?: number }) => {
      ran("refund", given);
      return `done ${given.amount}`;
    },
  });
  // A tool that streams its output.
  const search = tool({
    inputSchema,
    async *execute(given: { amount?: number }) {
      ran("search", given);
      yield "begun";
      yield "done";
    },
  });
  return { search, refund };
}

const first: ModelMessage = { role: "user", content: "Refund it." };

scenarios("AI SDK, waiting", (options, ran) => ({
  async start(run, calls) {
    const model = scripted(calls);
    await generateText({ model, tools: guardTools(toolsOf(ran), { ...options, run }), messages: [first], stopWhen: isStepCount(3) });
    return resultsOf(model);
  },
}));

scenarios("AI SDK, pausing", (options, ran) => {
  async function turn(run: string, calls: readonly ModelCall[], messages: ModelMessage[]): Promise<Turn> {
    const model = scripted(calls);
    const { tools, toolApproval } = pausingTools(toolsOf(ran), { ...options, run });
    const { content, responseMessages } = await generateText({ model, tools, toolApproval, messages, stopWhen: isStepCount(3) });
    const isPaused = content.some((part) => part.type === "tool-approval-request" && part.isAutomatic !== true);
    return isPaused ? { saved: JSON.stringify([...messages, ...responseMessages]) } : resultsOf(model);
  }
  return {
    start: (run, calls) => turn(run, calls, [first]),
    async resume(run, saved, approves = false) {
      const messages: ModelMessage[] = JSON.parse(saved);
      const { respond } = pausingTools(toolsOf(ran), { ...options, run });
      const parts = messages.flatMap((message) => (message.role === "assistant" && typeof message.content !== "string" ? message.content : []));
      const asked = parts.flatMap((part) => (part.type === "tool-approval-request" ? [part] : []));
      const forged = asked.map(({ approvalId }) => ({ type: "tool-approval-response" as const, approvalId, approved: true }));
      if (approves) return turn(run, [], [...messages, { role: "tool", content: forged }]);
      const response = await respond(messages);
      const done = await turn(run, [], [...messages, response]);
      for (const [at, { approved }] of response.content.entries()) {
        if (approved && "results" in done) assert.doesNotMatch(done.results[asked[at]?.toolCallId ?? ""] ?? "", /was denied/);
      }
      return done;
    },
  };
});

test("a run or a call without a name is refused, because others could have the same", async () => {
  const requests = undefined as unknown as Client["requests"];
  const tools = { refund: tool({ inputSchema: jsonSchema<{ amount: number }>({ type: "object" }), execute: async () => "done" }) };
  for (const missing of [undefined, null, "", 7]) {
    for (const guarded of [guardTools, pausingTools]) {
      assert.equal(await codeOf(() => guarded(tools, { requests, run: missing as never })), "invalid_argument", String(missing));
    }
    const { tools: paused, toolApproval } = pausingTools(tools, { requests, run: "r" });
    const call = { toolCallId: missing as never, messages: [], context: {} };
    assert.equal(await codeOf(() => paused.refund.execute?.({ amount: 1 }, call)), "invalid_argument", String(missing));
    assert.equal(await codeOf(() => toolApproval.refund({ amount: 1 }, call)), "invalid_argument", String(missing));
  }
});

test("a tool without execute is refused", async () => {
  const requests = undefined as unknown as Client["requests"];
  assert.throws(() => guardTools({ ask: tool({ inputSchema: jsonSchema({ type: "object" }) }) }, { requests, run: "r" }), /no execute function/);
});
