/** Runs the snippets of the adapters unchanged, as programs of their own. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { flow, type Flow } from "../flows.js";
import { Approving, runProgram } from "../programs.js";

let it: Flow;
let approving: Approving;
before(async () => {
  it = await flow();
  approving = new Approving(it);
});
after(() => it.gateway.close());

for (const name of ["ai_sdk", "ai_sdk_pausing", "openai_agents", "langgraph"]) {
  test(`the snippet ${name} runs`, async () => {
    const approved = approving.next();
    const output = await runProgram(new URL(`./snippets/${name}.js`, import.meta.url), { GATE: it.gateway.url, INSTANCE: it.instanceToken });
    await approved;
    assert.match(output, /Result: .*Refunded 40 to c-17\./);
  });
}
