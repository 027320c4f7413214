/** Branches in a statement: the origin of a fork, and the branches of a join. */

import { taggedJson } from "./encoding.js";
import { count, digest, exactObject, fits, listOf, Malformed, name, oneOf, type Read } from "./forms.js";

const nameCharsMax = 64;
const branchesMax = 32;

/** Reads the branch's name, and the head that it starts with. */
export const fork = exactObject({ name, thread: name, transition: digest, version: count }, {}, (it) =>
  checkBranchName(it.name),
);

/** Reads the branches of a join, by name, and how their conflicts were settled. */
export const join = exactObject(
  {
    branches: listOf(exactObject({ name, thread: name, transition: digest })),
    strategy: oneOf("union", "last_write", "vote", "confidence", "explicit"),
  },
  {},
  (it) => {
    fits(it.branches.length >= 1 && it.branches.length <= branchesMax, "a join names 1 to 32 branches");
    const names = it.branches.map((branch) => branch.name);
    names.forEach(checkBranchName);
    const inOrder = names.every((found, index) => index === 0 || (names[index - 1] as string) < found);
    fits(inOrder, "each branch is named once, in order");
  },
);

/** Returns the thread of a branch with this name, of that head. */
export async function branchThread(thread: string, transition: string, branch: string): Promise<string> {
  const found = await taggedJson("countersign.branch.v1", [thread, transition, branch]);
  return `branch-${found.slice("sha256:".length, "sha256:".length + 32)}`;
}

/** Checks that a branch's thread follows from its origin. */
export async function checkFork(found: Read<typeof fork>, own: string): Promise<void> {
  if (own === found.thread || own !== (await branchThread(found.thread, found.transition, found.name))) {
    throw new Malformed("the thread is not the one of this branch");
  }
}

function checkBranchName(found: string): void {
  fits(found.length <= nameCharsMax, "a branch's name has at most 64 characters");
}
