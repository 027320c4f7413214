//! Lists every error code with its status, meaning and fix. The OpenAPI document and `docs/reference/errors.md` are
//! made from these tables, and tests compare them with the answers of the gateway.

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::json::parse::JsonCode;
use countersign_domain::policy::RejectCode;

/// Whether a client may send a request again after an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Sending it again does not help.
    No,
    /// The same request may succeed later.
    Later,
    /// A changed request may succeed.
    Changed,
}

/// One error code: its meaning and the next step. Both may contain Markdown code spans.
#[derive(Clone, Copy, Debug)]
pub struct ErrorText {
    /// The HTTP status, or 0 for a code that is no status of its own.
    pub status: u16,
    /// The code, as responses contain it.
    pub code: &'static str,
    /// Whether to send the request again.
    pub retry: Retry,
    /// The cause, in one or two sentences.
    pub meaning: &'static str,
    /// The next step for the caller or an administrator.
    pub fix: &'static str,
}

/// Codes of problems by status. A denial of `verify` is 403 and has its own codes.
pub const BY_STATUS: &[(u16, &str, &[&str])] = &[
    (
        400,
        "The request is invalid. `errors` lists the members that are wrong.",
        &[
            "malformed",
            "empty",
            "syntax",
            "duplicate_key",
            "not_a_number",
            "number_not_exact",
            "too_deep",
            "encoding",
            "missing_idempotency_key",
        ],
    ),
    (401, "The token or the signature is missing or invalid.", &["unauthenticated", "webhook_stale"]),
    (403, "The role, node or flow of the token does not allow this call.", &["forbidden"]),
    (404, "It does not exist, or belongs to another flow.", &["not_found"]),
    (405, "The path does not support this method. `Allow` lists the supported ones.", &["method_not_allowed"]),
    (
        409,
        "The request conflicts with the current state.",
        &[
            "head_moved",
            "imported",
            "step_reused",
            "conflict",
            "thread_held",
            "write_in_progress",
            "halted",
            "closed",
            "exists",
            "wrong_state",
            "expired",
            "interrupt_differs",
            "earlier_attempt",
            "request_in_progress",
            "answer_not_kept",
            "idempotency_conflict",
            "already_terminal",
            "not_approved",
            "approval_expired",
            "already_consumed",
            "not_consumed",
            "outcome_conflict",
        ],
    ),
    (410, "The values are erased by the policy. The signed records remain.", &["state_erased"]),
    (413, "The body is too large.", &["too_large"]),
    (421, "The request did not come through the configured reverse proxy.", &["misdirected"]),
    (
        422,
        "The request is valid, and the policy or the gateway refuses it.",
        &[
            "rejected",
            "policy_refused",
            "webhook_id_reused",
            "attempts_exhausted",
            "nobody_asked",
            "nobody_can_approve",
            "idempotency_key_reused",
            "envelope_malformed",
            "unknown_key",
            "signature_invalid",
            "issuer_mismatch",
            "thread_mismatch",
            "node_mismatch",
            "envelope_mismatch",
            "hmac_missing",
            "hmac_expired",
            "hmac_mismatch",
            "stale",
            "digest_mismatch",
            "required_missing",
            "schema_mismatch",
            "tokens_mismatch",
            "over_budget",
        ],
    ),
    (429, "Too many requests. Wait for the time in `Retry-After`.", &["too_many_requests"]),
    (
        500,
        "The gateway failed. The server log has details under the request id.",
        &["chain_broken", "internal", "keyring"],
    ),
    (
        503,
        "Temporarily unavailable. Wait for the time in `Retry-After`, then send the same request again.",
        &["busy", "store_unavailable", "clock_skew", "archive_missing", "archive_damaged"],
    ),
];

/// Returns the codes of a denial of `verify`, all of them 403.
pub fn denials() -> Vec<&'static str> {
    DenialCode::ALL.iter().map(|it| it.as_str()).collect()
}

