/** Adapter of the Claude Agent SDK (`@anthropic-ai/claude-agent-sdk`, version 0.3). */

import { ToolGuard } from "../guard.js";
import { keysOf, type AdapterOptions } from "./options.js";

export type { AdapterOptions } from "./options.js";

/** The answer to a request for permission. */
type Permission = { behavior: "allow"; updatedInput: Record<string, unknown> } | { behavior: "deny"; message: string };

/** The options of a session whose tool calls require approval. */
export interface GuardedSession {
  readonly canUseTool: (tool: string, input: Record<string, unknown>, options: { signal: AbortSignal; toolUseID: string }) => Promise<Permission>;
  readonly hooks: {
    PreToolUse: { onFailure: "block"; hooks: (() => Promise<{ hookSpecificOutput: { hookEventName: "PreToolUse"; permissionDecision: "ask" } }>)[] }[];
    PostToolUse: { hooks: ((input: Ended) => Promise<Record<never, never>>)[] }[];
    PostToolUseFailure: { hooks: ((input: Ended) => Promise<Record<never, never>>)[] }[];
  };
}

/** The input of a hook. */
interface Ended {
  readonly hook_event_name: string;
}

/**
 * Returns options of `query` with which each tool call of the session requires approval. A hook sends each call to
 * `canUseTool`, also those that the settings allow. The approval is used before the answer `allow`, and hooks report the
 * outcome. The tool of an MCP server, `mcp__SERVER__TOOL`, is `SERVER:TOOL` in the policy.
 */
export function guardSession(options: AdapterOptions): GuardedSession {
  const [guard, keyOf] = [new ToolGuard(options), keysOf(options)];
  // How each running call ends: with its outcome, which is reported then.
  const running = new Map<string, (isFailure: boolean) => Promise<void>>();
  const ended = async (input: Ended): Promise<Record<never, never>> => {
    const { tool_use_id: id = "" } = input as { tool_use_id?: string };
    const end = running.get(id);
    running.delete(id);
    await end?.(input.hook_event_name !== "PostToolUse");
    return {};
  };
  return {
    canUseTool(name, input, { signal, toolUseID }) {
      return new Promise((answer) => {
        const called = nameOf(name);
        if (called === undefined) {
          answer({ behavior: "deny", message: `${name} can be split into a server and a tool in several ways. Rename one of them.` });
          return;
        }
        // A resumed session makes a new call with another id, so no call finds this request again.
        const call = { ...called, arguments: input, key: keyOf(toolUseID), signal, cancelsOnAbort: true };
        const run = guard.run(call, (approved) => {
          answer({ behavior: "allow", updatedInput: approved });
          return new Promise<void>((succeed, fail) => {
            running.set(toolUseID, (isFailure) => {
              if (isFailure) fail(new Error("the tool failed"));
              else succeed();
              return reported;
            });
          });
        });
        // After the answer `allow`, the other answer changes nothing.
        const reported = run.catch((error: unknown) => answer({ behavior: "deny", message: error instanceof Error ? error.message : String(error) }));
      });
    },
    hooks: {
      // Without this hook, the settings of the session could allow a call.
      PreToolUse: [{ onFailure: "block", hooks: [async () => ({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "ask" } })] }],
      PostToolUse: [{ hooks: [ended] }],
      PostToolUseFailure: [{ hooks: [ended] }],
    },
  };
}

/** Returns the names of a tool and of its server, or nothing if there is more than one possible split. */
function nameOf(name: string): { readonly tool: string; readonly server?: string } | undefined {
  if (!name.startsWith("mcp__")) return { tool: name };
  const rest = name.slice("mcp__".length);
  const splits = Array.from(rest.matchAll(/(?=__)/g), ({ index }) => index);
  const [at = 0] = splits;
  if (splits.length !== 1 || at === 0 || at + 2 === rest.length) return undefined;
  return { server: rest.slice(0, at), tool: rest.slice(at + 2) };
}
