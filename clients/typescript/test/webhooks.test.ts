/** Webhooks: by known signatures, and as a real gateway sends them. */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { verifyWebhook } from "countersign-gateway";

import { flow, heldChange } from "./flows.js";
import { Peer } from "./peer.js";
import { codeOf } from "./vectors.js";

const secret = `whsec_${Buffer.from("a secret of this test, 32 bytes.").toString("base64")}`;
const at = new Date("2026-11-02T09:00:00Z");
const body = JSON.stringify({ type: "transition.held", timestamp: "2026-11-02T09:00:00.000Z", data: { thread: "one" } });

function headers(sent = body, id = "evt-1", time = at.getTime() / 1000): Record<string, string> {
  const raw = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", raw).update(`${id}.${time}.${sent}`).digest("base64");
  return { "webhook-id": id, "Webhook-Timestamp": String(time), "webhook-signature": `v1,AAAA v1,${signature}` };
}

test("a signed webhook is accepted, from the headers of Node and of fetch", async () => {
  const found = await verifyWebhook(body, headers(), { secrets: secret, at });
  assert.deepEqual([found.id, found.type, found.data], ["evt-1", "transition.held", { thread: "one" }]);
  await verifyWebhook(Buffer.from(body), new Headers(headers()), { secrets: ["whsec_AAAA", secret], at });
});

test("a changed, old or unsigned webhook is refused", async () => {
  const code = (sent: string, with_: Record<string, string>, options = {}) =>
    codeOf(() => verifyWebhook(sent, with_, { secrets: secret, at, ...options }));
  assert.equal(await code(`${body} `, headers()), "signature_invalid");
  assert.equal(await code(body, { ...headers(), "webhook-id": "evt-2" }), "signature_invalid");
  assert.equal(await code(body, { ...headers(), "webhook-signature": "v1,AAAA" }), "signature_invalid");
  assert.equal(await code(body, { "webhook-id": "evt-1" }), "signature_invalid");
  assert.equal(await code(body, headers(), { secrets: "whsec_AAAA" }), "signature_invalid");
  assert.equal(await code(body, headers(), { at: new Date(at.getTime() + 301_000) }), "webhook_stale");
  assert.equal(await code(body, headers(), { at: new Date(at.getTime() - 301_000) }), "webhook_stale");
  assert.equal(await code('{"a":1,"a":2}', headers('{"a":1,"a":2}')), "duplicate_key");
  for (const secrets of ["", [], "AAAA", "whsec_"]) assert.equal(await code(body, headers(), { secrets }), "invalid_argument");
});

test("a webhook of a gateway is verified by the secret and by the public key", async () => {
  const received: { headers: Record<string, string | string[] | undefined>; body: string }[] = [];
  let arrived: () => void = () => undefined;
  const one = new Promise<void>((resolve) => (arrived = resolve));
  const receiver = await Peer.start((request, sent, response) => {
    received.push({ headers: request.headers, body: sent });
    response.writeHead(204).end();
    arrived();
  });
  const it = await flow({ COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS: "127.0.0.1" });
  try {
    const authorization = `Bearer ${it.gateway.addToken("admin")}`;
    const endpoint = { name: "receiver", url: receiver.url, events: ["transition.held"] };
    const made = await fetch(`${it.gateway.url}/v1/endpoints`, {
      method: "POST", headers: { authorization, "content-type": "application/json", "idempotency-key": "one" }, body: JSON.stringify(endpoint),
    });
    const { secret: shared, public_keys } = (await made.json()) as { secret: string; public_keys: string[] };
    const held = await heldChange(it, "order-1");
    await one;
    const [sent] = received;
    for (const secrets of [shared, public_keys]) {
      const found = await verifyWebhook(sent?.body ?? "", sent?.headers ?? {}, { secrets });
      assert.deepEqual([found.type, found.data["transition"]], ["transition.held", held.transition]);
    }
  } finally {
    receiver.close();
    await it.gateway.close();
  }
});
