/** The package as it is published: what it contains, and both forms of import. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve("countersign-gateway/package.json"));
const described = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));

test("CommonJS and ES modules have the same exports", async () => {
  const paths = Object.keys(described.exports).filter((it) => it !== "./package.json");
  assert.ok(paths.length > 4);
  for (const path of paths) {
    const name = `countersign-gateway${path.slice(1)}`;
    const names = Object.keys(await import(name)).sort();
    assert.deepEqual([Object.keys(require(name)).sort(), names.length > 0], [names, true], name);
  }
});

test("the package has no dependency and no install script", () => {
  const { dependencies, optionalDependencies, peerDependencies, scripts } = described;
  assert.deepEqual([dependencies, optionalDependencies, peerDependencies], [undefined, undefined, undefined]);
  assert.deepEqual(Object.keys(scripts).filter((it) => /install|prepare|publish/.test(it)), []);
});

test("the code imports no module of Node and uses none of its globals", () => {
  const files = readdirSync(`${folder}/dist/esm`, { recursive: true, encoding: "utf8" }).filter((it) => it.endsWith(".js"));
  assert.ok(files.length > 20);
  for (const file of files) {
    const text = readFileSync(`${folder}/dist/esm/${file}`, "utf8");
    const imports = Array.from(text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)"/gms), ([, from]) => from ?? "");
    assert.deepEqual(imports.filter((it) => !it.startsWith(".")), [], file);
    assert.doesNotMatch(text, /\b(process\.|Buffer\b|require\(|__dirname)/, file);
  }
});
