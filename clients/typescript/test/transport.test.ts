/** Retries, limits and errors of the transport, with a peer that fails on purpose. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { Client, guard, type ClientOptions, type Keys } from "countersign-gateway";
import { guardTools } from "countersign-gateway/ai-sdk";

import { Peer, reply, type Handler } from "./peer.js";
import { codeOf } from "./vectors.js";

const retries = { firstSecs: 0.001, mostSecs: 0.002 };
const digest = `sha256:${"0".repeat(64)}`;
const thread = { thread: "one", version: 0, transition: digest };

async function withPeer<T>(handler: Handler, run: (client: Client, peer: Peer) => Promise<T>, options: Partial<ClientOptions> = {}) {
  const peer = await Peer.start(handler);
  try {
    return await run(new Client({ url: peer.url, token: "cs_token", retries, ...options }), peer);
  } finally {
    peer.close();
  }
}

test("a request that is safe to repeat is sent again after 429, 5xx and a lost connection", async () => {
  let attempt = 0;
  const handler: Handler = (_, __, response) => {
    attempt += 1;
    if (attempt === 1) reply(response, 429, {}, { "retry-after": "0" });
    else if (attempt === 2) reply(response, 503, {});
    else if (attempt === 3) response.destroy();
    else reply(response, 200, thread);
  };
  await withPeer(handler, async (client, peer) => {
    assert.equal((await client.thread("one")).version, 0);
    assert.equal(peer.seen.length, 4);
  });
});

test("attempts are limited, and a broken chain is not repeated", async () => {
  for (const [status, code, attempts] of [[503, "store_unavailable", 4], [500, "chain_broken", 1], [409, "head_moved", 1]] as const) {
    await withPeer((_, __, response) => reply(response, status, { code, detail: "…" }), async (client, peer) => {
      assert.equal(await codeOf(() => client.thread("one")), code);
      assert.equal(peer.seen.length, attempts);
    });
  }
  await withPeer((_, __, response) => void response.destroy(), async (client, peer) => {
    assert.equal(await codeOf(() => client.thread("one")), "unreachable");
    assert.equal(peer.seen.length, 4);
  });
});

test("the outcome of a call is reported more patiently, as that of a write is", async () => {
  await withPeer((_, __, response) => reply(response, 503, {}), async ({ requests }, peer) => {
    assert.notEqual(await codeOf(() => requests.report("one", { status: "succeeded" })), undefined);
    assert.equal(peer.seen.length, 10);
  });
  await withPeer((_, __, response) => reply(response, 503, {}), async ({ requests }, peer) => {
    assert.notEqual(await codeOf(() => requests.report("one", { status: "succeeded" })), undefined);
    assert.equal(peer.seen.length, 1);
  }, { retries: { attempts: 1 } });
});

test("a key, a run or a set of keys that cannot be used is refused before anything is sent", async () => {
  await withPeer((_, __, response) => reply(response, 500, {}), async (client, peer) => {
    const { requests } = client;
    const call = { tool: "refund", arguments: {}, timeout: "10m" };
    for (const idempotencyKey of ["", "a b", "a\n", "ü", "x".repeat(256)]) {
      assert.equal(await codeOf(() => requests.create(call, { idempotencyKey })), "invalid_argument", idempotencyKey);
      assert.equal(await codeOf(() => requests.consume({ ...call, id: "one" }, { idempotencyKey })), "invalid_argument", idempotencyKey);
      assert.equal(await codeOf(() => client.createThread("payments", {}, { idempotencyKey })), "invalid_argument", idempotencyKey);
      assert.equal(await codeOf(() => guard(() => 1, { requests, tool: "refund" })({}, { key: idempotencyKey })), "invalid_argument", idempotencyKey);
    }
    const keys = { keys: [] } as unknown as Keys;
    assert.equal(await codeOf(() => requests.consume({ ...call, id: "one" }, { keys })), "invalid_argument");
    assert.equal(await codeOf(async () => guard(() => 1, { requests, tool: "refund", keys })), "invalid_argument");
    const tools = { refund: { execute: () => 1 } };
    for (const run of ["", "\ud800"]) assert.equal(await codeOf(async () => guardTools(tools, { requests, run })), "invalid_argument", run);
    for (const [run, toolCallId] of [["run", ""], ["ü".repeat(43), "a"], ["run", "\ud800"]] as const) {
      const { refund } = guardTools(tools, { requests, run }) as unknown as { refund: { execute(input: object, more: object): Promise<unknown> } };
      assert.equal(await codeOf(async () => refund.execute({}, { toolCallId })), "invalid_argument", run);
    }
    assert.deepEqual(peer.seen, []);
  });
});

test("a repeated request has the same key", async () => {
  const keys: unknown[] = [];
  const handler: Handler = (request, _, response) => {
    keys.push(request.headers["idempotency-key"]);
    if (keys.length < 3) response.destroy();
    else reply(response, 201, { ...thread, flow: "payments" });
  };
  await withPeer(handler, async (client) => {
    await client.createThread("payments", {});
    assert.deepEqual([new Set(keys).size, typeof keys[0]], [1, "string"]);
  });
});

test("a longer Retry-After than the limit ends the call", async () => {
  await withPeer((_, __, response) => reply(response, 429, { code: "too_many_requests" }, { "retry-after": "3600" }), async (client, peer) => {
    assert.equal(await codeOf(() => client.thread("one")), "too_many_requests");
    assert.equal(peer.seen.length, 1);
  });
});

test("what is no answer of the protocol is refused", async () => {
  const bodies = ["", "<html>", '{"thread":"one","thread":"two"}', "[]", '{"thread":"one"}', '{"thread":"one","version":1e400}'];
  for (const body of bodies) {
    await withPeer((_, __, response) => reply(response, 200, body), async (client) => {
      assert.equal(await codeOf(() => client.thread("one")), "unexpected_answer", body);
    });
  }
  const redirect: Handler = (_, __, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
  await withPeer(redirect, async (client, peer) => {
    assert.equal(await codeOf(() => client.thread("one")), "unexpected_answer");
    assert.equal(peer.seen.length, 1);
  });
  await withPeer((_, __, response) => reply(response, 404, "<html>"), async (client) => {
    assert.equal(await codeOf(() => client.thread("one")), "unknown");
  });
});

test("a response that is too large or too slow ends", async () => {
  await withPeer((_, __, response) => reply(response, 200, { ...thread, more: "x".repeat(5000) }), async (client) => {
    assert.equal(await codeOf(() => client.thread("one")), "answer_too_large");
  }, { answerBytesMax: 1000 });
  await withPeer(() => undefined, async (client) => {
    assert.equal(await codeOf(() => client.thread("one")), "unreachable");
  }, { timeoutSecs: 0.2, retries: { attempts: 1 } });
});

test("the limit holds when the runtime collects garbage meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const collecting = setInterval(collect, 20);
  try {
    await withPeer(() => undefined, async (client) => {
      assert.equal(await codeOf(() => client.thread("one")), "unreachable");
      const left = new AbortController();
      setTimeout(() => left.abort(new Error("left")), 100);
      await assert.rejects(client.thread("one", { signal: left.signal }), /left/);
    }, { timeoutSecs: 0.3, retries: { attempts: 1 } });
  } finally {
    clearInterval(collecting);
  }
});

test("an argument that JSON cannot represent is refused before anything is sent", async () => {
  await withPeer((_, __, response) => reply(response, 200, {}), async (client, peer) => {
    for (const value of [NaN, 1n, undefined, new Date(0), "\ud800", () => 1]) {
      const proposal = { node: "planner", parent: digest, patch: { value } };
      assert.equal(await codeOf(() => client.propose("one", proposal)), "invalid_argument");
    }
    assert.deepEqual(peer.seen, []);
  });
});

test("an id that would make another path is refused before anything is sent", async () => {
  await withPeer((_, __, response) => reply(response, 200, {}), async (client, peer) => {
    const { requests } = client;
    for (const id of ["..", ".", "", "\ud800", undefined, null, 7] as string[]) {
      const call = { id, tool: "refund", arguments: {} };
      const calls = [
        () => requests.get(id), () => requests.cancel(id), () => requests.consume(call), () => requests.report(id, { status: "failed" }),
        () => requests.wait(id, { withinSecs: 1 }), () => client.thread(id), () => client.cancel(id, "x"), () => client.confirm(id),
      ];
      for (const send of calls) assert.equal(await codeOf(send), "invalid_argument", String(id));
    }
    const named = { thread: client.thread(".."), transition: client.cancel("..", "x"), write_id: client.confirm(".."), id: requests.get("..") };
    for (const [field, sent] of Object.entries(named)) await assert.rejects(sent, new RegExp(`^CountersignError: invalid_argument: ${field}: `));
    assert.deepEqual(peer.seen, []);
    await codeOf(() => requests.get("a/../b"));
    assert.deepEqual(peer.seen, ["GET /aap/v1/requests/a%2F..%2Fb"]);
  });
});

test("a key that is missing or not a text is refused before anything is sent", async () => {
  await withPeer((_, __, response) => reply(response, 200, {}), async ({ requests }, peer) => {
    const asked = { tool: "refund", arguments: {}, timeout: "10m" };
    for (const key of [undefined, null, 7, "", "two words"] as string[]) {
      assert.equal(await codeOf(() => requests.create(asked, { idempotencyKey: key })), "invalid_argument", String(key));
      if (key !== undefined) assert.equal(await codeOf(() => guard(() => 1, { requests, tool: "refund" })({}, { key })), "invalid_argument", String(key));
    }
    assert.deepEqual(peer.seen, []);
  });
});

test("the message about an address, a token or a connection has the next step", async () => {
  const make = (url: string, token: string | undefined) => new Client({ url, token: token as string, retries: { attempts: 1 } });
  assert.throws(() => make("http://localhost:8480/aap/v1", "cs_token"), /such as http:\/\/localhost:8480, without \/aap\/v1/);
  for (const token of ["", undefined]) assert.throws(() => make("http://localhost:8480", token), /token: is empty: is the variable set\?/);
  const ended = await Peer.start(() => undefined);
  ended.close();
  for (const url of [ended.url, ended.url.replace("127.0.0.1", "localhost")]) {
    const refused = `GET /v1/threads/one: ${url} refused the connection. Is \`countersign serve\` running there?`;
    await assert.rejects(make(url, "cs_token").thread("one"), { code: "unreachable", detail: refused });
  }
});

test("an error after an attempt that was sent says that it may have been carried out", async () => {
  let attempts = 0;
  const lost = new Client({ url: "http://localhost:8480", token: "cs_token", retries: { attempts: 2, firstSecs: 0 }, fetch: () => {
    attempts += 1;
    return Promise.reject(Object.assign(new TypeError("fetch failed"), attempts === 2 && { cause: { code: "ECONNREFUSED" } }));
  } });
  await assert.rejects(lost.thread("one"), /refused the connection\. .* An earlier attempt may have been carried out\. Send the same again\./);
});

test("a token is not sent over plain HTTP, and is not printed", async () => {
  const make = (url: string, more = {}) => new Client({ url, token: "cs_secret", ...more });
  for (const url of ["http://gate.example.com", "http://127.0.0.1.example.com", "ftp://localhost", "https://a:b@gate.example.com", "https://gate.example.com/x", "no address"]) {
    assert.equal(await codeOf(() => make(url)), "invalid_argument", url);
  }
  make("http://gate.example.com", { allowPlainHttp: true });
  for (const url of ["https://gate.example.com", "http://localhost:8480", "http://127.0.0.1:1", "http://[::1]:1"]) {
    assert.ok(!inspect(make(url), { depth: 9, showHidden: true }).includes("cs_secret"));
  }
});
