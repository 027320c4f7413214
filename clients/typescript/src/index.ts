/** Client of Countersign, the approval gateway for AI agents. */

export { Client, type Proposal, type Reaffirmation, type Rollback } from "./client.js";
export { CountersignError, type Advice, type ErrorSource, type FieldError } from "./errors.js";
export type { AuditEvent, EventsOptions } from "./events.js";
export { guard, ToolGuard, type FunctionCallOptions, type FunctionGuardOptions, type GuardedCall, type GuardOptions } from "./guard.js";
export type { Retries } from "./http/retries.js";
export type { CallOptions, ClientOptions } from "./http/transport.js";
export type { WaitOptions } from "./http/waiting.js";
export type { Json, JsonObject } from "./json/value.js";
export type { components, paths } from "./openapi.js";
export type { ApprovalRequest, ConsumeOptions, Consumption, CreateRequestOptions, NewRequest, Outcome, RequestsApi } from "./requests.js";
export type { Schema } from "./schemas.js";
export type { Committed, CreateThreadOptions, Decision, Held, WaitForDecisionOptions } from "./threads.js";
export { Keys } from "./verify/keys.js";
export { verifyWebhook, type Webhook, type WebhookHeaders, type WebhookOptions } from "./webhooks.js";
export type { Verified, VerifyOptions, WriteOutcome, WriteRequest } from "./writing.js";
