/** Adapter of the OpenAI Agents SDK (`@openai/agents`, version 0.20). */

import { CountersignError, invalidArgument } from "../errors.js";
import { ToolGuard } from "../guard.js";
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

/**
 * Returns the SDK's `tool` function for tools behind approvals. While reviewers decide, a call is an interruption of the
 * run. Run the agent again with the stored state to go on: `needsApproval` asks the gateway again, and waits `withinSecs`,
 * which is 0 by default. A call runs only if the gateway approved it, whatever the state says.
 */
export function guardedTool<F extends (definition: never) => unknown>(tool: F, options: AdapterOptions): F {
  const guard = new ToolGuard({ withinSecs: 0, ...options });
  const guarded = (definition: Definition) => {
    const { name, needsApproval = false, execute } = definition;
    if (name === undefined) throw invalidArgument("name", "a guarded tool needs a name");
    const callOf = (input: unknown, id: string | undefined, signal?: AbortSignal) => {
      if (id === undefined) throw invalidArgument("callId", `the call of ${name} has no id`);
      return { tool: name, arguments: input, key: keyOf(options, id), signal };
    };
    const changed: Definition = {
      ...definition,
      async needsApproval(context, input, callId) {
        const request = await guard.decide(callOf(input, callId));
        if (request.status === "pending") return true;
        return typeof needsApproval === "function" ? needsApproval(context, input, callId) : needsApproval;
      },
      async execute(input, context, details) {
        const call = callOf(input, details?.toolCall?.callId, details?.signal);
        let hasRun = false;
        try {
          return await guard.run(call, (approved) => {
            hasRun = true;
            return execute.call(definition, approved, context, details);
          });
        } catch (error) {
          // The SDK would tell the model to try again.
          if (hasRun || !(error instanceof CountersignError)) throw error;
          return error.message;
        }
      },
    };
    return tool(changed as never);
  };
  return guarded as unknown as F;
}
