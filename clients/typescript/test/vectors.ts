/** The published vectors of the protocol, read by the reader under test. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { CountersignError, readJson } from "countersign-gateway/verify";

/** A vector file's content. Its form is that of tests/vectors/README.md. */
export type Vectors = any;

/** The repository, which the check names if the tests are elsewhere. */
export const repository = process.env["REPOSITORY"] ?? fileURLToPath(new URL("../../..", import.meta.url));

/** Reads a file of vectors, with higher limits of depth and length. */
export function load(name: string): Vectors {
  return readJson(readFileSync(`${repository}/tests/vectors/${name}`), { bytesMax: 1 << 24, depthMax: 256 });
}

/** Returns the code of the error that a check throws, or nothing. Any other error is a failure. */
export async function codeOf(check: () => unknown): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof CountersignError) return error.code;
    throw error;
  }
}

/** Applies a JSON Patch, of the operations that the vectors use, to a copy. */
export function patched(document: Vectors, patch: Vectors[]): Vectors {
  const copy = structuredClone(document);
  for (const step of patch) {
    let value = structuredClone(step.value);
    if (step.op === "move" || step.op === "copy") value = structuredClone(place(copy, step.from).found);
    if (step.op === "move" || step.op === "remove") place(copy, step.op === "move" ? step.from : step.path).remove();
    if (step.op !== "remove") place(copy, step.path).put(value, step.op === "replace");
  }
  return copy;
}

function place(document: Vectors, pointer: string) {
  const tokens = pointer.split("/").slice(1).map((it) => it.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = tokens.pop() as string;
  const parent = tokens.reduce((it, token) => it[token], document);
  const index = last === "-" ? parent.length : Number(last);
  return {
    found: parent[last],
    remove: () => (Array.isArray(parent) ? parent.splice(index, 1) : delete parent[last]),
    put: (value: Vectors, replaces: boolean) => {
      if (Array.isArray(parent) && !replaces) parent.splice(index, 0, value);
      else parent[last] = value;
    },
  };
}
