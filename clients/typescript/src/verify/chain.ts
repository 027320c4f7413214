/** Checks a thread's chain from version 0: every link, signature and gate. */

import { must, refused } from "../errors.js";
import { isList, member, type Json, type JsonObject } from "../json/value.js";
import { checkEntry, checkReceipt } from "./checks.js";
import type { Entry, Receipt } from "./claims.js";
import { ANY, expects, type Expected } from "./expected.js";
import { anyText, count, digest, exactly, openObject, present } from "./forms.js";
import { transitionDigest } from "./hashes.js";
import type { Keys } from "./keys.js";
import { checkOpening, checkOpeningForm, type Difference } from "./openings.js";
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
    const found = await exported(item as Json);
    must(found.version === version, "chain", `version ${version} is missing or moved`);
    const link = await linkOf(found, keys);
    checkFollows(link, links);
    const { from, to } = link.statement;
    links.push({ ...link, difference: found.opening === null ? null : await checkOpening(found.opening, from, to) });
  }
  const first = links[0] as Link;
  expects("issuer", expected.issuer, first.entry.iss, "issuer_mismatch");
  expects("thread", expected.thread, first.statement.thread, "thread_mismatch");
  return new Chain(first.entry.iss, first.statement.thread, links);
}

/** One version of an export, before its signature is checked. */
interface Exported {
  readonly version: number;
  readonly transition: string;
  /** The statement as it was sent. */
  readonly stated: Json;
  readonly statement: Statement;
  readonly entry: string;
  readonly opening: Json;
}

const form = openObject({ version: count, transition: digest, statement: present, entry: anyText });

async function exported(item: Json): Promise<Exported> {
  const { version, transition, statement: stated, entry } = exactly(form, item, "chain");
  const statement = await readStatement(stated);
  const opening = member(item as JsonObject, "opening") ?? null;
  if (opening !== null) checkOpeningForm(opening);
  return { version, transition, stated, statement, entry, opening };
}

/** Checks one version by itself: its entry is signed over its statement, and its gate fits it. */
async function linkOf({ version, transition, stated, statement, entry: token }: Exported, keys: Keys): Promise<Link> {
  must((await transitionDigest(stated)) === transition, "digest_mismatch", "another digest");
  const entry = await checkEntry(token, keys, { issuer: ANY, transition });
  must(statement.version === version, "version_mismatch", "the statement is of another version");
  for (const name of ["version", "thread", "parent", "policy"] as const) {
    must(entry[name] === statement[name], `${name}_mismatch`, `entry and statement differ in ${name}`);
  }
  const { gate } = entry;
  must((gate.kind === "written") === (statement.type === "confirm"), "gate", "exactly a confirm is written");
  must(statement.type !== "fork" || gate.kind === "auto", "gate", "a fork cannot be held");
  must(!alwaysHeld.includes(statement.type) || gate.kind !== "auto", "gate", `a ${statement.type} is always held`);
  must(gate.kind !== "written" || gate.write_id === statement.write_id, "gate", "another write");
  must(gate.kind !== "observed" || entry.owes, "owes", "an observed entry requires its own approval");
  return { transition, statement, entry, difference: null };
}

/** Checks a version against those before it. */
function checkFollows(link: Link, earlier: readonly Link[]): void {
  const { statement, entry } = link;
  const before = earlier.at(-1);
  if (before !== undefined) checkParent(link, before);
  if (statement.type === "rollback") {
    const isRestored = earlier.some((it) => it.transition === statement.restores);
    must(isRestored, "unknown_transition", "it restores a version that the chain does not have");
  }
  if (entry.gate.kind === "written") {
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
