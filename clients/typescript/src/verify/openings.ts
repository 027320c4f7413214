/** Openings: the shown parts of two trees, their roots, and all differences. */

import { must, refused } from "../errors.js";
import { canonical, isSame } from "../json/canonical.js";
import { isList, isObject, levelsMax, type Json, type JsonObject } from "../json/value.js";
import { joined, tagged, taggedJson, unbase64url, type Bytes } from "./encoding.js";

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
  checkNode(node, 0);
  return (await tree(node)).root;
}

/** Checks that an opening is one of these two roots, and returns everything that differs. */
export async function checkOpening(opening: Json, fromRoot: string, toRoot: string): Promise<Difference> {
  checkOpeningForm(opening);
  const before = await tree(opening.from);
  const after = await tree(opening.to);
  must(before.root === fromRoot, "root_mismatch", "from opens another state");
  must(after.root === toRoot, "root_mismatch", "to opens another state");
  const found: Found = { changed: [], setAgain: [], hidden: [] };
  compare(found, "", before, after);
  return found;
}

/** Throws unless an opening has two nodes of known forms. Their roots are not computed. */
export function checkOpeningForm(opening: Json): asserts opening is { readonly from: Json; readonly to: Json } {
  if (!isObject(opening) || Object.keys(opening).sort().join() !== "from,to") throw refused("opening", "not from and to");
  checkNode(opening["from"] as Json, 0);
  checkNode(opening["to"] as Json, 0);
}

function checkNode(node: Json, level: number): void {
  if (level > levelsMax) throw refused("too_deep", `more than ${levelsMax} levels`);
  if (typeof node === "string") {
    must(/^sha256:[0-9a-f]{64}$/.test(node), "opening", "a commitment in no known form");
    return;
  }
  const part: JsonObject = isObject(node) ? node : {};
  const names = Object.keys(part).sort().join();
  const { salt, object, array } = part;
  if (names === "salt,value") {
    const raw = typeof salt === "string" ? unbase64url(salt) : undefined;
    must(raw?.length === saltBytes, "opening", "a salt has 32 bytes");
  } else if (names === "object" && isObject(object)) {
    for (const item of Object.values(object)) checkNode(item, level + 1);
  } else if (names === "array" && isList(array)) {
    for (const item of array) checkNode(item, level + 1);
  } else {
    throw refused("opening", "a node of no known form");
  }
}

/** Returns the tree of a node of a known form. Throws if it has no root. */
async function tree(node: Json): Promise<Tree> {
  const none = { members: new Map<string, Tree>(), value: null, salt: "" };
  if (typeof node === "string") return { ...none, root: node, kind: "bare" };
  const { value, salt, object, array } = node as JsonObject;
  if (value !== undefined) return leaf(value, salt as string);
  const isContainer = (found: Json | undefined) => typeof found === "object" && found !== null && Object.keys(found).length > 0;
  must(isContainer(object ?? array), "root_mismatch", "an empty object or array is a leaf with a salt");
  if (isObject(object)) {
    const members = await trees(Object.entries(object));
    const roots = Object.fromEntries(Array.from(members, ([key, it]) => [key, it.root]));
    return { ...none, root: await taggedJson("countersign.object.v1", roots), kind: "object", members };
  }
  const members = await trees((array as readonly Json[]).map((item, index) => [String(index), item]));
  const roots = Array.from(members.values(), (it) => it.root);
  return { ...none, root: await taggedJson("countersign.array.v1", roots), kind: "array", members };
}

async function trees(entries: readonly (readonly [string, Json])[]): Promise<ReadonlyMap<string, Tree>> {
  const found = new Map<string, Tree>();
  for (const [key, item] of entries) found.set(key, await tree(item));
  return found;
}

async function leaf(value: Json, salt: string): Promise<Tree> {
  const isScalar = typeof value !== "object" || value === null || Object.keys(value).length === 0;
  must(isScalar, "root_mismatch", "a leaf is a scalar, {} or []");
  const root = await tagged("countersign.leaf.v1", joined(unbase64url(salt) as Bytes, canonical(value)));
  return { root, kind: "leaf", members: new Map(), value, salt };
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
