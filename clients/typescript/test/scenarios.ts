/** The scenarios of every guard and adapter: the same calls, decisions and expectations, against a real gateway. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { ApprovalRequest, GuardOptions } from "countersign-gateway";

import { flow, type Flow } from "./flows.js";
import { proxy } from "./peer.js";

/** A call of the scripted model. */
export interface ModelCall {
  readonly id: string;
  readonly tool: "search" | "refund";
  readonly arguments: { readonly amount?: number; readonly text?: string };
}

/** What the model gets for each call by its id. A run that pauses has a text instead, from which another process resumes it. */
export type Turn = { readonly results: Readonly<Record<string, string>> } | { readonly saved: string };

/** A process with an agent: a guard, its tools and a scripted model. Nothing of it is in memory of another one. */
export interface Agent {
  start(run: string, calls: readonly ModelCall[]): Promise<Turn>;
  /** Resumes a run. With `approves`, the client itself approves each call, without a question to the gateway. */
  resume?(run: string, saved: string, approves?: boolean): Promise<Turn>;
}

/** Makes an agent. `ran` gets each call that runs. The tool returns `done AMOUNT`. */
export type Driver = (options: GuardOptions, ran: (tool: string, given: object) => void) => Agent;

interface Process {
  readonly agent: Agent;
  readonly pending: ApprovalRequest[];
  readonly ran: string[];
}

const refund = (id: string, amount = 40): ModelCall => ({ id, tool: "refund", arguments: { amount } });

