/** Openings: the shown parts of two trees, their roots, and all differences. */

import { must, refused } from "../errors.js";
import { canonical, isSame } from "../json/canonical.js";
import { isList, isObject, member, type Json, type JsonObject } from "../json/value.js";
import { joined, tagged, taggedJson, unbase64url } from "./encoding.js";

const saltBytes = 32;

/** A leaf that differs. A side that is left out is absent, which is not null. */
export interface Change {
  readonly pointer: string;
  readonly before?: Json;
  readonly after?: Json;
}

/** Everything that differs between two states. A `hidden` path was changed, or set to its old value. */
export interface Difference {
  readonly changed: readonly Change[];
  /** Leaves that were set to the value that they had. */
  readonly setAgain: readonly { readonly pointer: string; readonly value: Json }[];
  readonly hidden: readonly string[];
}

/** A node with its commitment. */
interface Tree {
  readonly root: string;
  readonly kind: "bare" | "leaf" | "object" | "array";
  readonly members: ReadonlyMap<string, Tree>;
  readonly value: Json;
  readonly salt: string;
}

interface Found {
  readonly changed: Change[];
  readonly setAgain: { pointer: string; value: Json }[];
  readonly hidden: string[];
}

/** Computes the commitment of an opening's node from its shown parts. */
export async function commitment(node: Json): Promise<string> {
  return (await tree(node)).root;
}

/** Checks that an opening is one of these two roots, and returns everything that differs. */
export async function checkOpening(opening: Json, fromRoot: string, toRoot: string): Promise<Difference> {
  if (!isObject(opening) || Object.keys(opening).sort().join() !== "from,to") throw refused("opening", "not from and to");
  const before = await tree(opening["from"] as Json);
  const after = await tree(opening["to"] as Json);
  must(before.root === fromRoot, "root_mismatch", "from opens another state");
  must(after.root === toRoot, "root_mismatch", "to opens another state");
  const found: Found = { changed: [], setAgain: [], hidden: [] };
  compare(found, "", before, after);
  return found;
}

async function tree(node: Json): Promise<Tree> {
  const none = { members: new Map<string, Tree>(), value: null, salt: "" };
  if (typeof node === "string") {
    must(/^sha256:[0-9a-f]{64}$/.test(node), "opening", "a commitment in no known form");
    return { ...none, root: node, kind: "bare" };
  }
  const names = isObject(node) ? Object.keys(node).sort().join() : "";
  const part = node as JsonObject;
  if (names === "salt,value") return leaf(part["value"] as Json, part["salt"] as Json);
  const inner = names === "object" || names === "array" ? member(part, names) : undefined;
  if (names === "object" && isObject(inner) && Object.keys(inner).length > 0) {
    const members = await trees(Object.entries(inner));
    const roots = Object.fromEntries(Array.from(members, ([key, it]) => [key, it.root]));
    return { ...none, root: await taggedJson("countersign.object.v1", roots), kind: "object", members };
  }
  if (names === "array" && isList(inner) && inner.length > 0) {
    const members = await trees(inner.map((item, index) => [String(index), item]));
    const roots = Array.from(members.values(), (it) => it.root);
    return { ...none, root: await taggedJson("countersign.array.v1", roots), kind: "array", members };
  }
  throw refused("opening", "a node of no known form");
}

async function trees(entries: readonly (readonly [string, Json])[]): Promise<ReadonlyMap<string, Tree>> {
  const found = new Map<string, Tree>();
  for (const [key, item] of entries) found.set(key, await tree(item));
  return found;
}

async function leaf(value: Json, salt: Json): Promise<Tree> {
  const raw = typeof salt === "string" ? unbase64url(salt) : undefined;
  const isScalar = typeof value !== "object" || value === null || Object.keys(value).length === 0;
  if (raw?.length !== saltBytes || !isScalar) {
    throw refused("opening", "a leaf is a scalar, {} or [], under 32 bytes of salt");
  }
  const root = await tagged("countersign.leaf.v1", joined(raw, canonical(value)));
  return { root, kind: "leaf", members: new Map(), value, salt: salt as string };
}

function compare(found: Found, path: string, before: Tree | undefined, after: Tree | undefined): void {
  if (before === undefined || after === undefined) return replaced(found, path, before, after);
  if (before.root === after.root) return;
  if (before.kind === "bare" || after.kind === "bare") found.hidden.push(path);
  else if (before.kind !== after.kind) replaced(found, path, before, after);
  else if (before.kind === "leaf") compareLeaves(found, path, before, after);
  else {
    for (const token of new Set([...before.members.keys(), ...after.members.keys()])) {
      compare(found, below(path, token), before.members.get(token), after.members.get(token));
    }
  }
}

function compareLeaves(found: Found, pointer: string, before: Tree, after: Tree): void {
  if (isSame(before.value, after.value)) {
    found.setAgain.push({ pointer, value: before.value });
    return;
  }
  must(before.salt !== after.salt, "salt_kept", "a leaf changed under the salt that it had");
  found.changed.push({ pointer, before: before.value, after: after.value });
}

/** Handles a missing side or different kinds: every leaf below, on both sides, differs. */
function replaced(found: Found, path: string, before: Tree | undefined, after: Tree | undefined): void {
  const old = new Map(ends(path, before));
  const fresh = new Map(ends(path, after));
  for (const pointer of new Set([...old.keys(), ...fresh.keys()])) {
    const [left, right] = [old.get(pointer), fresh.get(pointer)];
    if (left !== undefined && right !== undefined) {
      must(left.root !== right.root, "salt_kept", "a leaf kept its salt across a change of kind");
    }
    if (left?.kind === "bare" || right?.kind === "bare") found.hidden.push(pointer);
    else found.changed.push({ pointer, ...(left && { before: left.value }), ...(right && { after: right.value }) });
  }
}

function ends(path: string, from: Tree | undefined): [string, Tree][] {
  if (from === undefined) return [];
  if (from.members.size === 0) return [[path, from]];
  return Array.from(from.members).flatMap(([token, inner]) => ends(below(path, token), inner));
}

function below(path: string, token: string): string {
  return `${path}/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