/// Returns the codes of the items of `errors`.
pub fn faults() -> Vec<&'static str> {
    let json = JsonCode::ALL.iter().map(|it| it.as_str());
    let rejected = RejectCode::ALL.iter().map(|it| it.as_str());
    let mut all: Vec<_> =
        ["malformed", "conflict", "required_missing"].into_iter().chain(json).chain(rejected).collect();
    // The lists overlap, and `dedup` only removes neighbours.
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether the OpenAPI document has the code.
pub fn is_described(status: u16, code: &str) -> bool {
    BY_STATUS.iter().any(|(of, _, codes)| *of == status && codes.contains(&code))
        || (status == 403 && DenialCode::ALL.iter().any(|it| it.as_str() == code))
}

/// Returns the meaning and fix of a problem's code.
pub fn text_of(status: u16, code: &str) -> Option<&'static ErrorText> {
    // Only denials of `verify` have another code with this status.
    let table = if status == 403 && code != "forbidden" { DENIAL_TEXTS } else { PROBLEM_TEXTS };
    table.iter().find(|it| it.status == status && it.code == code)
}

/// Writes a table of error texts, one line for each code.
macro_rules! texts {
    ($($status:literal $code:literal $retry:ident: $meaning:literal, $fix:literal;)*) => {
        &[$(ErrorText { status: $status, code: $code, retry: Retry::$retry, meaning: $meaning, fix: $fix },)*]
    };
}

