/** Adapter of Mastra (`@mastra/core`, version 1). */

import { CountersignError, invalidArgument } from "../errors.js";
import { ToolGuard, type GuardOptions } from "../guard.js";
import type { ApprovalRequest } from "../requests.js";
import { keysOf } from "./options.js";
import { pendingCall, type PendingCall } from "./pending.js";

export type { PendingCall } from "./pending.js";

/** The definition of a tool, as Mastra's `createTool` takes it. */
interface Definition {
  readonly id: string;
  readonly execute?: (input: unknown, context: Context) => unknown;
  readonly requireApproval?: unknown;
  readonly suspendSchema?: unknown;
  readonly resumeSchema?: unknown;
}

/** The context of a call. Mastra has further members. */
interface Context {
  readonly runId?: string;
  readonly abortSignal?: AbortSignal;
  readonly agent?: AgentContext;
}

interface AgentContext {
  readonly toolCallId: string;
  readonly suspend?: (pending: PendingCall) => Promise<unknown>;
  /** The value of a resume. `declineToolCall` makes one that is not approved. */
  readonly resumeData?: { readonly approved?: unknown; readonly reason?: unknown };
  /** The value of the last suspension of this call. */
  readonly suspendPayload?: PendingCall;
}

/**
 * Returns Mastra's `createTool` for tools behind approvals. While reviewers decide, a call suspends the run, with a
 * `PendingCall` as its payload. Resume the run with any value: the call asks the gateway again, and waits `withinSecs`,
 * which is 0 by default. An approval by Mastra's `approveToolCall` only resumes the run. A decline ends the call and its
 * request.
 */
export function guardCreateTool<F extends (definition: never) => unknown>(createTool: F, options: GuardOptions): F {
  const guard = new ToolGuard({ withinSecs: 0, ...options });
  const guarded = (definition: Definition) => {
    const { id, execute } = definition;
    for (const member of ["requireApproval", "suspendSchema", "resumeSchema"] as const) {
      if (definition[member]) throw invalidArgument(member, `the gateway decides about ${id}, and only its guard suspends a call, so remove this member`);
    }
    if (execute === undefined) throw invalidArgument("execute", `${id} has no execute function`);
    const asking = async (input: unknown, context: Context) => {
      const { key, agent } = callOf(id, context);
      const { suspend, resumeData, suspendPayload } = agent;
      if (resumeData?.approved === false) throw await declined(id, agent, options);
      // Mastra does not validate the arguments again when it resumes, so they have no defaults then.
      const call = { tool: id, arguments: suspendPayload?.arguments ?? input, key, signal: context.abortSignal };
      let hasRun = false;
      try {
        return await guard.run(call, (approved) => {
          hasRun = true;
          return execute.call(definition, approved, unsuspendable(id, context, agent));
        });
      } catch (error) {
        const isPending = !hasRun && error instanceof CountersignError && error.code === "still_held";
        if (!isPending || suspend === undefined) throw error;
        return suspend(pendingCall(error.problem["request"] as ApprovalRequest));
      }
    };
    return createTool({ ...definition, execute: asking } as never);
  };
  return guarded as unknown as F;
}

function callOf(id: string, { runId, agent }: Context): { readonly key: string; readonly agent: AgentContext } {
  if (!runId || !agent?.toolCallId) throw invalidArgument("context", `${id} was not called by an agent, so the call has no id. Use \`guard\` instead.`);
  return { key: keysOf({ run: runId })(agent.toolCallId), agent };
}

/** Ends the request of a call that was declined in Mastra, and returns the error of the call. */
async function declined(id: string, { resumeData, suspendPayload }: AgentContext, options: GuardOptions): Promise<CountersignError> {
  const failure: unknown = suspendPayload && (await endRequest(suspendPayload, options).catch((error: unknown) => error));
  const open = failure === undefined ? "" : " Its request may still be open, because the gateway did not end it. Tell the user.";
  const reason = typeof resumeData?.reason === "string" ? ` The reason is: ${JSON.stringify(resumeData.reason)}` : "";
  const detail = `The call of ${id} was declined and did not run. Do not repeat it with the same arguments.${open}${reason}`;
  return new CountersignError("cancelled", { source: "client", detail, ...(failure !== undefined && { cause: failure }) });
}

/** Cancels a pending request. An approval is used up, so that a later resume of an old snapshot cannot use it. */
async function endRequest({ id, tool, arguments: given }: PendingCall, { requests, server }: GuardOptions): Promise<void> {
  try {
    await requests.cancel(id);
  } catch (error) {
    if (!isOneOf(error, ["already_terminal"])) throw error;
    try {
      await requests.consume({ id, tool, arguments: given, ...(server !== undefined && { server }) });
    } catch (refused) {
      // It was denied or has expired, or its approval was used before.
      if (isOneOf(refused, ["not_approved", "approval_expired", "already_consumed"])) return;
      throw refused;
    }
    await requests.report(id, { status: "failed", note: "The call was declined in Mastra and did not run." });
  }
}

function isOneOf(error: unknown, codes: readonly string[]): boolean {
  return error instanceof CountersignError && codes.includes(error.code);
}

/** Returns the context of a call that runs. Its approval is used up, so it could not continue after a suspension. */
function unsuspendable(id: string, context: Context, agent: AgentContext): Context {
  const suspend = async () => {
    throw invalidArgument("suspend", `a call of ${id} cannot suspend itself after its approval`);
  };
  const { resumeData: _resumed, suspendPayload: _payload, ...rest } = agent;
  return { ...context, agent: { ...rest, suspend } };
}
