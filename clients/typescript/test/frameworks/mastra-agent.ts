/** Agents of Mastra for the tests, and their storage as a text. */

import assert from "node:assert/strict";

import { Mastra } from "@mastra/core";
import { Agent, type ToolsInput } from "@mastra/core/agent";
import { InMemoryStore, type WorkflowRun } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import type { GuardOptions } from "countersign-gateway";
import { guardCreateTool } from "countersign-gateway/mastra";
import { z } from "zod";

import type { Driver, ModelCall, Turn } from "../scenarios.js";
import { forMastra, resultsOf, scripted } from "./language-model.js";

const workflows = async (storage: InMemoryStore) => {
  const store = await storage.getStore("workflows");
  assert.ok(store);
  return store;
};

/** The suspended runs of a process as a text, from which another process continues. */
export const textOf = async (storage: InMemoryStore) => JSON.stringify((await (await workflows(storage)).listWorkflowRuns()).runs);

export async function storageOf(text: string): Promise<InMemoryStore> {
  const storage = new InMemoryStore();
  for (const { workflowName, runId, snapshot } of JSON.parse(text) as WorkflowRun[]) {
    assert.ok(typeof snapshot !== "string");
    await (await workflows(storage)).persistWorkflowSnapshot({ workflowName, runId, snapshot });
  }
  return storage;
}

/** The guarded tools of the scenarios. */
export function toolsOf(options: GuardOptions, ran: Parameters<Driver>[1]) {
  const guarded = guardCreateTool(createTool, options);
  const refund = guarded({
    id: "refund",
    description: "Refunds an amount.",
    inputSchema: z.object({ amount: z.number() }),
    execute: async ({ amount }) => {
      ran("refund", { amount });
      return `done ${amount}`;
    },
  });
  const search = guarded({
    id: "search",
    description: "Searches.",
    inputSchema: z.object({ text: z.string() }),
    execute: async ({ text }) => {
      ran("search", { text });
      return "done";
    },
  });
  return { refund, search };
}

/** A process with an agent. Its suspended runs are only in its storage. */
export function processOf(tools: ToolsInput, calls: readonly ModelCall[], storage = new InMemoryStore()) {
  const model = scripted(calls);
  const agent = new Agent({ id: "support", name: "support", instructions: "Refund it.", model: forMastra(model), tools });
  new Mastra({ agents: { agent }, storage, logger: false });
  return { agent, model, storage };
}

/** Returns the results of a run that has ended, or the storage of a suspended one. */
export async function turnOf({ model, storage }: ReturnType<typeof processOf>, output: { finishReason: string | undefined }): Promise<Turn> {
  return output.finishReason === "suspended" ? { saved: await textOf(storage) } : resultsOf(model);
}
