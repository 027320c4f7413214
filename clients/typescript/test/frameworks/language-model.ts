/** A scripted model of the Vercel AI SDK, which Mastra accepts too. */

import type { MastraModelConfig } from "@mastra/core/llm";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";

import type { ModelCall, Turn } from "../scenarios.js";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };

/** A model that makes the calls, and then answers. It keeps the results that it gets. */
export function scripted(calls: readonly ModelCall[]): MockLanguageModelV4 {
  const asked = calls.map((call) => ({ type: "tool-call" as const, toolCallId: call.id, toolName: call.tool, input: JSON.stringify(call.arguments) }));
  const reason = (asks: boolean) => ({ unified: asks ? ("tool-calls" as const) : ("stop" as const), raw: undefined });
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const asks = prompt.at(-1)?.role !== "tool";
      return { content: asks ? asked : [{ type: "text" as const, text: "finished" }], finishReason: reason(asks), usage, warnings: [] };
    },
    doStream: async ({ prompt }) => {
      const asks = prompt.at(-1)?.role !== "tool";
      const text = [{ type: "text-start" as const, id: "t" }, { type: "text-delta" as const, id: "t", delta: "finished" }, { type: "text-end" as const, id: "t" }];
      const end = { type: "finish" as const, usage, finishReason: reason(asks) };
      return { stream: simulateReadableStream({ chunks: [{ type: "stream-start" as const, warnings: [] }, ...(asks ? asked : text), end] }) };
    },
  });
}

/** Returns the model for Mastra, which has the types of another version. */
export const forMastra = (model: MockLanguageModelV4) => model as unknown as MastraModelConfig;

/** Returns the results that the model got for its calls. */
export function resultsOf({ doGenerateCalls, doStreamCalls }: MockLanguageModelV4): Turn {
  const { prompt = [] } = [...doGenerateCalls, ...doStreamCalls].at(-1) ?? {};
  const parts = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
  const results = parts.flatMap((part) => (part.type === "tool-result" ? [[part.toolCallId, JSON.stringify(part.output)] as const] : []));
  return { results: Object.fromEntries(results) };
}
