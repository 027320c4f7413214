// The calls that a node needs, by fetch and nothing else. Whatever is not a clear answer throws.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Members = { [key: string]: Json };

export type Held = { outcome: "held"; transition: string; review: { id: string; url: string } };
export type Committed = { outcome: "committed"; transition: string; version: number };
export type Decision = { approved: boolean; decision: string; transition_digest: string; receipt: string | null };
export type Allowed = { allow: true; write_id: string; fence: number; lease_expires_at: string; view: Members };

/** What the gateway says no with (RFC 9457). Look at `code`. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: { pointer: string; code: string }[];

  constructor(status: number, body: Members) {
    super(`${status} ${String(body["code"])}: ${String(body["detail"] ?? body["title"])}`);
    this.status = status;
    this.code = String(body["code"]);
    this.errors = Array.isArray(body["errors"]) ? (body["errors"] as { pointer: string; code: string }[]) : [];
  }
}

const tries = 5;
const timeoutMs = 90_000;

/** Something of the environment that this node cannot do without. */
export function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** What stands on the command line, all of it. */
export function told<const Names extends readonly string[]>(...names: Names): { [It in keyof Names]: string } {
  const values = process.argv.slice(2);
  if (values.length !== names.length) throw new Error(`usage: ${names.join(" ")}`);
  return values as { [It in keyof Names]: string };
}

/**
 * One call. On no answer, 429 and 5xx it is sent again: all that is sent here has a name of its own at the gateway, so that
 * the same again is the same.
 */
export async function call(method: string, path: string, body?: Members, headers: Record<string, string> = {}) {
  const request: RequestInit = {
    method,
    redirect: "error",
    headers: { authorization: `Bearer ${given("COUNTERSIGN_TOKEN")}`, "content-type": "application/json", ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  };
  for (let left = tries - 1; ; left -= 1) {
    try {
      const response = await fetch(given("COUNTERSIGN_URL") + path, { ...request, signal: AbortSignal.timeout(timeoutMs) });
      const answer = (await response.json()) as Members;
      if (response.ok) return { status: response.status, answer };
      if (left === 0 || (response.status !== 429 && response.status < 500)) throw new Problem(response.status, answer);
    } catch (error) {
      if (left === 0 || error instanceof Problem) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 2 ** (tries - left) * 100));
  }
}

/** What a node may read, and nothing else. */
export async function view(thread: string, node: string): Promise<{ transition: string; state: Members }> {
  const { answer } = await call("GET", `/v1/threads/${encodeURIComponent(thread)}/state?node=${encodeURIComponent(node)}`);
  return answer as { transition: string; state: Members };
}

/** Asks for a change on the head `parent`. What the policy refuses throws a `Problem` with `rejected`. */
export async function propose(thread: string, node: string, parent: string, patch: Members): Promise<Held | Committed> {
  const path = `/v1/threads/${encodeURIComponent(thread)}/transitions`;
  return (await call("POST", path, { node, parent, patch })).answer as Held | Committed;
}

/** Waits until people have decided about exactly this. */
export async function decision(transition: string): Promise<Decision> {
  for (;;) {
    const { status, answer } = await call("GET", `/v1/transitions/${transition}/decision`, undefined, { prefer: "wait=30" });
    if (status === 202) continue;
    if (answer["transition_digest"] !== transition) throw new Error("a decision about something else");
    return answer as Decision;
  }
}

/** The writer's question. It comes back only with a yes to exactly this write. */
export async function verify(asked: { thread: string; transition: string; receipt: string; write_id: string }): Promise<Allowed> {
  const { status, answer } = await call("POST", "/v1/verify", asked);
  if (status !== 200 || answer["allow"] !== true || answer["write_id"] !== asked.write_id) throw new Error("verify did not allow");
  return answer as Allowed;
}

/** Says that it was written. Until there is an answer it is asked again. */
export async function confirm(writeId: string, result: Members): Promise<{ outcome: string }> {
  return (await call("POST", `/v1/writes/${encodeURIComponent(writeId)}/confirm`, { result })).answer as { outcome: string };
}

/** Says that nothing was written. */
export async function abort(writeId: string, reason: string): Promise<{ outcome: string }> {
  return (await call("POST", `/v1/writes/${encodeURIComponent(writeId)}/abort`, { reason })).answer as { outcome: string };
}

/** What a node says: one line of JSON. */
export function say(answer: object): void {
  console.log(JSON.stringify(answer));
}
