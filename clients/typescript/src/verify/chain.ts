/** Checks a thread's chain from version 0: every link, signature and gate. */

import { must, refused } from "../errors.js";
import { isList, isObject, member, type Json } from "../json/value.js";
import { checkEntry, checkReceipt } from "./checks.js";
import type { Entry, Receipt } from "./claims.js";
import { ANY, expects, type Expected } from "./expected.js";
import { transitionDigest } from "./hashes.js";
import type { Keys } from "./keys.js";
import { checkOpening, type Difference } from "./openings.js";
import { readStatement, type Statement } from "./statement.js";

const alwaysHeld: readonly string[] = ["edit", "reaffirm", "rollback"];

/** One version: its statement, its signed entry, and, with an opening, its changes. */
export interface Link {
  readonly transition: string;
  readonly statement: Statement;
  readonly entry: Entry;
  readonly difference: Difference | null;
}

/** A valid chain. It cannot show whether later versions were withheld. */
export class Chain {
  constructor(
    readonly issuer: string,
    readonly thread: string,
    readonly links: readonly Link[],
  ) {}

  /** Returns the version of a transition. */
  link(transition: string): Link {
    const found = this.links.find((it) => it.transition === transition);
    if (found === undefined) throw refused("unknown_transition", "not a transition of this chain");
    return found;
  }

  /** Checks that a receipt approved a transition of this chain. */
  async receipt(token: unknown, keys: Keys): Promise<Receipt> {
    const expected = { issuer: this.issuer, thread: this.thread, transition: ANY, audience: ANY, at: ANY } as const;
    const found = await checkReceipt(token, keys, expected);
    const link = this.link(found.transition);
    for (const name of ["flow", "policy", "version", "parent", "to"] as const) {
      must(found[name] === link.statement[name], `${name}_mismatch`, `receipt and statement differ in ${name}`);
    }
    const gate = link.entry.gate;
    const isItsOwn = gate.kind === "approved" && gate.receipt === found.jti;
    must(isItsOwn, "receipt_mismatch", "the entry was not approved by this receipt");
    return found;
  }
}

/**
 * Checks a whole chain, as `client.chain` returns it or as stored JSON: `{version, transition, statement, entry}` of each
 * version, with `opening` if the reader may see it. State gateway and thread, because another one's chain is valid too.
 */
export async function checkChain(
  entries: readonly unknown[],
  keys: Keys,
  expected: { readonly issuer: Expected<string>; readonly thread: Expected<string> },
): Promise<Chain> {
  must(isList(entries) && entries.length > 0, "chain", "no entries");
  const links: Link[] = [];
  for (const [version, item] of entries.entries()) {
    links.push(await linkOf(item as Json, version, keys));
    checkFollows(links);
  }
  const first = links[0] as Link;
  expects("issuer", expected.issuer, first.entry.iss, "issuer_mismatch");
  expects("thread", expected.thread, first.statement.thread, "thread_mismatch");
  return new Chain(first.entry.iss, first.statement.thread, links);
}

async function linkOf(item: Json, version: number, keys: Keys): Promise<Link> {
  const isWhole =
    isObject(item) && ["version", "transition", "statement", "entry"].every((name) => Object.hasOwn(item, name));
  must(isWhole, "chain", `version ${version} is incomplete`);
  const transition = item["transition"] as string;
  must(item["version"] === version, "chain", `version ${version} is missing or moved`);
  const statement = await readStatement(item["statement"] as Json);
  must((await transitionDigest(item["statement"] as Json)) === transition, "digest_mismatch", "another digest");
  const entry = await checkEntry(item["entry"], keys, { issuer: ANY, transition });
  must(statement.version === version, "version_mismatch", "the statement is of another version");
  for (const name of ["version", "thread", "parent", "policy"] as const) {
    must(entry[name] === statement[name], `${name}_mismatch`, `entry and statement differ in ${name}`);
  }
  const opening = member(item, "opening") ?? null;
  const difference = opening === null ? null : await checkOpening(opening, statement.from, statement.to);
  return { transition, statement, entry, difference };
}

/** Checks the last link against those before it. */
function checkFollows(links: readonly Link[]): void {
  const link = links.at(-1) as Link;
  const before = links.at(-2);
  const { statement, entry } = link;
  const kind = entry.gate.kind;
  if (before !== undefined) checkParent(link, before);
  if (statement.type === "rollback") {
    const isRestored = links.slice(0, -1).some((it) => it.transition === statement.restores);
    must(isRestored, "unknown_transition", "it restores a version that the chain does not have");
  }
  must((kind === "written") === (statement.type === "confirm"), "gate", "exactly a confirm is written");
  must(statement.type !== "fork" || kind === "auto", "gate", "a fork cannot be held");
  must(!alwaysHeld.includes(statement.type) || kind !== "auto", "gate", `a ${statement.type} is always held`);
  must(kind !== "observed" || entry.owes, "owes", "an observed entry requires its own approval");
  if (entry.gate.kind === "written") {
    must(entry.gate.write_id === statement.write_id, "gate", "another write");
    const approved = before?.entry.gate;
    const needed = approved?.kind === "approved" ? approved.receipt : undefined;
    must(entry.gate.receipt === needed, "gate", "written under another receipt, or without the one that it needs");
  }
}

function checkParent(link: Link, before: Link): void {
  const { statement, entry } = link;
  const last = before.statement;
  must(statement.parent === before.transition, "parent_mismatch", "not made on the version before");
  must(statement.from === last.to, "root_mismatch", "does not begin with the state before");
  must(statement.thread === last.thread, "thread_mismatch", "another thread");
  must(statement.flow === last.flow, "flow_mismatch", "another flow");
  must(entry.iss === before.entry.iss, "issuer_mismatch", "another issuer");
  const isSettled = !before.entry.owes || entry.gate.kind === "approved";
  must(entry.owes || isSettled, "owes", "the entry does not require the approval that it needs");
}
