/** The adapter of LangGraph.js with the real package and a scripted model. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, interrupt, isInterrupted, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { Client } from "countersign-gateway";
import { guardedToolNode } from "countersign-gateway/langgraph";
import { z } from "zod";

import { scenarios, type ModelCall, type Turn } from "../scenarios.js";
import { codeOf } from "../vectors.js";

/** The checkpoints of a process as a text, from which another process continues. */
const textOf = ({ storage, writes }: MemorySaver) =>
  JSON.stringify({ storage, writes }, (_, value) => (value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value));
function saverOf(text: string): MemorySaver {
  const revive = (_: string, value: { bytes?: string } | null) => (typeof value?.bytes === "string" ? new Uint8Array(Buffer.from(value.bytes, "base64")) : value);
  return Object.assign(new MemorySaver(), JSON.parse(text, revive));
}

scenarios("LangGraph", (options, ran) => {
  function graphOf(calls: readonly ModelCall[], checkpointer: MemorySaver) {
    const refund = tool(
      async ({ amount }) => {
        ran("refund", { amount });
        return `done ${amount}`;
      },
      { name: "refund", schema: z.object({ amount: z.number() }) },
    );
    const search = tool(
      async ({ text }) => {
        ran("search", { text });
        return "done";
      },
      { name: "search", schema: z.object({ text: z.string() }) },
    );
    const model = ({ messages }: typeof MessagesAnnotation.State) => {
      if (messages.at(-1) instanceof ToolMessage) return { messages: [new AIMessage("finished")] };
      return { messages: [new AIMessage({ content: "", tool_calls: calls.map((call) => ({ name: call.tool, args: { ...call.arguments }, id: call.id })) })] };
    };
    return new StateGraph(MessagesAnnotation)
      .addNode("model", model)
      .addNode("tools", guardedToolNode(interrupt, [refund, search], options))
      .addEdge(START, "model")
      .addConditionalEdges("model", ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : END), ["tools", END])
      .addEdge("tools", "model")
      .compile({ checkpointer });
  }
  async function turn(run: string, calls: readonly ModelCall[], saver: MemorySaver, input: { messages: string } | Command): Promise<Turn> {
    const result = await graphOf(calls, saver).invoke(input as never, { configurable: { thread_id: run } });
    if (isInterrupted(result)) return { saved: textOf(saver) };
    const messages = (result as { messages: BaseMessage[] }).messages.filter((message) => message instanceof ToolMessage);
    return { results: Object.fromEntries(messages.map((message) => [message.tool_call_id, String(message.content)])) };
  }
  return {
    start: (run, calls) => turn(run, calls, new MemorySaver(), { messages: "Refund it." }),
    // The value of a resume never decides anything.
    resume: (run, saved, approves = false) => turn(run, [], saverOf(saved), new Command({ resume: { approved: approves } })),
  };
});

test("a run or a call without a name is refused, because others could have the same", async () => {
  const requests = undefined as unknown as Client["requests"];
  const refund = tool(async () => "done", { name: "refund", schema: z.object({}) });
  const calling = (id: unknown) => ({ messages: [{ tool_calls: [{ name: "refund", args: {}, id }] }] });
  for (const missing of [undefined, null, "", 7]) {
    const node = guardedToolNode(interrupt, [refund], { requests, run: missing as never });
    assert.equal(await codeOf(() => node(calling("a"), { configurable: {} })), "invalid_argument", String(missing));
    const named = guardedToolNode(interrupt, [refund], { requests, run: "r" });
    assert.equal(await codeOf(() => named(calling(missing))), "invalid_argument", String(missing));
  }
});
