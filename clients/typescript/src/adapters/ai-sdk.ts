/** Adapter of the Vercel AI SDK (`ai`, version 7). */

import { invalidArgument } from "../errors.js";
import { ToolGuard, type GuardedCall } from "../guard.js";
import { refusal } from "../refusals.js";
import { keysOf, type AdapterOptions } from "./options.js";

export type { AdapterOptions } from "./options.js";

/** A tool of the SDK. */
interface Tool {
  readonly execute?: unknown;
}

type Execute = (input: unknown, options: { readonly toolCallId: string; readonly abortSignal?: AbortSignal }) => unknown;

/** A part of a message. The SDK has further members. */
interface Part {
  readonly type: string;
}

type Approval =
  | { readonly type: "approved" }
  | { readonly type: "user-approval"; readonly reason?: string }
  | { readonly type: "denied"; readonly reason: string };

/** The message with which a run continues. */
export interface ApprovalMessage {
  readonly role: "tool";
  readonly content: { type: "tool-approval-response"; approvalId: string; approved: boolean; reason?: string }[];
}

/** Tools for runs that pause while reviewers decide. */
export interface PausingTools<T> {
  readonly tools: T;
  /** The option `toolApproval` of `generateText`, `streamText` and agents. */
  readonly toolApproval: { readonly [K in keyof T]: (input: unknown, options: { readonly toolCallId: string }) => Promise<Approval> };
  /** Waits for the decisions on the paused calls, and returns the message to append. It throws `still_held` if one is missing. */
  readonly respond: (messages: readonly { readonly role: string; readonly content: unknown }[]) => Promise<ApprovalMessage>;
}

/** Returns the tools behind approvals. Each call waits for its decision inside `execute`. */
export function guardTools<T extends Readonly<Record<string, Tool>>>(tools: T, options: AdapterOptions): T {
  const [guard, keyOf] = [new ToolGuard(options), keysOf(options)];
  const guarded = Object.entries(tools).map(([name, tool]) => [name, guardedTool(name, tool, guard, keyOf)]);
  return Object.fromEntries(guarded) as T;
}

/**
 * Returns the tools behind approvals, for a run that pauses. The SDK's approval parts only pause and resume the run. A
 * call runs only if the gateway approved it, whatever a client's response says.
 */
export function pausingTools<T extends Readonly<Record<string, Tool>>>(tools: T, options: AdapterOptions): PausingTools<T> {
  const [guard, keyOf] = [new ToolGuard(options), keysOf(options)];
  const asking = (tool: string) => async (input: unknown, { toolCallId }: { readonly toolCallId: string }): Promise<Approval> => {
    const request = await guard.ask({ tool, arguments: input, key: keyOf(toolCallId) });
    if (request.status === "approved") return { type: "approved" };
    if (request.status !== "pending") return { type: "denied", reason: refusal(request).message };
    return { type: "user-approval", ...(request.reviewUrl !== undefined && { reason: request.reviewUrl }) };
  };
  return {
    tools: guardTools(tools, { ...options, withinSecs: 0 }),
    toolApproval: Object.fromEntries(Object.keys(tools).map((tool) => [tool, asking(tool)])) as PausingTools<T>["toolApproval"],
    async respond(messages) {
      const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Part[]) : []));
      const content = await Promise.all(openApprovals(parts).map(async ({ approvalId, call }) => {
        const request = await guard.decide({ ...call, key: keyOf(call.key) });
        if (request.status === "pending") throw refusal(request);
        const approved = request.status === "approved";
        return { type: "tool-approval-response" as const, approvalId, approved, ...(!approved && { reason: refusal(request).message }) };
      }));
      return { role: "tool", content };
    },
  };
}

function guardedTool(name: string, tool: Tool, guard: ToolGuard, keyOf: (id: string) => string): Tool {
  const { execute } = tool;
  // Such a tool runs in the client or at the provider of the model, where nothing can guard it.
  if (typeof execute !== "function") throw invalidArgument("tools", `${name} has no execute function`);
  const guarded: Execute = (input, more) => {
    const call: GuardedCall = { tool: name, arguments: input, key: keyOf(more.toolCallId), signal: more.abortSignal };
    return guard.run(call, (approved) => lastOf((execute as Execute).call(tool, approved, more)));
  };
  return { ...tool, execute: guarded };
}

/** Returns the output of a tool. One that streams has run when its stream has ended. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const part of output as AsyncIterable<unknown>) last = part;
  return last;
}

/** Returns the approval requests in a history that have no response, with their calls. */
function openApprovals(parts: readonly Part[]): { approvalId: string; call: GuardedCall & { key: string } }[] {
  const ofType = <T>(type: string) => parts.filter((part) => part.type === type) as unknown as readonly T[];
  const answered = new Set(ofType<{ approvalId: string }>("tool-approval-response").map((part) => part.approvalId));
  const calls = new Map(ofType<{ toolCallId: string; toolName: string; input: unknown }>("tool-call").map((part) => [part.toolCallId, part]));
  const asked = ofType<{ approvalId: string; toolCallId: string }>("tool-approval-request").filter((part) => !answered.has(part.approvalId));
  return asked.map(({ approvalId, toolCallId }) => {
    const found = calls.get(toolCallId);
    if (found === undefined) throw invalidArgument("messages", `the call ${toolCallId} is missing`);
    return { approvalId, call: { tool: found.toolName, arguments: found.input, key: toolCallId } };
  });
}
