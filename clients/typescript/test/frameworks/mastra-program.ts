/** Begins a run, or resumes the run in the file STORE, in a process of its own. Prints the result of its call. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { Client } from "countersign-gateway";

import { processOf, storageOf, toolsOf, turnOf } from "./mastra-agent.js";

const { GATE = "", INSTANCE = "", STORE = "", RUN: runId = "" } = process.env;
const { requests } = new Client({ url: GATE, token: INSTANCE });
const options = { requests, onPending: ({ reviewUrl = "" }) => console.log(reviewUrl) };
const isResumed = existsSync(STORE);
const storage = isResumed ? await storageOf(readFileSync(STORE, "utf8")) : undefined;
const tools = toolsOf(options, (tool) => console.log("ran", tool));
const made = processOf(tools, isResumed ? [] : [{ id: "a", tool: "refund", arguments: { amount: 47 } }], storage);
const output = await (isResumed ? made.agent.resumeGenerate({}, { runId }) : made.agent.generate("Refund it.", { runId }));
const turn = await turnOf(made, output);
if ("saved" in turn) writeFileSync(STORE, turn.saved);
else console.log(turn.results["a"]);