/** Registers the tests of a driver. */
export function scenarios(name: string, driver: Driver): void {
  let it: Flow;
  before(async () => {
    it = await flow();
  });
  after(() => it.gateway.close());

  const start = (options: Partial<GuardOptions> = {}): Process => {
    const [pending, ran]: [ApprovalRequest[], string[]] = [[], []];
    const onPending = (request: ApprovalRequest) => pending.push(request);
    const given = { requests: it.instance.requests, onPending, ...options };
    return { agent: driver(given, (tool, found) => ran.push(`${tool} ${JSON.stringify(found)}`)), pending, ran };
  };

  /** Runs the calls, and resumes a run that pauses in a process of its own. `decide` gets each pending request. */
  async function perform(
    run: string,
    calls: readonly ModelCall[],
    decide: (request: ApprovalRequest, at: number) => Promise<unknown>,
    options: Partial<GuardOptions> = {},
  ): Promise<{ results: Readonly<Record<string, string>>; ran: string[]; saved?: string }> {
    const first = start(options);
    const turn = first.agent.start(run, calls);
    if (first.agent.resume === undefined) {
      // Some agents make the next call after the decision on the one before.
      for (const at of calls.keys()) {
        await until(() => first.pending.length > at);
        await decide(first.pending[at] as ApprovalRequest, at);
      }
      return { results: resultsOf(await turn), ran: first.ran };
    }
    const { saved } = savedOf(await turn);
    assert.deepEqual(first.ran, []);
    for (const [at, request] of unique(first.pending).entries()) await decide(request, at);
    const second = start(options);
    const resumed = await resume(second, run, saved);
    return { results: resultsOf(resumed), ran: second.ran, saved };
  }
  const vote = (request: ApprovalRequest, verdict: "approve" | "deny", note = "") => it.ada.vote(request.reviewUrl ?? "", verdict, note);
  const outcome = async (request: ApprovalRequest) => (await it.instance.requests.get(request.id)).consumption?.outcome?.status;

  test(`${name}: an allowed call runs at once`, async () => {
    const { agent, ran, pending } = start();
    const { results } = await agent.start("run-1", [{ id: "a", tool: "search", arguments: { text: "x" } }]) as { results: Record<string, string> };
    assert.match(results["a"] ?? "", /done/);
    assert.deepEqual([ran, pending], [['search {"text":"x"}'], []]);
  });

  test(`${name}: a held call runs once after its approval, and its outcome is reported`, async () => {
    let asked: ApprovalRequest | undefined;
    const done = await perform("run-2", [refund("a")], async (request) => {
      asked = request;
      await vote(request, "approve");
    });
    assert.match(done.results["a"] ?? "", /done 40/);
    assert.deepEqual(done.ran, ['refund {"amount":40}']);
    assert.equal(await outcome(asked as ApprovalRequest), "succeeded");
  });

  test(`${name}: a denied call does not run`, async () => {
    const done = await perform("run-3", [refund("a", 41)], (request) => vote(request, "deny", "Too much."));
    assert.match(done.results["a"] ?? "", /was denied and did not run.*Too much/s);
    assert.deepEqual(done.ran, []);
  });

  test(`${name}: a call that no reviewer decides does not run`, async () => {
    const ended = (request: ApprovalRequest) => it.instance.requests.wait(request, { withinSecs: 30 });
    const done = await perform("run-4", [refund("a", 42)], ended, { timeout: "1s" });
    assert.match(done.results["a"] ?? "", /no reviewer approved it in time/);
    assert.deepEqual(done.ran, []);
  });

  test(`${name}: an approval with other arguments is refused`, async () => {
    // Reviewers cannot edit a call. A proxy between the guard and the gateway can try.
    const edited = await proxy(it.gateway.url, ({ body }) => {
      if (body["consumption"] !== undefined) body["arguments"] = { amount: 4000 };
    });
    const { requests } = it.gateway.client(it.instanceToken, { url: edited.url });
    const done = await perform("run-5", [refund("a", 43)], (request) => vote(request, "approve"), { requests });
    edited.close();
    assert.match(done.results["a"] ?? "", /arguments_mismatch/);
    assert.deepEqual(done.ran, []);
  });

  test(`${name}: parallel calls need one approval each`, async () => {
    const calls = [refund("a", 44), refund("b", 44), refund("c", 45)];
    const asked: ApprovalRequest[] = [];
    const done = await perform("run-6", calls, async (request, at) => {
      asked.push(request);
      await vote(request, at === 1 ? "deny" : "approve");
    });
    assert.equal(new Set(asked.map((request) => request.id)).size, 3);
    assert.equal(done.ran.length, 2);
    assert.equal(Object.values(done.results).filter((result) => /done/.test(result)).length, 2);
    assert.equal(Object.values(done.results).filter((result) => /denied/.test(result)).length, 1);
    const reported = await Promise.all(asked.map(outcome));
    assert.deepEqual(reported, ["succeeded", undefined, "succeeded"]);
  });

  test(`${name}: the approval of one call opens no other`, async () => {
    const first = start({ withinSecs: 0 });
    await first.agent.start("run/7", [refund("a", 46)]);
    await vote(first.pending[0] as ApprovalRequest, "approve");
    // Equal calls with another id, of another run, and of a run and with an id that make the same text.
    for (const [run, call] of [["run/7", refund("b", 46)], ["run/8", refund("a", 46)], ["run", refund("7/a", 46)]] as const) {
      const other = start({ withinSecs: 0 });
      await other.agent.start(run, [call]);
      assert.deepEqual([other.ran, other.pending.length], [[], 1], run);
    }
    // The same call with other arguments.
    const edited = start({ withinSecs: 0 });
    const turn = await edited.agent.start("run/7", [refund("a", 4600)]).catch((error: unknown) => ({ results: { a: String(error) } }));
    assert.deepEqual([edited.ran, edited.pending], [[], []]);
    assert.match(resultsOf(turn)["a"] ?? "", /idempotency_conflict/);
  });

  test(`${name}: a run that is resumed too early runs each call once`, async (context) => {
    const [begun, early, late] = [start({ withinSecs: 0 }), start({ withinSecs: 0 }), start()];
    if (begun.agent.resume === undefined) return context.skip("its calls wait inside the tool");
    const { saved } = savedOf(await begun.agent.start("run-12", [refund("a", 52), refund("b", 53)]));
    const [first, second] = unique(begun.pending);
    await vote(first as ApprovalRequest, "approve");
    // It pauses again, or is refused.
    const again = await resume(early, "run-12", saved).catch((): Turn => ({ saved }));
    await vote(second as ApprovalRequest, "approve");
    const results = resultsOf(await resume(late, "run-12", savedOf(again).saved));
    assert.match(`${results["a"]} ${results["b"]}`, /done 52.*done 53/);
    assert.deepEqual([...early.ran, ...late.ran].sort(), ['refund {"amount":52}', 'refund {"amount":53}']);
  });

  test(`${name}: a run whose process died goes on with the same request`, async () => {
    const dead = start({ withinSecs: 0 });
    const turn = await dead.agent.start("run-9", [refund("a", 47)]);
    const next = start();
    await vote(dead.pending[0] as ApprovalRequest, "approve");
    const resumed = "saved" in turn ? await resume(next, "run-9", turn.saved) : await next.agent.start("run-9", [refund("a", 47)]);
    assert.match(resultsOf(resumed)["a"] ?? "", /done 47/);
    assert.deepEqual([next.pending, next.ran], [[], ['refund {"amount":47}']]);
    // A replay of the resume, as after a lost response.
    const replay = start();
    const again = "saved" in turn ? await resume(replay, "run-9", turn.saved) : await replay.agent.start("run-9", [refund("a", 47)]);
    assert.match(resultsOf(again)["a"] ?? "", /was run before, and its outcome is succeeded/);
    assert.deepEqual(replay.ran, []);
  });

  test(`${name}: a call whose process died while it ran is not run again`, async () => {
    const dead = start({ withinSecs: 0 });
    const turn = await dead.agent.start("run-10", [refund("a", 48)]);
    const request = dead.pending[0] as ApprovalRequest;
    await vote(request, "approve");
    await it.instance.requests.consume(request);
    const next = start();
    const resumed = "saved" in turn ? await resume(next, "run-10", turn.saved) : await next.agent.start("run-10", [refund("a", 48)]);
    assert.match(resultsOf(resumed)["a"] ?? "", /outcome is unknown/);
    assert.deepEqual(next.ran, []);
  });

  test(`${name}: an approval of the client itself runs nothing`, async (context) => {
    const { agent, ran, pending } = start({ withinSecs: 0 });
    if (agent.resume === undefined) return context.skip("its calls wait inside the tool");
    const turn = await agent.start("run-11", [refund("a", 49)]);
    const forged = await agent.resume("run-11", savedOf(turn).saved, true).catch((error: unknown) => ({ results: { a: String(error) } }));
    assert.deepEqual([ran, unique(pending).length], [[], 1]);
    if ("results" in forged) assert.match(forged.results.a ?? "", /waits for approval/);
  });

  async function resume({ agent }: Process, run: string, saved: string): Promise<Turn> {
    assert.ok(agent.resume);
    return agent.resume(run, saved);
  }
}

export async function until(holds: () => boolean): Promise<void> {
  for (const ends = Date.now() + 30_000; !holds(); await new Promise((resolve) => setTimeout(resolve, 20))) {
    if (Date.now() > ends) throw new Error("it did not happen in time");
  }
}

/** A request is seen again when a run is resumed. */
function unique(requests: readonly ApprovalRequest[]): ApprovalRequest[] {
  return Array.from(new Map(requests.map((request) => [request.id, request])).values());
}

function resultsOf(turn: Turn): Readonly<Record<string, string>> {
  if (!("results" in turn)) throw new Error("the run has paused");
  return turn.results;
}

function savedOf(turn: Turn): { readonly saved: string } {
  if (!("saved" in turn)) throw new Error(`the run has ended: ${JSON.stringify(turn.results)}`);
  return turn;
}
