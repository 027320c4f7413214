/** The one error class of this package. */

/** One error in a request, as the gateway names it. */
export interface FieldError {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
  readonly rule?: string;
  readonly offset?: number;
  readonly value?: unknown;
}

/**
 * Who refused: the gateway (a coded problem), a check of signed data (`verification`), or the client itself, which has no
 * usable answer or cannot send the argument.
 */
export type ErrorSource = "gateway" | "verification" | "client";

/** The facts of an error, without its code. */
export interface ErrorFacts {
  readonly source: ErrorSource;
  readonly status?: number;
  readonly detail: string;
  readonly requestId?: string;
  readonly errors?: readonly FieldError[];
  readonly problem?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

const advices: Readonly<Record<string, Advice>> = {
  halted: "wait",
  write_in_progress: "wait",
  not_yet_valid: "wait",
  receipt_missing: "send_receipt",
  expired: "reaffirm",
  revoked: "reaffirm",
  policy_mismatch: "reaffirm",
  not_head: "look",
  closed: "look",
  already_used: "look",
};

/** What to do after `verify` refused. `look` means: find out what happened to the thread. */
export type Advice = "wait" | "send_receipt" | "reaffirm" | "look" | "stop";

/** An error of this package. If one is thrown, nothing was approved. Decide by `code`. */
export class CountersignError extends Error {
  override readonly name = "CountersignError";
  /** The gateway's code, or a code of the client, such as `unreachable`. */
  readonly code: string;
  readonly source: ErrorSource;
  /** The HTTP status, if the gateway answered. */
  readonly status: number | undefined;
  readonly detail: string;
  /** The id of the request, for the operator. */
  readonly requestId: string | undefined;
  readonly errors: readonly FieldError[];
  /** The whole body of the problem. It has further members for some codes, such as `head` or `review`. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(code: string, facts: ErrorFacts) {
    const places = (facts.errors ?? []).map((it) => `; ${it.code} at ${it.pointer || "the root"}`).join("");
    const status = facts.status === undefined ? "" : `${facts.status} `;
    super(`${status}${code}: ${facts.detail}${places}`, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.source = facts.source;
    this.status = facts.status;
    this.detail = facts.detail;
    this.requestId = facts.requestId;
    this.errors = facts.errors ?? [];
    this.problem = facts.problem ?? {};
  }

  /** Returns what a writer does about this code of `verify`. */
  get advice(): Advice {
    return Object.hasOwn(advices, this.code) ? (advices[this.code] as Advice) : "stop";
  }
}

/** Returns the error of a failed check of signed data. */
export function refused(code: string, detail: string): CountersignError {
  return new CountersignError(code, { source: "verification", detail });
}

/** Throws unless the condition holds. */
export function must(holds: boolean, code: string, detail: string): asserts holds {
  if (!holds) throw refused(code, detail);
}

/** Returns the error of an argument that cannot be sent or compared. Nothing was sent. */
export function invalidArgument(name: string, detail: string): CountersignError {
  return new CountersignError("invalid_argument", { source: "client", detail: `${name}: ${detail}` });
}

/** Returns the error of an answer that the protocol does not know. It is never a permission. */
export function unexpectedAnswer(detail: string): CountersignError {
  return new CountersignError("unexpected_answer", { source: "client", detail });
}
