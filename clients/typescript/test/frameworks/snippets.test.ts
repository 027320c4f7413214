/** Runs the snippets of the adapters unchanged, as programs of their own. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { flow, type Flow } from "../flows.js";
import { scriptedModel } from "./anthropic.js";
import { Approving, runProgram } from "../programs.js";

let it: Flow;
let approving: Approving;
before(async () => {
  it = await flow();
  approving = new Approving(it);
});
after(() => it.gateway.close());

const program = process.env["CLAUDE_CODE"];
test("the snippet claude_agent runs", { skip: program === undefined && "only in the full matrix" }, async () => {
  const [home, results]: [string, Record<string, string>] = [mkdtempSync(`${tmpdir()}/claude-`), {}];
  const model = await scriptedModel([{ id: "call-1", tool: "refund", arguments: { customer: "c-17", amount: 40 } }], results);
  // The SDK finds Claude Code in its own package.
  const place = `${dirname(fileURLToPath(import.meta.resolve("@anthropic-ai/claude-agent-sdk")))}-${process.platform}-${process.arch}`;
  mkdirSync(place, { recursive: true });
  rmSync(`${place}/claude`, { force: true });
  symlinkSync(program ?? "", `${place}/claude`);
  const approved = approving.next();
  await runProgram(new URL("./snippets/claude_agent.js", import.meta.url), {
    GATE: it.gateway.url, INSTANCE: it.instanceToken, HOME: home, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  });
  await approved;
  assert.match(results["call-1"] ?? "", /Refunded 40 to c-17\./);
  model.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

for (const name of ["ai_sdk", "ai_sdk_pausing", "openai_agents", "langgraph", "mastra"]) {
  test(`the snippet ${name} runs`, async () => {
    const approved = approving.next();
    const output = await runProgram(new URL(`./snippets/${name}.js`, import.meta.url), { GATE: it.gateway.url, INSTANCE: it.instanceToken });
    await approved;
    assert.match(output, /Result: .*Refunded 40 to c-17\./);
  });
}