/// Every code of a problem response, in the order of [`BY_STATUS`].
pub const PROBLEM_TEXTS: &[ErrorText] = texts! {
    400 "malformed" Changed: "The body, a parameter or a header is invalid, or the body has a `Content-Encoding` other than `identity`.", "Correct the members that `errors` names. Send the body uncompressed.";
    400 "empty" Changed: "The text contains no JSON value.", "Send a JSON value.";
    400 "syntax" Changed: "The text is not valid JSON.", "Correct the JSON at the `offset` in `errors`.";
    400 "duplicate_key" Changed: "Two keys of one object are equal, or become equal in Unicode normal form C.", "Remove one of the keys.";
    400 "not_a_number" Changed: "The JSON contains NaN or an infinity.", "Send `null` or a string.";
    400 "number_not_exact" Changed: "A number cannot be represented exactly as a double.", "Send the number as a string.";
    400 "too_deep" Changed: "Arrays and objects are nested deeper than allowed (64 levels by default).", "Flatten the value.";
    400 "encoding" Changed: "The text is not UTF-8, or contains half of a surrogate pair.", "Encode the text as UTF-8.";
    400 "missing_idempotency_key" Changed: "This call requires an `Idempotency-Key`.", "Send a key of your own for each call.";
    401 "unauthenticated" No: "The token is missing, malformed, unknown, or revoked or expired, as `detail` says. Or the signature of a post is invalid.", "Send a valid token. Ask an administrator for a new one.";
    401 "webhook_stale" Changed: "The timestamp of a signed post is more than five minutes off.", "Correct the clock, yours or the gateway's, and sign the post again.";
    403 "forbidden" No: "The role, node or flow of the token does not allow this call.", "Use a token of a role that the call names, and a node of that token.";
    404 "not_found" No: "The object does not exist, or belongs to another flow.", "Check the name and the flow of your token.";
    405 "method_not_allowed" Changed: "The path does not support this method.", "Use a method that the header `Allow` lists.";
    409 "head_moved" Changed: "Another version was committed first. `head` has its version and digest.", "Read your view again and propose again with the new `parent`.";
    409 "imported" No: "The thread is an imported run. Only its files can be read.", "Use another thread.";
    409 "step_reused" Changed: "This `step` has already done something else, or another owner used it first. `transition` names the result.", "Read that transition, or give the new step another name.";
    409 "conflict" Changed: "Branches have several values at the paths in `errors`.", "Join with another strategy, or set the values in `resolve`, on the head in `checkpoint`.";
    409 "thread_held" Later: "A review holds the thread. `review` names it.", "Wait until the review ends, then propose again.";
    409 "write_in_progress" Later: "A writer holds a lease on the thread.", "Wait until the write ends or its lease expires.";
    409 "halted" Later: "An administrator has halted the flow (kill switch).", "Wait until an administrator lifts the halt.";
    409 "closed" No: "An administrator has closed the thread.", "Use another thread, or ask an administrator to reopen it.";
    409 "exists" Changed: "The name is taken by another object.", "Choose another name.";
    409 "wrong_state" Changed: "The object is not in the state that the call needs, for example no longer held.", "Read its current state and follow `detail`.";
    409 "expired" Changed: "The deadline passed before the call. No reviewer decided in time.", "Propose again with a higher `attempt`.";
    409 "interrupt_differs" Changed: "This `transition_digest` was posted before with other members.", "Compute the digest over everything that you show.";
    409 "earlier_attempt" Later: "The previous attempt is still under review, or was never made.", "Wait for its end, or send the next number.";
    409 "request_in_progress" Later: "The first request with this `Idempotency-Key` is still running.", "Send the same request again in a moment.";
    409 "answer_not_kept" No: "The request was carried out, but its answer was larger than 1 MiB and was not stored.", "Read the result.";
    409 "idempotency_conflict" Changed: "This `Idempotency-Key` was used for another approval request.", "Use a new key for each call.";
    409 "already_terminal" No: "The approval request is decided, so it cannot be cancelled.", "Read the request.";
    409 "not_approved" No: "The approval request is not approved, or its approval is no longer valid. `message` has the cause.", "Do not run the call. Wait for a decision, or ask again.";
    409 "approval_expired" Changed: "The approval was not used in time.", "Do not run the call. Ask again with a new `Idempotency-Key`.";
    409 "already_consumed" Changed: "The approval was used before.", "Do not run the call. Ask again with a new `Idempotency-Key`.";
    409 "not_consumed" Changed: "The approval was not used by this instance, so there is no outcome to report.", "Consume the approval before you run the call.";
    409 "outcome_conflict" No: "Another outcome of this call is recorded.", "Read the request. The first report counts.";
    410 "state_erased" No: "The policy has erased the values of this version.", "Use a later version.";
    413 "too_large" Changed: "The body is larger than allowed.", "Shorten the body.";
    421 "misdirected" Changed: "The request did not come through the configured reverse proxy.", "Use the gateway's public URL.";
    422 "rejected" Changed: "The policy rejects the request. `errors` lists every violation.", "Follow `instruction`, and correct what `errors` names.";
    422 "policy_refused" Changed: "The policy does not compile, or has a path or tool that can never match. `detail` has the code, the line and the column.", "Correct the policy and run `countersign policy check`.";
    422 "webhook_id_reused" Changed: "Another body was posted under this `webhook-id`.", "Give each post its own id.";
    422 "attempts_exhausted" No: "The policy allows no further attempt for this interrupt.", "Stop, and report it to your user.";
    422 "nobody_asked" No: "The policy of the flow has no approval stage, so no reviewer would see the interrupt.", "Add `[[approval.stages]]` to the policy.";
    422 "nobody_can_approve" No: "Every reviewer who could decide the interrupt is excluded as an owner of the token.", "Let a team without reviewers own the token, or add reviewers.";
    422 "idempotency_key_reused" Changed: "Another body was sent with this `Idempotency-Key`.", "Give each request its own key.";
    422 "envelope_malformed" Changed: "The signature does not have the form of an envelope's signature.", "Do not give it to a model. Request another envelope.";
    422 "unknown_key" Changed: "The key of the envelope is unknown or may not sign.", "Do not give it to a model. Request another envelope.";
    422 "signature_invalid" Changed: "The signature of the envelope is invalid.", "Do not give it to a model. Request another envelope.";
    422 "issuer_mismatch" Changed: "Another gateway issued the envelope.", "Do not give it to a model. Request an envelope from this gateway.";
    422 "thread_mismatch" Changed: "The envelope is for another thread.", "Do not give it to a model. Request one for this thread.";
    422 "node_mismatch" Changed: "The envelope is for another node.", "Do not give it to a model. Request one for this node.";
    422 "envelope_mismatch" Changed: "The content of the envelope differs from the signed content.", "Do not give it to a model. Request another envelope.";
    422 "hmac_missing" Changed: "The envelope has no HMAC, and one is required.", "Request the envelope with `hmac=true`.";
    422 "hmac_expired" Changed: "The HMAC uses a secret that is not valid now.", "Request another envelope and the secrets of the node.";
    422 "hmac_mismatch" Changed: "The HMAC does not match the envelope and the secret of its node.", "Do not give it to a model. Request another envelope.";
    422 "stale" Changed: "The thread has a newer version than the envelope.", "Request another envelope.";
    422 "digest_mismatch" Changed: "The transition of the envelope is not part of the thread.", "Do not give it to a model. Request another envelope.";
    422 "required_missing" Changed: "The view lacks a path that the node requires. `errors` lists the paths.", "Add the values to the state, or change `requires` in the policy.";
    422 "schema_mismatch" Changed: "The view does not match the schema of what the node receives (`receives`). `errors` lists the differences.", "Correct the state or the schema.";
    422 "tokens_mismatch" Changed: "The envelope does not have the number of tokens that it states.", "Do not give it to a model. Request another envelope.";
    422 "over_budget" Changed: "The required paths have more tokens than the node may receive (`max_tokens`).", "Shorten the values, or raise `max_tokens`.";
    429 "too_many_requests" Later: "The rate limit, or the limit of concurrent waits or streams, is reached.", "Wait for the time in `Retry-After`, then send the same request again.";
    500 "chain_broken" No: "The stored data differs from the signed data.", "Stop. Have an auditor run `countersign audit`.";
    500 "internal" Later: "The gateway failed.", "Give the request id to an administrator. The server log has details.";
    500 "keyring" No: "The gateway cannot use its keys.", "Give the request id to an administrator.";
    503 "busy" Later: "Other requests changed the thread three times in a row.", "Send the same request again.";
    503 "store_unavailable" Later: "The database is down, read-only or full. The request may have been carried out.", "Wait for the time in `Retry-After`, then send the same request again. Nothing is done twice.";
    503 "clock_skew" Later: "The clock of the gateway differs from its database's clock by more than 2 s.", "Wait until an administrator corrects the clocks.";
    503 "archive_missing" Later: "The archive file with this version is missing.", "An administrator must restore the file from a backup.";
    503 "archive_damaged" Later: "The archive file with this version differs from the file that was written.", "An administrator must restore the file from a backup.";
};

