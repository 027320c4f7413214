/** The guard of functions against a real gateway. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { CountersignError, guard, Keys, type ApprovalRequest, type Consumption } from "countersign-gateway";

import { flow, toolsPolicy, type Flow } from "./flows.js";
import { proxy } from "./peer.js";
import { scenarios, until } from "./scenarios.js";
import { SigningKey } from "./signing.js";
import { codeOf } from "./vectors.js";

scenarios("guard", (options, ran) => ({
  async start(run, calls) {
    const results = calls.map(async (call) => {
      const guarded = guard(async (given: object) => {
        ran(call.tool, given);
        return `done ${call.arguments.amount}`;
      }, { ...options, tool: call.tool });
      return guarded(call.arguments, { key: JSON.stringify([run, call.id]) }).catch(String);
    });
    const found = await Promise.all(results);
    return { results: Object.fromEntries(calls.map((call, at) => [call.id, found[at] ?? ""])) };
  },
}));

let it: Flow;
before(async () => {
  it = await flow();
});
after(() => it.gateway.close());

const amount = 50;

/** A guarded function, its calls and its pending requests. */
function guarded(fn = (given: { amount: number }) => Promise.resolve(given.amount), more = {}) {
  const [pending, unreported]: [ApprovalRequest[], Consumption[]] = [[], []];
  const options = {
    requests: it.instance.requests, tool: "refund", timeout: "10m", onPending: (request: ApprovalRequest) => pending.push(request),
    onUnreported: (call: Consumption) => unreported.push(call), ...more,
  };
  return { call: guard(fn, options), pending, unreported };
}
const approve = (pending: readonly ApprovalRequest[]) => it.ada.vote(pending[0]?.reviewUrl ?? "", "approve");

test("a function gets a copy of the approved arguments, and its error is reported as a failure", async () => {
  const broken = new Error("the bank is closed");
  const seen: object[] = [];
  const { call, pending } = guarded((given) => {
    seen.push(given);
    return Promise.reject(broken);
  });
  const given = { amount, note: undefined, to: { iban: "X" } };
  const running = call(given).catch((error: unknown) => error);
  await until(() => pending.length === 1);
  given.to.iban = "Y";
  await approve(pending);
  assert.equal(await running, broken);
  assert.deepEqual(seen, [{ amount, to: { iban: "X" } }]);
  const found = await it.instance.requests.get(pending[0]?.id ?? "");
  assert.equal(found.consumption?.outcome?.status, "failed");
});

test("arguments that JSON does not have are refused before anything is sent", async () => {
  const { call, pending } = guarded();
  const [circle, deep]: [Record<string, unknown>, Record<string, unknown>] = [{ amount }, { amount }];
  circle["self"] = [circle];
  for (let [level, at] = [0, deep]; level < 20_000; level += 1) at = at["a"] = {};
  for (const wrong of [circle, deep, { amount: NaN }, { amount: new Date() }, { amount: () => 1 }, [1]]) {
    assert.equal(await codeOf(() => call(wrong as never)), "invalid_argument");
  }
  assert.deepEqual(pending, []);
});

test("a generator function has failed, because its body did not run", async () => {
  const bodies = [
    async function* () { yield assert.fail("it ran"); },
    function* () { yield assert.fail("it ran"); },
  ];
  for (const body of bodies) {
    const { call, pending } = guarded(body as never);
    const running = codeOf(() => call({ amount }));
    await until(() => pending.length === 1);
    await approve(pending);
    assert.equal(await running, "invalid_argument");
    assert.equal((await it.instance.requests.get(pending[0]?.id ?? "")).consumption?.outcome?.status, "failed");
  }
  for (const result of [[1], [1].values(), new Map([[1, 2]]).values(), "text", new ReadableStream()]) {
    const found = await guard(() => result, { requests: it.instance.requests, tool: "search" })({});
    assert.equal(found, result);
  }
});

test("a callback that fails for a pending request ends it without a key", async () => {
  const broken = new Error("the channel is closed");
  for (const [fails, key, status] of [
    [() => { throw broken; }, undefined, "cancelled"],
    [() => Promise.reject(broken), undefined, "cancelled"],
    [() => { throw broken; }, "broken", "pending"],
  ] as const) {
    let id = "";
    const onPending = (request: ApprovalRequest) => {
      id = request.id;
      return fails();
    };
    const { call } = guarded(() => assert.fail("it ran"), { onPending });
    assert.equal(await call({ amount: 65 }, key === undefined ? {} : { key }).catch((error: unknown) => error), broken);
    assert.equal((await it.instance.requests.get(id)).status, status);
  }
});

