/** Adapter of the OpenAI Agents SDK (`@openai/agents`, version 0.20). */

import { CountersignError, invalidArgument } from "../errors.js";
import { ToolGuard, type GuardedCall } from "../guard.js";
import { readJsonText } from "../json/read.js";
import { refusal } from "../refusals.js";
import { keyOf, type AdapterOptions } from "./options.js";

export type { AdapterOptions } from "./options.js";

/** The definition of a function tool, as the SDK's `tool` takes it. */
interface Definition {
  readonly name?: string;
  readonly needsApproval?: boolean | ((context: unknown, input: unknown, callId?: string) => Promise<boolean>);
  readonly execute: (input: unknown, context: unknown, details?: Details) => unknown;
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
   * then. It throws `still_held` if a decision is missing, and the state is as before.
   */
  readonly decide: <I extends Item>(state: State<I>) => Promise<void>;
}

/** Returns the functions for tools behind approvals. A call runs only if the gateway approved it, whatever a state says. */
export function guardedTools<F extends (definition: never) => unknown>(tool: F, options: AdapterOptions): GuardedTools<F> {
  const [asking, waiting] = [new ToolGuard({ ...options, withinSecs: 0 }), new ToolGuard(options)];
  const names = new Set<string>();
  const callOf = (name: string, input: unknown, id: string | undefined): GuardedCall => {
    if (id === undefined) throw invalidArgument("callId", `the call of ${name} has no id`);
    return { tool: name, arguments: input, key: keyOf(options, id) };
  };
  const guarded = (definition: Definition) => {
    const { name, needsApproval = false, execute } = definition;
    if (name === undefined) throw invalidArgument("name", "a guarded tool needs a name");
    names.add(name);
    const changed: Definition = {
      ...definition,
      async needsApproval(context, input, callId) {
        const request = await asking.ask(callOf(name, input, callId));
        if (request.status === "pending") return true;
        return typeof needsApproval === "function" ? needsApproval(context, input, callId) : needsApproval;
      },
      async execute(input, context, details) {
        const call = { ...callOf(name, input, details?.toolCall?.callId), signal: details?.signal };
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
    return tool(changed as never);
  };
  return {
    tool: guarded as unknown as F,
    async decide(state) {
      const items = state.getInterruptions().map((item) => ({ item, raw: item.rawItem as CallItem }));
      const own = items.filter(({ raw }) => raw.type === "function_call" && names.has(raw.name));
      const decided = await Promise.all(own.map(async ({ item, raw }) => ({ item, request: await waiting.decide(callOf(raw.name, readJsonText(raw.arguments), raw.callId)) })));
      for (const { request } of decided) if (request.status === "pending") throw refusal(request);
      for (const { item, request } of decided) {
        if (request.status === "approved") state.approve(item);
        else state.reject(item, { message: refusal(request).message });
      }
    },
  };
}
