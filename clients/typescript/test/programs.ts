/** Runs programs to their end, while a reviewer approves. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import type { Flow } from "./flows.js";

/** Runs a program to its end, and returns its output. */
export async function runProgram(program: URL, environment: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", fileURLToPath(program)], { env: { ...process.env, ...environment } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(code, 0, `${program.pathname}: ${output}`);
  return output;
}

/** The reviewer ada, who approves each review once. */
export class Approving {
  private readonly decided = new Set<string>();

  constructor(private readonly flow: Flow) {}

  /** Approves the first review that opens. */
  async next(): Promise<void> {
    const { auditor, ada, gateway } = this.flow;
    for await (const event of auditor.followEvents({ signal: AbortSignal.timeout(60_000) })) {
      if (event.type !== "transition.held" || this.decided.has(event.id)) continue;
      this.decided.add(event.id);
      return ada.vote(`${gateway.site}/reviews/${String(event.data["review"])}`, "approve");
    }
  }
}