test("a call without a key ends its request when it stops to wait", async () => {
  const late = guarded(undefined, { withinSecs: 0.1 });
  assert.equal(await codeOf(() => late.call({ amount })), "cancelled");
  const aborted = guarded();
  const stop = new AbortController();
  const running = aborted.call({ amount }, { signal: stop.signal }).catch((error: unknown) => error);
  await until(() => aborted.pending.length === 1);
  stop.abort(new Error("stopped"));
  assert.equal(String(await running), "Error: stopped");
  assert.equal((await it.instance.requests.get(aborted.pending[0]?.id ?? "")).status, "cancelled");
});

test("a call without a key that does not wait ends its request", async () => {
  const { call, pending } = guarded(undefined, { withinSecs: 0 });
  assert.equal(await codeOf(() => call({ amount: 60 })), "cancelled");
  assert.equal((await it.instance.requests.get(pending[0]?.id ?? "")).status, "cancelled");
});

test("a signal during the request ends it without a key, and keeps it with one", async () => {
  for (const [key, status] of [[undefined, "cancelled"], ["aborted", "pending"]] as const) {
    const stop = new AbortController();
    let id = "";
    const slow = await proxy(it.gateway.url, ({ body }, path) => {
      if (path !== "/aap/v1/requests") return;
      id = String(body["id"]);
      stop.abort(new Error("stopped"));
    });
    const { call } = guarded(() => assert.fail("it ran"), { requests: it.gateway.client(it.instanceToken, { url: slow.url }).requests });
    const error = await call({ amount: 61 }, { signal: stop.signal, ...(key && { key }) }).catch(String);
    assert.deepEqual([error, (await it.instance.requests.get(id)).status], ["Error: stopped", status]);
    slow.close();
  }
});

test("a signal while the approval is used runs nothing, and the outcome is reported", async () => {
  const stop = new AbortController();
  const slow = await proxy(it.gateway.url, (_, path) => {
    if (path.endsWith("/consume")) stop.abort(new Error("stopped"));
  });
  const { requests } = it.gateway.client(it.instanceToken, { url: slow.url });
  const { call, pending } = guarded(() => assert.fail("it ran"), { requests });
  const running = call({ amount: 62 }, { signal: stop.signal }).catch(String);
  await until(() => pending.length === 1);
  await approve(pending);
  assert.equal(await running, "Error: stopped");
  const { outcome } = (await it.instance.requests.get(pending[0]?.id ?? "")).consumption ?? {};
  assert.deepEqual([outcome?.status, outcome?.note], ["failed", "The call was aborted before it ran."]);
  slow.close();
});

test("a call with a key keeps its request, and calls of other instances do not find it", async () => {
  const first = guarded(undefined, { withinSecs: 0.1 });
  const error = await first.call({ amount }, { key: "kept" }).catch((found: unknown) => found);
  assert.ok(error instanceof CountersignError && error.code === "still_held");
  assert.match(error.message, new RegExp(`waits for approval at ${it.gateway.site}/reviews/`));
  await approve(first.pending);
  const stranger = it.gateway.client(it.gateway.addToken("instance", { flow: "refunds", node: "agent" }));
  const other = guarded(undefined, { requests: stranger.requests, withinSecs: 0 });
  assert.equal(await codeOf(() => other.call({ amount }, { key: "kept" })), "still_held");
  assert.equal(await first.call({ amount }, { key: "kept" }), amount);
});

test("two processes that resume the same call at once run it once", async () => {
  const runs: number[] = [];
  const run = ({ amount: found }: { amount: number }) => Promise.resolve(runs.push(found));
  const first = guarded(run, { withinSecs: 0 });
  await codeOf(() => first.call({ amount }, { key: "twice" }));
  await approve(first.pending);
  const both = await Promise.allSettled([1, 2, 3].map(() => guarded(run).call({ amount }, { key: "twice" })));
  assert.deepEqual(runs, [amount]);
  assert.equal(both.filter((one) => one.status === "fulfilled").length, 1);
});

test("a call that ran returns its result if the outcome cannot be reported", async () => {
  const cut = await proxy(it.gateway.url, ({ body }, path) => {
    if (path.endsWith("/outcome")) body["id"] = "another one";
  });
  const { requests } = it.gateway.client(it.instanceToken, { url: cut.url });
  const { call, pending, unreported } = guarded(undefined, { requests });
  const running = call({ amount });
  await until(() => pending.length === 1);
  await approve(pending);
  assert.equal(await running, amount);
  assert.deepEqual(unreported.map((one) => one.id), [pending[0]?.id]);
  // An error of the callback does not replace the result.
  for (const onUnreported of [() => { throw new Error("broken"); }, () => Promise.reject(new Error("broken"))]) {
    const found = await guard(() => "found", { requests, tool: "search", onUnreported })({});
    assert.equal(found, "found");
  }
  cut.close();
});

