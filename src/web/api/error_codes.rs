//! Every code that a machine may be answered with, by status: for the description, which a test holds against answers.

use crate::domain::chain::denial::DenialCode;
use crate::domain::json::parse::JsonCode;
use crate::domain::policy::RejectCode;

/// Codes of problems by status. What verify denies is 403 and has codes of its own.
pub const BY_STATUS: &[(u16, &str, &[&str])] = &[
    (
        400,
        "It cannot be understood; `errors` says where",
        &["malformed", "empty", "syntax", "duplicate_key", "not_a_number", "number_not_exact", "too_deep", "encoding"],
    ),
    (401, "No valid token, or no valid signature", &["unauthenticated", "webhook_stale"]),
    (403, "The role or the node is not the asker's", &["forbidden"]),
    (404, "Not there, or not of the asker's flow", &["not_found"]),
    (405, "Not by this method; `Allow` says by which", &["method_not_allowed"]),
    (
        409,
        "Not as things stand",
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
        ],
    ),
    (410, "Erased, as the policy has it; what was signed of it stays", &["state_erased"]),
    (413, "The body is too long", &["too_large"]),
    (421, "Not through the proxy that this gateway stands behind", &["misdirected"]),
    (
        422,
        "Understood, and refused",
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
    (429, "Too much at once; wait as long as `Retry-After` says", &["too_many_requests"]),
    (500, "The gateway failed; the log says more under the request's id", &["chain_broken", "internal", "keyring"]),
    (
        503,
        "Not now; wait as long as `Retry-After` says",
        &["busy", "store_unavailable", "clock_skew", "archive_missing", "archive_damaged"],
    ),
];

/// What verify denies with, all of it 403.
pub fn denials() -> Vec<&'static str> {
    DenialCode::ALL.iter().map(|it| it.as_str()).collect()
}

/// Codes in `errors`.
pub fn faults() -> Vec<&'static str> {
    let json = JsonCode::ALL.iter().map(|it| it.as_str());
    let rejected = RejectCode::ALL.iter().map(|it| it.as_str());
    let mut all: Vec<_> =
        ["malformed", "conflict", "required_missing"].into_iter().chain(json).chain(rejected).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether the description has the code.
pub fn is_described(status: u16, code: &str) -> bool {
    BY_STATUS.iter().any(|(of, _, codes)| *of == status && codes.contains(&code))
        || (status == 403 && DenialCode::ALL.iter().any(|it| it.as_str() == code))
}
