/** Runs the snippets of the README and of the guides unchanged, as programs of their own. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { flow, state, type Flow } from "./flows.js";

let it: Flow;
let environment: Record<string, string>;
before(async () => {
  it = await flow();
  const { gateway } = it;
  environment = {
    GATE: gateway.url,
    HOST: gateway.addToken("host", { flow: "payments" }),
    AGENT: it.plannerToken,
    WRITER: it.writerToken,
    INSTANCE: it.instanceToken,
    AUDITOR: gateway.addToken("auditor"),
  };
});
after(() => it.gateway.close());

/** Runs a snippet to its end, and returns its output. `onOutput` gets each line. */
async function run(name: string, more: Record<string, string> = {}, onOutput?: (line: string) => Promise<void>): Promise<string> {
  const program = fileURLToPath(new URL(`./snippets/${name}.js`, import.meta.url));
  const child = spawn(process.execPath, ["--no-warnings", program], { env: { ...process.env, ...environment, ...more } });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    void onOutput?.(chunk.toString());
  });
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(code, 0, `${name}: ${output}`);
  return output;
}

/** Approves the first review of the flow that opens. */
async function approveNext(): Promise<void> {
  for await (const event of it.auditor.followEvents({ signal: AbortSignal.timeout(60_000) })) {
    if (event.type !== "transition.held" || decided.has(event.id)) continue;
    decided.add(event.id);
    return it.ada.vote(`${it.gateway.site}/reviews/${String(event.data["review"])}`, "approve");
  }
}
const decided = new Set<string>();

test("a tool call is approved and run", async () => {
  const approved = approveNext();
  const output = await run("tool_call");
  await approved;
  assert.match(output, /Waiting for http.*\nRun the tool now, once, with \{ amount: 40, customer: 'c-17' \}/);
});

test("a change is proposed, approved and written, and its chain is checked", async () => {
  const approved = approveNext();
  await run("write");
  await approved;
  assert.match(await run("offline"), /\[ 'create', 'propose', 'confirm' \]/);
});

test("the guides of agents and writers run", async () => {
  await it.host.createThread("payments", state, { thread: "order-17" });
  const approved = approveNext();
  const output = await run("agent");
  await approved;
  const { transition, receipt } = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  await run("writer", { TRANSITION: transition, RECEIPT: receipt });
  assert.equal((await it.host.thread("order-17")).version, 2);
});
