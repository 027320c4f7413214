// Builds the package twice: as ES modules and as CommonJS.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";

const tsc = (...options) => execFileSync(process.execPath, ["node_modules/typescript/lib/tsc.js", "-p", ".", ...options], { stdio: "inherit" });

rmSync("dist", { recursive: true, force: true });
tsc();
tsc("--outDir", "dist/cjs", "--module", "commonjs", "--moduleResolution", "node10", "--verbatimModuleSyntax", "false");
for (const [folder, type] of [["esm", "module"], ["cjs", "commonjs"]]) {
  mkdirSync(`dist/${folder}`, { recursive: true });
  writeFileSync(`dist/${folder}/package.json`, `${JSON.stringify({ type })}\n`);
}
