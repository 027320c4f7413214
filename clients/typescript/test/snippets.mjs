// Extracts the snippets of pages, as files that are compiled with the tests: snippets.mjs REPOSITORY README FOLDER [frameworks]
// With `frameworks`, it extracts those that need the packages of a framework. Otherwise, it extracts the others.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const [repository, readme, folder, kind] = process.argv.slice(2);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
for (const page of [readme, ...["agents", "writers"].map((it) => `${repository}/docs/guides/${it}.md`)]) {
  for (const [, name, code] of readFileSync(page, "utf8").matchAll(/^```ts (\w+)\n(.*?)^```$/gms)) {
    if (/from "(\.\/models\.js|@anthropic-ai\/.*)"/.test(code) === (kind === "frameworks")) writeFileSync(`${folder}/${name}.ts`, code);
  }
}
if (kind === "frameworks") writeFileSync(`${folder}/models.ts`, 'export * from "../models.js";\n');
