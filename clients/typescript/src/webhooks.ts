/** Verifies webhooks of the gateway, in the format of Standard Webhooks. */

import { invalidArgument, must } from "./errors.js";
import { readJson } from "./json/read.js";
import { isObject, type JsonObject } from "./json/value.js";
import { joined, utf8, type Bytes } from "./verify/encoding.js";
import { isHmac } from "./verify/envelopes.js";
import { isSigned } from "./verify/tokens.js";

/** A verified webhook. */
export interface Webhook {
  /** The id of the event (`webhook-id`). Store it, and do nothing twice. */
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: JsonObject;
}

/** How a webhook is verified. */
export interface WebhookOptions {
  /** The endpoint's secret (`whsec_…`) or public key (`whpk_…`), or several during a rotation. */
  readonly secrets: string | readonly string[];
  /** The difference of the clocks that is accepted, 300 seconds by default. */
  readonly toleranceSecs?: number;
  readonly at?: Date;
}

/** The headers of a request, of `fetch` or of Node. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const bodyBytesMax = 8 * 1024 * 1024;
const signaturesMax = 16;

/** Verifies the bytes of a webhook as they were received, or throws. Never verify a parsed body. */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  options: WebhookOptions,
): Promise<Webhook> {
  const [id, timestamp, signature] = ["id", "timestamp", "signature"].map((it) => header(headers, `webhook-${it}`));
  const isWhole = id !== undefined && timestamp !== undefined && signature !== undefined;
  must(isWhole, "signature_invalid", "a header of Standard Webhooks is missing");
  must(/^[0-9]{1,12}$/.test(timestamp), "webhook_stale", "the header `webhook-timestamp` is no time");
  const difference = Math.abs((options.at ?? new Date()).getTime() / 1000 - Number(timestamp));
  must(difference <= (options.toleranceSecs ?? 300), "webhook_stale", "the webhook is too old or too new");
  const bytes = typeof body === "string" ? utf8(body) : new Uint8Array(body);
  const signed = joined(utf8(`${id}.${timestamp}.`), bytes);
  const secrets = typeof options.secrets === "string" ? [options.secrets] : options.secrets;
  const signatures = signature.split(" ").slice(0, signaturesMax);
  must(await isSignedByAny(secrets, signatures, signed), "signature_invalid", "no signature is valid");
  const found = readJson(bytes, { bytesMax: bodyBytesMax });
  const { type, timestamp: at, data } = isObject(found) ? found : {};
  must(typeof type === "string" && typeof at === "string" && isObject(data), "syntax", "the body has another form");
  return { id, type, timestamp: at, data };
}

async function isSignedByAny(secrets: readonly string[], signatures: readonly string[], signed: Bytes): Promise<boolean> {
  if (secrets.length === 0) throw invalidArgument("secrets", "at least one secret or public key");
  for (const secret of secrets) {
    const [, kind = "", encoded = ""] = /^(whsec|whpk)_(.+)$/.exec(secret) ?? [];
    const raw = unbase64(encoded);
    if (raw === undefined) throw invalidArgument("secrets", "a secret starts with whsec_, a public key with whpk_");
    const version = kind === "whpk" ? "v1a" : "v1";
    for (const listed of signatures) {
      const value = listed.startsWith(`${version},`) ? unbase64(listed.slice(version.length + 1)) : undefined;
      if (value === undefined) continue;
      const isGenuine = version === "v1" ? await isHmac(raw, value, signed) : await isSigned(raw, value, signed);
      if (isGenuine) return true;
    }
  }
  return false;
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found : undefined;
}

function unbase64(text: string): Bytes | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
  } catch {
    return undefined;
  }
}
