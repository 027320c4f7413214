// Extracts the snippets of pages, as files that are compiled with the tests: snippets.mjs REPOSITORY README FOLDER
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const [repository, readme, folder] = process.argv.slice(2);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
for (const page of [readme, ...["agents", "writers"].map((it) => `${repository}/docs/guides/${it}.md`)]) {
  for (const [, name, code] of readFileSync(page, "utf8").matchAll(/^```ts (\w+)\n(.*?)^```$/gms)) {
    writeFileSync(`${folder}/${name}.ts`, code);
  }
}
