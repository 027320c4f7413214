/** The package in Deno and Bun, if the check names their programs: in the full matrix. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { flow, type Flow } from "./flows.js";
import { repository } from "./vectors.js";

const smoke = fileURLToPath(new URL("../test/smoke.mjs", import.meta.url));
const runtimes = [
  { name: "Node", program: process.execPath, options: ["--no-warnings"] },
  { name: "Deno", program: process.env["DENO"], options: ["run", "--no-prompt", "--node-modules-dir=manual", "--allow-read", "--allow-net=127.0.0.1"] },
  { name: "Bun", program: process.env["BUN"], options: ["run"] },
];

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

for (const { name, program, options } of runtimes) {
  test(`${name} passes the vectors and makes a request`, { skip: program === undefined && "only in the full matrix" }, async () => {
    const given = [...options, smoke, `${repository}/tests/vectors`, it.gateway.url, it.instanceToken];
    const { stdout } = await promisify(execFile)(program ?? "", given, { timeout: 60_000 });
    assert.match(stdout, /^[1-9][0-9]* vectors passed\n$/);
  });
}
