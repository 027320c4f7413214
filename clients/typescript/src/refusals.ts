/** Errors of guarded calls that did not run. Their sentences are for a model, and have the next step. */

import { CountersignError } from "./errors.js";
import type { ApprovalRequest } from "./requests.js";

/** Returns the error of a call that must not run. Its code is the reason, such as `denied`. */
export function refusal(request: ApprovalRequest, cause?: unknown): CountersignError {
  const [code, detail] = reason(request);
  const facts = { source: "gateway", detail, problem: { request }, ...(cause !== undefined && { cause }) } as const;
  return new CountersignError(code, facts);
}

/**
 * Returns the error of a call that did not run, because the gateway refused a request or did not answer. `isUse` is true
 * for the use of its approval.
 */
export function notRun(tool: string, error: unknown, isUse: boolean): unknown {
  if (!(error instanceof CountersignError)) return error;
  const detail = unusable(error, isUse);
  if (detail === undefined) return error;
  const { code, source, status, requestId, errors, problem } = error;
  const facts = { source, errors, problem, ...(status !== undefined && { status }), ...(requestId !== undefined && { requestId }), cause: error };
  return new CountersignError(code, { ...facts, detail: `The call of ${tool} did not run${detail}` });
}

function unusable({ code, status = 0, detail }: CountersignError, isUse: boolean): string | undefined {
  const again = "If it is still needed, call the tool again";
  if (code === "halted") return ", because an administrator has halted it (kill switch). Tell the user, and call the tool again after the halt is lifted.";
  if (code === "approval_expired") return `, because its approval was not used in time. ${again}, which asks for a new approval.`;
  if (code === "not_approved") return `, because its approval is not valid: ${detail} ${again}, which asks for a new approval.`;
  if (code !== "unreachable" && status < 500) return undefined;
  // An earlier process may have run it.
  const failed = ` now, because the gateway ${code === "unreachable" ? "did not answer" : "failed"}.`;
  return isUse ? `${failed} Its approval may be used up. ${again}, which may need a new approval.` : `${failed} Call the tool again later.`;
}

function reason(request: ApprovalRequest): readonly [code: string, detail: string] {
  const call = `The call of ${request.tool}`;
  const note = request.decision?.note === undefined ? "" : ` The reason is: ${JSON.stringify(request.decision.note)}`;
  switch (request.status) {
    case "pending":
      return ["still_held", `${call} did not run. It waits for approval${request.reviewUrl ? ` at ${request.reviewUrl}` : ""}. Tell the user, and do not repeat it.`];
    case "denied":
      return ["denied", `${call} was denied and did not run. Do not repeat it with the same arguments.${note}`];
    case "expired":
      return ["expired", `${call} did not run, because no reviewer approved it in time. Ask the user before you repeat it.`];
    case "cancelled":
      return ["cancelled", `${call} did not run, because its request was cancelled. Ask the user before you repeat it.`];
    case "approved":
      return used(call, request.consumption?.outcome?.status);
  }
}

/** Returns the reason of a call whose approval was used before, for example by a process that ended since. */
function used(call: string, outcome: string | undefined): readonly [code: string, detail: string] {
  if (outcome === undefined) {
    return ["outcome_unknown", `${call} was started before, and its outcome is unknown. It did not run again. Check its effect before you repeat it.`];
  }
  return ["already_consumed", `${call} was run before, and its outcome is ${outcome}. It did not run again. Check its effect first. If it is needed once more, make a new call.`];
}
