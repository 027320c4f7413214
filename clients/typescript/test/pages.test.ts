/** Runs the snippets of the README and of the guides unchanged, as programs of their own. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { flow, state, type Flow } from "./flows.js";
import { Approving, runProgram } from "./programs.js";

let it: Flow;
let approving: Approving;
let environment: Record<string, string>;
before(async () => {
  it = await flow();
  approving = new Approving(it);
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

const run = (name: string, more = {}) => runProgram(new URL(`./snippets/${name}.js`, import.meta.url), { ...environment, ...more });
const approveNext = () => approving.next();

test("a tool call is approved and run", async () => {
  const approved = approveNext();
  const output = await run("tool_call");
  await approved;
  assert.match(output, /Waiting for http.*\nRun the tool now, once, with \{ amount: 40, customer: 'c-17' \}/);
});

test("a guarded function is approved and run", async () => {
  const approved = approveNext();
  const output = await run("guard");
  await approved;
  assert.match(output, /Waiting for http.*\nRefunded 40 to c-17\./);
});

test("a change is proposed, approved and written, and its chain is checked", async () => {
  const approved = approveNext();
  await run("write");
  await approved;
  assert.match(await run("offline"), /\[ 'create', 'propose', 'confirm' \]\n\[ '[0-9a-f-]{36}' \]/);
});

test("the guides of agents and writers run", async () => {
  await it.host.createThread("payments", state, { thread: "order-41" });
  const approved = approveNext();
  const output = await run("agent");
  await approved;
  const { transition, receipt } = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  await run("writer", { TRANSITION: transition, RECEIPT: receipt });
  assert.equal((await it.host.thread("order-41")).version, 2);
});