test("an answer that claims approval of a pending request runs nothing", async () => {
  const lying = await proxy(it.gateway.url, ({ body }) => {
    if (body["status"] === "pending") body["status"] = "approved";
  });
  const { requests } = it.gateway.client(it.instanceToken, { url: lying.url });
  const { call } = guarded(() => assert.fail("it ran"), { requests });
  const error = await call({ amount: 63 }).catch(String);
  assert.match(String(error), /not_approved: The call of refund did not run, because its approval is not valid: .* call the tool again/i);
  lying.close();
});

test("a halt stops an approved call, which runs after the halt with the same key", async () => {
  const { call, pending } = guarded(undefined, { withinSecs: 0 });
  assert.equal(await codeOf(() => call({ amount: 64 }, { key: "halted" })), "still_held");
  await approve(pending);
  it.gateway.run(["halt", "set", "refunds", "--only", "verifying"]);
  const error = await call({ amount: 64 }, { key: "halted" }).catch(String);
  assert.match(String(error), /halted: The call of refund did not run, because an administrator has halted/);
  it.gateway.run(["halt", "lift", "refunds"]);
  assert.equal(await call({ amount: 64 }, { key: "halted" }), 64);
});

test("an approval that was not used in time runs nothing", async () => {
  const folder = mkdtempSync(`${tmpdir()}/policy-`);
  writeFileSync(`${folder}/brief.toml`, toolsPolicy.replace('flow = "refunds"', 'flow = "brief"').replace("[approval]", '[approval]\nreceipt_ttl = "1s"'));
  it.gateway.run(["policy", "activate", `${folder}/brief.toml`]);
  rmSync(folder, { recursive: true });
  const { requests } = it.gateway.client(it.gateway.addToken("instance", { flow: "brief", node: "agent" }));
  const options = { requests, tool: "search", timeout: "10m" };
  await requests.create({ tool: "search", arguments: {}, timeout: "10m" }, { idempotencyKey: "brief" });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const error = await guard(() => assert.fail("it ran"), options)({}, { key: "brief" }).catch(String);
  assert.match(String(error), /approval_expired: The call of search did not run, because its approval was not used in time/);
});

test("a lost answer to the use of an approval runs nothing, and the call is not promised to be open", async () => {
  const lost = (path: string) => it.gateway.client(it.instanceToken, {
    retries: { attempts: 1 },
    async fetch(input, init) {
      const response = await fetch(input, init);
      if (String(input).endsWith(path)) throw new TypeError("the connection was lost");
      return response;
    },
  });
  const searching = (path: string) => guard(() => assert.fail("it ran"), { requests: lost(path).requests, tool: "search" });
  const { id: unusedId } = await it.instance.requests.create({ tool: "search", arguments: {}, timeout: "10m" }, { idempotencyKey: "lost" });
  const unused = await searching("/consume")({}, { key: "lost" }).catch(String);
  assert.match(String(unused), /unreachable: The call of search did not run now, because the gateway did not answer. Its approval may be used up/);
  for (const path of ["/never", unusedId]) assert.match(String(await searching(path)({}, { key: "lost" }).catch(String)), /outcome_unknown/);
  const unasked = await searching("/requests")({}, { key: "unasked" }).catch(String);
  assert.match(String(unasked), /unreachable: The call of search did not run now, because the gateway did not answer. Call the tool again/);
});

test("with keys, a reservation of another signer runs nothing", async () => {
  const [own, other] = [await Keys.read(await it.instance.jwks()), await Keys.read((await SigningKey.make()).jwks)];
  for (const [keys, code] of [[own, undefined], [other, "unknown_key"]] as const) {
    const { call, pending } = guarded(undefined, { keys });
    const running = codeOf(() => call({ amount }));
    await until(() => pending.length === 1);
    await approve(pending);
    assert.equal(await running, code);
  }
});

test("a killed process goes on with the same request", async () => {
  const program = fileURLToPath(new URL("./guarded.js", import.meta.url));
  const environment = { ...process.env, GATE: it.gateway.url, INSTANCE: it.instanceToken };
  const start = () => spawn(process.execPath, ["--no-warnings", program], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const first = start();
  const [line] = await once(first.stdout, "data");
  const [, url = ""] = /^pending (\S+)/.exec(String(line)) ?? [];
  first.kill("SIGKILL");
  await once(first, "exit");
  await it.ada.vote(url, "approve");
  // The second process dies while the call runs, and the third one does not run it again.
  for (const expected of [/^running 51$/, /^Error:.*outcome_unknown/]) {
    const next = start();
    const [output] = await once(next.stdout, "data");
    assert.match(String(output).trim(), expected);
    next.kill("SIGKILL");
    await once(next, "exit");
  }
});