/// Every code of a denial of `verify`, in the order of the checks.
pub const DENIAL_TEXTS: &[ErrorText] = texts! {
    403 "malformed" Changed: "The request is not a valid verify request.", "Correct the body.";
    403 "forbidden" No: "The token is not a writer's token for the flow of this thread.", "Use the token of the flow's writer.";
    403 "unknown_thread" No: "The thread does not exist.", "Take the thread from your own job.";
    403 "imported" No: "The thread is an imported run, which is never written.", "Write nothing.";
    403 "halted" Later: "Verifying is halted (kill switch).", "Wait until an administrator lifts the halt.";
    403 "closed" No: "The thread is closed.", "Ask the host application about the thread.";
    403 "branch" No: "The thread is a branch, which is never written.", "Join the branch, and verify the result on its parent thread.";
    403 "chain_broken" No: "The stored chain differs from the signed chain.", "Write nothing. Have an auditor run `countersign audit`.";
    403 "not_head" No: "Another version was committed after this transition.", "Read the thread. This transition can no longer be written.";
    403 "policy_mismatch" No: "The head is under a policy that is no longer accepted.", "Have an agent propose `reaffirm`, or have an administrator accept the policy.";
    403 "already_used" No: "The head was already reserved by a write.", "Read the outcome of that write. After an abort or an expired lease, have an agent propose `reaffirm`.";
    403 "write_in_progress" Later: "Another write of this thread holds a lease.", "Wait until its lease expires.";
    403 "receipt_missing" Changed: "The head requires the receipt of its approval.", "Send the receipt.";
    403 "receipt_malformed" No: "The receipt does not have the form of a receipt.", "Write nothing, and report it.";
    403 "unknown_key" No: "The key of the receipt is unknown, or may no longer sign.", "Write nothing, and report it.";
    403 "signature_invalid" No: "The signature of the receipt is invalid.", "Write nothing, and report it.";
    403 "issuer_mismatch" No: "Another gateway issued the receipt.", "Write nothing, and report it.";
    403 "audience_mismatch" No: "The receipt is for another writer.", "Write nothing, and report it.";
    403 "not_yet_valid" Later: "The receipt is not valid yet.", "Wait, then verify again.";
    403 "expired" No: "The receipt has expired.", "Have an agent propose `reaffirm`.";
    403 "thread_mismatch" No: "The receipt is for another thread or flow.", "Write nothing, and report it.";
    403 "version_mismatch" No: "The receipt is for another version.", "Write nothing, and report it.";
    403 "digest_mismatch" No: "The receipt is for another transition.", "Write nothing, and report it.";
    403 "revoked" No: "The receipt, or an approval that the head depends on, was revoked.", "Have an agent propose `reaffirm`.";
    403 "expectation_failed" No: "A value in `expect` differs from the state, or the writer may not read it.", "Write nothing, and report it.";
};

