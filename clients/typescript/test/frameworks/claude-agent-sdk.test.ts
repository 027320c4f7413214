/** The adapter of the Claude Agent SDK: its callbacks with the types of the real package, and sessions of Claude Code. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";

import type { Options, PermissionMode } from "@anthropic-ai/claude-agent-sdk";
import type { ApprovalRequest, Client } from "countersign-gateway";
import { guardSession } from "countersign-gateway/claude-agent-sdk";
import { z } from "zod";

import { flow } from "../flows.js";
import { scenarios, until, type Driver, type ModelCall, type Turn } from "../scenarios.js";
import { codeOf } from "../vectors.js";
import { scriptedModel } from "./anthropic.js";

scenarios("Claude Agent SDK, callbacks", (options, ran) => ({
  async start(run, calls) {
    const session: Pick<Required<Options>, "canUseTool" | "hooks"> = guardSession({ ...options, run });
    const results = calls.map(async (call) => {
      const given = { signal: new AbortController().signal, toolUseID: call.id, requestId: call.id };
      const answer = await session.canUseTool(`mcp__crm__${call.tool}`, { ...call.arguments }, given);
      if (answer?.behavior !== "allow") return answer?.message ?? "";
      ran(call.tool, answer.updatedInput ?? {});
      const common = { session_id: "s", transcript_path: "", cwd: "", tool_name: call.tool, tool_input: {}, tool_use_id: call.id };
      const input = { ...common, hook_event_name: "PostToolUse" as const, tool_response: "" };
      await session.hooks.PostToolUse?.[0]?.hooks[0]?.(input, call.id, given);
      return `done ${call.arguments.amount}`;
    });
    const found = await Promise.all(results);
    return { results: Object.fromEntries(calls.map((call, at) => [call.id, found[at] ?? ""])) };
  },
}));

test("a name with several splits into a server and a tool is denied", async () => {
  const { canUseTool } = guardSession({ requests: undefined as unknown as Client["requests"], run: "r" });
  for (const name of ["mcp__a__b__c", "mcp__a___b", "mcp__a__", "mcp____a", "mcp__a"]) {
    const answer = await canUseTool(name, {}, { signal: new AbortController().signal, toolUseID: "t" });
    assert.ok(answer.behavior === "deny" && /split/.test(answer.message), name);
  }
});

test("a run or a call without a name is refused, because others could have the same", async () => {
  const requests = undefined as unknown as Client["requests"];
  const { signal } = new AbortController();
  for (const missing of [undefined, null, "", 7]) {
    assert.equal(await codeOf(() => guardSession({ requests, run: missing as never })), "invalid_argument", String(missing));
    const { canUseTool } = guardSession({ requests, run: "r" });
    assert.equal(await codeOf(() => canUseTool("refund", { amount: 1 }, { signal, toolUseID: missing as never })), "invalid_argument", String(missing));
  }
});

test("a session that is aborted ends the request of its call", async () => {
  const it = await flow();
  const pending: ApprovalRequest[] = [];
  const session = guardSession({ requests: it.instance.requests, run: "aborted", onPending: (request) => pending.push(request) });
  const stop = new AbortController();
  const answer = session.canUseTool("mcp__crm__refund", { amount: 40 }, { signal: stop.signal, toolUseID: "t" });
  await until(() => pending.length === 1);
  stop.abort();
  assert.equal((await answer).behavior, "deny");
  assert.equal((await it.instance.requests.get(pending[0]?.id ?? "")).status, "cancelled");
  await it.gateway.close();
});

const program = process.env["CLAUDE_CODE"];

/** Sessions of Claude Code with a scripted model. `mode` are settings that would allow each call. */
const sessions = (mode: PermissionMode): Driver => (options, ran) => ({
  async start(run: string, calls: readonly ModelCall[]): Promise<Turn> {
    const sdk = await import("@anthropic-ai/claude-agent-sdk");
    const [folder, results]: [string, Record<string, string>] = [mkdtempSync(`${tmpdir()}/claude-`), {}];
    const model = await scriptedModel(calls, results);
    const made = (name: "refund" | "search") =>
      sdk.tool(name, "A tool.", { amount: z.number().optional(), text: z.string().optional() }, async (given) => {
        ran(name, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
        return { content: [{ type: "text", text: `done ${given.amount}` }] };
      });
    const session = sdk.query({
      prompt: "Go.",
      options: {
        ...guardSession({ ...options, run }),
        mcpServers: { crm: sdk.createSdkMcpServer({ name: "crm", tools: [made("refund"), made("search")] }) },
        allowedTools: ["mcp__crm__refund", "mcp__crm__search"],
        permissionMode: mode,
        allowDangerouslySkipPermissions: mode === "bypassPermissions",
        settingSources: [],
        cwd: folder,
        pathToClaudeCodeExecutable: program ?? "",
        env: {
          PATH: process.env["PATH"], HOME: folder, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          // Claude Code refuses to bypass permissions as root otherwise.
          IS_SANDBOX: "1",
        },
      },
    });
    for await (const message of session) if (message.type === "result" && message.is_error) throw new Error(JSON.stringify(message));
    model.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    return { results };
  },
});

if (program !== undefined) {
  scenarios("Claude Code, allowed tools", sessions("default"));
  scenarios("Claude Code, bypassed permissions", sessions("bypassPermissions"));
}
