/** A statement: all facts of a transition, with null for a member that does not apply. */

import { refused } from "../errors.js";
import type { Json } from "../json/value.js";
import { checkFork, fork, join } from "./branches.js";
import {
  anything, count, digest, exactly, exactObject, fits, Malformed, moment, name, nullable, oneOf, shortCount, type Read,
} from "./forms.js";

const form = exactObject(
  {
    type: oneOf("create", "fork", "propose", "edit", "reaffirm", "rollback", "join", "confirm"),
    flow: name, thread: name, policy: digest, version: count, parent: nullable(digest), node: nullable(name),
    principal: name, proposal: name, attempt: nullable(shortCount), from: digest, to: digest, tool: anything, usage: anything,
    rationale: nullable(digest), supersedes: nullable(digest), restores: nullable(digest), write_id: nullable(name),
    proposed_at: moment,
  },
  { fork, join },
);

/** The object whose hash is a transition's digest. */
export type Statement = Read<typeof form>;

/** Reads a statement as it was sent, or throws. */
export async function readStatement(value: Json): Promise<Statement> {
  const found = exactly(form, value, "statement");
  try {
    checkType(found);
    if (found.fork !== undefined) await checkFork(found.fork, found.thread);
    const joinsItself = found.join?.branches.some((it) => it.thread === found.thread) ?? false;
    fits(!joinsItself, "a branch of a join is the thread itself");
  } catch (bad) {
    if (bad instanceof Malformed) throw refused("statement", bad.message);
    throw bad;
  }
  return found;
}

function checkType(it: Statement): void {
  const isFirst = it.type === "create" || it.type === "fork";
  const members: readonly (readonly [string, boolean, boolean])[] = [
    ["version 0", it.version === 0, isFirst],
    ["no parent", it.parent === null, isFirst],
    ["no node", it.node === null, it.type === "create"],
    ["no attempt", it.attempt === null, isFirst || it.type === "confirm"],
    ["fork", it.fork !== undefined, it.type === "fork"],
    ["join", it.join !== undefined, it.type === "join"],
    ["supersedes", it.supersedes !== null, it.type === "edit"],
    ["restores", it.restores !== null, it.type === "rollback"],
    ["write_id", it.write_id !== null, it.type === "confirm"],
  ];
  for (const [what, has, should] of members) fits(has === should, `${what} does not fit a ${it.type}`);
  fits(it.attempt !== 0, "attempts count from 1");
  fits(it.type !== "reaffirm" || it.from === it.to, "a reaffirmation cannot change the root");
}
