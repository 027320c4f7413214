/** Adapter of the OpenAI Agents SDK (`@openai/agents`, version 0.20). */

import { CountersignError, invalidArgument } from "../errors.js";
import { ToolGuard, type GuardedCall } from "../guard.js";
import { readJsonText } from "../json/read.js";
import { refusal } from "../refusals.js";
import { keysOf, type AdapterOptions } from "./options.js";

export type { AdapterOptions } from "./options.js";

/** The definition of a function tool, as the SDK's `tool` takes it. */
interface Definition {
  readonly name?: string;
  readonly description?: unknown;
  readonly parameters?: unknown;
  readonly strict?: unknown;
  readonly needsApproval?: boolean | ((context: unknown, input: unknown, callId?: string) => Promise<boolean>);
  readonly execute: (input: unknown, context: unknown, details?: Details) => unknown;
}

/** A function tool of the SDK. */
interface Made {
  /** The name for the model, which has an underscore for each character that is no letter or digit. */
  readonly name: string;
  invoke(context: unknown, input: string): Promise<unknown>;
}

interface Details {
  readonly toolCall?: { readonly callId: string };
  readonly signal?: AbortSignal;
}

interface Item {
  readonly rawItem: { readonly type?: string };
}

interface CallItem {
  readonly type: string;
  readonly name: string;
  readonly callId: string;
  readonly arguments: string;
}

/** The state of a run. */
interface State<I extends Item> {
  getInterruptions(): I[];
  approve(item: I): void;
  reject(item: I, options: { message: string }): void;
}

/** The functions for tools behind approvals. */
export interface GuardedTools<F> {
  /** The SDK's `tool` function. A call of its tools is an interruption of the run while reviewers decide. */
  readonly tool: F;
  /**
   * Waits for the decisions on the interruptions of a state, also of one that was stored. Run the agent with the state
   * then. It throws `still_held` if a decision is missing, and the state is as before. `other` gets each interruption of
   * an unguarded tool, to approve or reject it. Without `other`, such an interruption is `not_guarded`.
   */
  readonly decide: <I extends Item>(state: State<I>, other?: (item: I) => unknown) => Promise<void>;
}

/** Returns the functions for tools behind approvals. A call runs only if the gateway approved it, whatever a state says. */
export function guardedTools<F extends (definition: never) => unknown>(tool: F, options: AdapterOptions): GuardedTools<F> {
  const [asking, waiting, keyOf] = [new ToolGuard({ ...options, withinSecs: 0 }), new ToolGuard(options), keysOf(options)];
  const readers = new Map<string, Made>();
  const callOf = (name: string, input: unknown, id: string | undefined): GuardedCall => {
    if (id === undefined) throw invalidArgument("callId", `the call of ${name} has no id`);
    return { tool: name, arguments: input, key: keyOf(id) };
  };
  const make = (definition: object): Made => tool(definition as never) as Made;
  const guarded = (definition: Definition) => {
    const { name, description, parameters, strict, needsApproval = false, execute } = definition;
    if (name === undefined) throw invalidArgument("name", "a guarded tool needs a name");
    if (needsApproval !== false) throw invalidArgument("needsApproval", `the gateway decides about ${name}, so remove this member`);
    const changed: Definition = {
      ...definition,
      async needsApproval(_, input, callId) {
        const request = await asking.ask(callOf(made.name, input, callId));
        return request.status === "pending";
      },
      async execute(input, context, details) {
        const call = { ...callOf(made.name, input, details?.toolCall?.callId), signal: details?.signal };
        let hasRun = false;
        try {
          return await asking.run(call, (approved) => {
            hasRun = true;
            return execute.call(definition, approved, context, details);
          });
        } catch (error) {
          if (hasRun || !(error instanceof CountersignError)) throw error;
          // The SDK would tell the model to try again.
          return error.message;
        }
      },
    };
    const made = make(changed);
    // A tool that returns its arguments as the SDK reads them: with defaults, and without empty optional ones.
    readers.set(made.name, make({ name, description, parameters, strict, errorFunction: null, execute: (input: unknown) => input }));
    return made;
  };
  const decided = async (raw: CallItem) => {
    // The SDK asks about arguments that do not fit their schema as the model made them.
    const input = await readers.get(raw.name)?.invoke(undefined, raw.arguments).catch(() => readJsonText(raw.arguments));
    return waiting.decide(callOf(raw.name, input, raw.callId));
  };
  return {
    tool: guarded as unknown as F,
    async decide(state, other) {
      const items = state.getInterruptions().map((item) => ({ item, raw: item.rawItem as CallItem }));
      const isOwn = ({ raw }: { raw: CallItem }) => raw.type === "function_call" && readers.has(raw.name);
      const [own, others] = [items.filter(isOwn), items.filter((it) => !isOwn(it))];
      if (others.length > 0 && other === undefined) throw notGuarded(others.map(({ raw }) => raw.name ?? raw.type));
      const found = await Promise.all(own.map(async ({ item, raw }) => ({ item, request: await decided(raw) })));
      for (const { request } of found) if (request.status === "pending") throw refusal(request);
      for (const { item, request } of found) {
        if (request.status === "approved") state.approve(item);
        else state.reject(item, { message: refusal(request).message });
      }
      for (const { item } of others) await other?.(item);
    },
  };
}

function notGuarded(names: readonly string[]): CountersignError {
  const detail = `no guarded tool has the name ${names.join(", ")}. Make the tool with \`tool\` of the guard, or decide it in the second argument of \`decide\`.`;
  return new CountersignError("not_guarded", { source: "client", detail });
}