/// Every code of an item of `errors`, in alphabetical order.
pub const FAULT_TEXTS: &[ErrorText] = texts! {
    0 "attempts_exhausted" No: "The node has opened as many reviews on this head, or for this change, as the policy allows. Or it was rejected twice under `retry_once`. Or the step has no attempts left.", "Propose another change, or stop.";
    0 "budget" Changed: "The request exceeds a budget, or does not report a bounded amount.", "Report `usage`, or use less.";
    0 "conflict" Changed: "Branches have several values at this path.", "Settle the path in `resolve`.";
    0 "duplicate_key" Changed: "Two keys of one object are equal, or become equal in Unicode normal form C.", "Remove one of the keys.";
    0 "empty" Changed: "The text contains no JSON value.", "Send a JSON value.";
    0 "encoding" Changed: "The text is not UTF-8, or a new key of the state is not in Unicode normal form C.", "Normalize the key.";
    0 "immutable" Changed: "An immutable value would change or be removed, or is missing.", "Leave the value unchanged.";
    0 "keyed_array" Changed: "A list of keyed items would lose, move or change an item, or gain one that is not allowed. Or the value is not such a list.", "Keep the items and their order. Append new ones at the end.";
    0 "malformed" Changed: "This member is invalid.", "Follow `detail`.";
    0 "nobody_can_approve" No: "The request requires approval, and no reviewer can approve it.", "Add reviewers to the groups of the policy, then send the next `attempt`.";
    0 "not_a_number" Changed: "The JSON contains NaN or an infinity.", "Send `null` or a string.";
    0 "not_monotonic" Changed: "A number would shrink, stop being an integer or be removed, or is missing.", "Send an equal or greater integer.";
    0 "number_not_exact" Changed: "A number cannot be represented exactly as a double.", "Send the number as a string.";
    0 "order_regressed" Changed: "A value would go back in its order, leave the order or be removed, or is missing.", "Send the same or a later value of the order.";
    0 "patch_failed" Changed: "The patch is invalid in its format, or does not apply to the head.", "Read your view again and correct the patch.";
    0 "read_not_allowed" Changed: "The request depends on a path outside the node's `reads`.", "Use only paths that the node reads, or send `merge-patch`.";
    0 "required_missing" Changed: "The node requires this path, and it is missing.", "Add the value to the state.";
    0 "rule_denied" Changed: "A rule of the policy denies the request. `rule` is its name and `detail` its reason.", "Follow the reason.";
    0 "rule_error" Changed: "A rule cannot be evaluated for this request. `rule` is its name.", "Send the values that the rule needs, or correct the rule.";
    0 "schema" Changed: "The state or the sent value does not match its schema, or the state would not be an object.", "Correct the value at `pointer`.";
    0 "schema_too_costly" Changed: "Checking the state or the sent value against a schema needs more steps than one check may take.", "Simplify the schema, or store less in the state.";
    0 "syntax" Changed: "The text is not valid JSON.", "Correct the JSON at `offset`.";
    0 "too_deep" Changed: "The text or the state would be nested deeper than allowed.", "Flatten the value.";
    0 "too_large" Changed: "The text or the state would be larger than allowed.", "Shorten the value.";
    0 "tool_not_allowed" Changed: "The policy does not allow the node to call this tool.", "Call an allowed tool, or change `tools` in the policy.";
    0 "write_denied" Changed: "The node's `deny` covers this path, or a writer's result touches a protected path.", "Leave the path unchanged.";
    0 "write_not_allowed" Changed: "The node's `writes` do not cover this path. Also: the node is unknown, or may not roll back or confirm.", "Write only paths in `writes`.";
};
