/** Scripted models for the snippets: one refund, and then an answer with its result. */

import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { setTracingDisabled } from "@openai/agents";
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from "@openai/agents-core/testing";
import { MockLanguageModelV4 } from "ai/test";

import { forMastra } from "./language-model.js";

setTracingDisabled(true);
const given = { customer: "c-17", amount: 40 };

export const languageModel = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    return {
      content: last?.role === "tool"
        ? [{ type: "text", text: `Result: ${JSON.stringify(last.content)}` }]
        : [{ type: "tool-call", toolCallId: "call-1", toolName: "refund", input: JSON.stringify(given) }],
      finishReason: { unified: last?.role === "tool" ? "stop" : "tool-calls", raw: undefined },
      usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
      warnings: [],
    };
  },
});

export const mastraModel = forMastra(languageModel);

export const agentsModel = new ScriptedModel([
  [functionCall("refund", given, { callId: "call-1" })],
  modelResponder(({ request }) => [assistantMessage(`Result: ${JSON.stringify(request.input)}`)]),
]);

const caller = {
  invoke: async (messages: readonly BaseMessage[]) => {
    const last = messages.at(-1);
    if (last?.type === "tool") return new AIMessage(`Result: ${String(last.content)}`);
    return new AIMessage({ content: "", tool_calls: [{ name: "refund", args: given, id: "call-1" }] });
  },
};

export const chatModel = { bindTools: (_tools: readonly unknown[]) => caller };
