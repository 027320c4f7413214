/** Adapter of LangGraph.js (`@langchain/langgraph`, version 1). */

import { CountersignError, invalidArgument } from "../errors.js";
import { ToolGuard, type GuardedCall, type GuardOptions } from "../guard.js";
import { keysOf } from "./options.js";
import { pendingCall, type PendingCall } from "./pending.js";

export type { PendingCall } from "./pending.js";

/** Options of the node. */
export interface ToolNodeOptions extends GuardOptions {
  /** Your name of the run, which no other one has. By default, it is the `thread_id` of the graph. */
  readonly run?: string;
}

/** The value of an interrupt: the calls that wait for reviewers. */
export interface PendingCalls {
  readonly pending: readonly PendingCall[];
}

/** A tool of LangChain. */
interface Tool {
  readonly name: string;
  invoke(call: never, config?: never): Promise<unknown>;
}

/** A call in a message of the model. */
interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  readonly id?: string;
}

interface Config {
  readonly configurable?: { readonly thread_id?: unknown };
  readonly signal?: AbortSignal;
}

/**
 * Returns a node that runs the calls of the last message behind approvals, as `ToolNode` runs them without. While
 * reviewers decide, the node is interrupted. Resume the graph with any value: the node asks the gateway again, and waits
 * `withinSecs`, which is 0 by default. The node runs no call before all calls of the message are decided, because
 * LangGraph repeats an interrupted node from its beginning. A guarded tool must not interrupt the graph itself.
 */
export function guardedToolNode(
  interrupt: (value: PendingCalls) => unknown,
  tools: readonly Tool[],
  options: ToolNodeOptions,
  // The framework's types of messages are not imported.
): (state: { readonly messages: readonly any[] }, config?: any) => Promise<any> {
  const guard = new ToolGuard({ withinSecs: 0, ...options });
  return async (state, config: Config = {}) => {
    const calls: readonly ToolCall[] = state.messages.at(-1)?.tool_calls ?? [];
    const known = calls.filter((call) => tools.some((tool) => tool.name === call.name));
    const asked = known.map((call) => guardedCall(call, options, config));
    for (;;) {
      const requests = await Promise.all(asked.map((call) => guard.decide(call)));
      const pending = requests.filter((request) => request.status === "pending");
      if (pending.length === 0) break;
      // It throws, or returns the value of an earlier resume, which decides nothing.
      interrupt({ pending: pending.map(pendingCall) });
    }
    const outputs = await Promise.all(calls.map((call) => output(guard, tools, call, options, config)));
    // A tool can return a command instead of a message.
    return outputs.every(isMessage) ? { messages: outputs } : outputs.map((it) => (isMessage(it) ? { messages: [it] } : it));
  };
}

async function output(guard: ToolGuard, tools: readonly Tool[], call: ToolCall, options: ToolNodeOptions, config: Config): Promise<unknown> {
  const tool = tools.find((it) => it.name === call.name);
  const failed = (content: string) => ({ role: "tool", name: call.name, tool_call_id: call.id, content, status: "error" });
  if (tool === undefined) return failed(`Error: there is no tool ${call.name}.`);
  try {
    return await guard.run(guardedCall(call, options, config), (approved) => tool.invoke({ ...call, args: approved, type: "tool_call" } as never, config as never));
  } catch (error) {
    if (error instanceof CountersignError) return failed(error.message);
    // An interrupt of a tool, or a command for the parent graph.
    if ((error as { is_bubble_up?: boolean } | undefined)?.is_bubble_up === true) throw error;
    return failed(String(error));
  }
}

function guardedCall(call: ToolCall, options: ToolNodeOptions, config: Config): GuardedCall {
  const run = options.run ?? config.configurable?.thread_id;
  if (typeof run !== "string") throw invalidArgument("run", "name the run, or give the graph a thread_id");
  if (call.id === undefined) throw invalidArgument("messages", `the call of ${call.name} has no id`);
  return { tool: call.name, arguments: call.args, key: keysOf({ run })(call.id), signal: config.signal };
}

function isMessage(output: unknown): boolean {
  return typeof output === "object" && output !== null && "tool_call_id" in output;
}
