/** Reads strict JSON, which two parsers cannot read in two ways. `JSON.parse` drops duplicate keys and rounds numbers. */

import { refused } from "../errors.js";
import { exactNumber } from "./numbers.js";
import { levelsMax, setMember, type Json } from "./value.js";

/** The limits of a text. */
export interface JsonLimits {
  readonly bytesMax?: number;
  /** The most levels, 64 by default, and at most 1000. */
  readonly depthMax?: number;
}

const defaultBytesMax = 1 << 20;
const defaultDepthMax = 64;
const numberForm = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const plainText = /[^"\\\u0000-\u001f]*/y;
const blanks = /[ \t\r\n]*/y;
const words: readonly (readonly [string, null | boolean])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
];
const escapes: Readonly<Record<string, string>> = {
  '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t",
};

/** Reads one value from UTF-8, or throws with the protocol's code. */
export function readJson(bytes: Uint8Array, limits: JsonLimits = {}): Json {
  const bytesMax = limits.bytesMax ?? defaultBytesMax;
  if (bytes.length > bytesMax) throw refused("too_large", `more than ${bytesMax} bytes`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused("encoding", "not UTF-8");
  }
  return new Reader(text, Math.min(limits.depthMax ?? defaultDepthMax, levelsMax)).whole();
}

/** Reads one value from a text. */
export function readJsonText(text: string, limits: JsonLimits = {}): Json {
  return readJson(new TextEncoder().encode(text), limits);
}

class Reader {
  private at = 0;
  private depth = 0;

  constructor(
    private readonly text: string,
    private readonly depthMax: number,
  ) {}

  whole(): Json {
    this.match(blanks);
    if (this.at === this.text.length) throw refused("empty", "no value");
    const value = this.value();
    this.match(blanks);
    if (this.at < this.text.length) throw this.syntax();
    return value;
  }

  private value(): Json {
    const next = this.text[this.at];
    if (next === "{") return this.nested(() => this.object());
    if (next === "[") return this.nested(() => this.list());
    if (next === '"') return this.string();
    for (const [word, value] of words) if (this.takes(word)) return value;
    for (const word of ["NaN", "Infinity", "-Infinity"]) if (this.takes(word)) throw refused("not_a_number", word);
    const number = this.match(numberForm);
    if (number === "") throw this.syntax();
    return exactNumber(number);
  }

  private nested<T>(read: () => T): T {
    this.depth += 1;
    if (this.depth > this.depthMax) throw refused("too_deep", `more than ${this.depthMax} levels`);
    this.at += 1;
    const value = read();
    this.depth -= 1;
    return value;
  }

  private list(): Json[] {
    const items: Json[] = [];
    this.match(blanks);
    if (this.takes("]")) return items;
    for (;;) {
      this.match(blanks);
      items.push(this.value());
      this.match(blanks);
      if (this.takes("]")) return items;
      this.expect(",");
    }
  }

  private object(): { [key: string]: Json } {
    const members: { [key: string]: Json } = {};
    const keys = new Set<string>();
    this.match(blanks);
    if (this.takes("}")) return members;
    for (;;) {
      this.match(blanks);
      const key = this.string();
      const composed = key.normalize("NFC");
      if (keys.has(composed)) throw refused("duplicate_key", "Duplicate object key.");
      keys.add(composed);
      this.match(blanks);
      this.expect(":");
      this.match(blanks);
      setMember(members, key, this.value());
      this.match(blanks);
      if (this.takes("}")) return members;
      this.expect(",");
    }
  }

  private string(): string {
    this.expect('"');
    let found = "";
    for (;;) {
      found += this.match(plainText);
      if (this.takes('"')) break;
      this.expect("\\");
      found += this.escape();
    }
    if (/\p{Surrogate}/u.test(found)) throw refused("encoding", "half of a surrogate pair");
    return found;
  }

  private escape(): string {
    const kind = this.text[this.at] ?? "";
    this.at += 1;
    if (kind === "u") {
      const digits = this.text.slice(this.at, this.at + 4);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.syntax();
      this.at += 4;
      return String.fromCharCode(parseInt(digits, 16));
    }
    const character = Object.hasOwn(escapes, kind) ? escapes[kind] : undefined;
    if (character === undefined) throw this.syntax();
    return character;
  }

  private takes(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  private expect(word: string): void {
    if (!this.takes(word)) throw this.syntax();
  }

  private match(form: RegExp): string {
    form.lastIndex = this.at;
    const found = form.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private syntax() {
    return refused("syntax", `at character ${this.at}`);
  }
}
