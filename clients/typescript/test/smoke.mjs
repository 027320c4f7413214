// The package in another runtime: the vectors, and one request from its creation to its outcome.
//     RUNTIME smoke.mjs VECTORS [GATE INSTANCE]
import { readFileSync } from "node:fs";
import process from "node:process";
import { Client } from "countersign-gateway";
import { ANY, canonicalText, checkChain, checkEntry, checkReceipt, Keys, readJson } from "countersign-gateway/verify";

const [vectors, gate, token] = process.argv.slice(2);
const load = (name) => readJson(readFileSync(`${vectors}/${name}`), { bytesMax: 1 << 24, depthMax: 256 });
const codeOf = async (check) => {
  try {
    await check();
  } catch (error) {
    return error.code;
  }
};
const same = (found, wanted, name) => {
  if (found !== wanted) throw new Error(`${name}: ${found} instead of ${wanted}`);
};
let count = 0;
const encode = (it) => (it.base64 === undefined ? new TextEncoder().encode(it.text) : Uint8Array.from(atob(it.base64), (c) => c.charCodeAt(0)));

for (const it of load("json.json").cases.filter((it) => it.limits === undefined)) {
  const read = () => canonicalText(readJson(encode(it)));
  if (it.code === undefined) same(read(), it.canonical, it.name);
  else same(await codeOf(read), it.code, it.name);
  count += 1;
}
const any = { issuer: ANY, thread: ANY, transition: ANY, audience: ANY, at: ANY };
const checks = { "countersign-entry+jwt": checkEntry, "countersign-receipt+jwt": checkReceipt };
const tokens = load("tokens.json");
for (const it of [...tokens.genuine, ...tokens.refused]) {
  const check = checks[it.typ ?? it.accept_as];
  if (check === undefined) continue;
  same(await codeOf(async () => check(it.token, await Keys.read(it.jwks ?? tokens.jwks), any)), it.code, it.name);
  count += 1;
}
await checkChain(load("export/chain.json").entries, await Keys.read(load("export/jwks.json")), any);
if (gate !== undefined) {
  const { requests } = new Client({ url: gate, token });
  const call = { tool: "search", arguments: { text: "a" }, timeout: "1m" };
  const made = await requests.create(call, { idempotencyKey: crypto.randomUUID() });
  const used = await requests.consume({ ...call, id: made.id }, { keys: await Keys.read(await new Client({ url: gate, token }).jwks()) });
  same((await requests.report(used, { status: "succeeded" })).consumption.outcome.status, "succeeded", "outcome");
}
console.log(`${count} vectors passed`);
