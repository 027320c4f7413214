// Extracts the snippets of pages, as files that are compiled with the tests: snippets.mjs REPOSITORY README FOLDER [KIND]
// It extracts those that need the packages of the kind. Without a kind, it extracts those that need none.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const needs = { frameworks: /from "(\.\/models\.js|@anthropic-ai\/.*)"/, durable: /from "@restatedev\/.*"/ };
const [repository, readme, folder, kind] = process.argv.slice(2);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
for (const page of [readme, ...["agents", "writers", "durable-workflows"].map((it) => `${repository}/docs/guides/${it}.md`)]) {
  for (const [, name, code] of readFileSync(page, "utf8").matchAll(/^```ts (\w+)\n(.*?)^```$/gms)) {
    if (Object.keys(needs).find((it) => needs[it].test(code)) === kind) writeFileSync(`${folder}/${name}.ts`, code);
  }
}
if (kind === "frameworks") writeFileSync(`${folder}/models.ts`, 'export * from "../models.js";\n');
