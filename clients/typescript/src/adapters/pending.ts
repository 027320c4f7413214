/** Calls that wait for reviewers, as a paused run stores and shows them. */

import type { JsonObject } from "../json/value.js";
import type { ApprovalRequest } from "../requests.js";

/** A call that waits for reviewers. `id` is the id of its approval request. */
export interface PendingCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly reviewUrl?: string;
}

/** Returns the call of a pending request. */
export function pendingCall({ id, tool, arguments: given, reviewUrl }: ApprovalRequest): PendingCall {
  return { id, tool, arguments: given, ...(reviewUrl !== undefined && { reviewUrl }) };
}
