//! Whether an answer is the one to its request, signed for it. Nothing here has an effect.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType, Unverified};
use countersign_domain::chain::receipt::{Receipt, Verification};
use countersign_domain::keys::{KeyState, KeyUse, PublicKeys};

/// Why an answer is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AnswerMismatch {
    Malformed,
    UnknownKey,
    Signature,
    Issuer,
    Thread,
    Transition,
    Write,
    Receipt,
    Fence,
    Lease,
    Enforced,
    Expired,
    Expectation,
    Request,
    Unused,
    Tool,
    Arguments,
}

impl AnswerMismatch {
    /// Returns the code, for programs.
    pub const fn code(self) -> &'static str {
        self.parts().0
    }

    pub const fn detail(self) -> &'static str {
        self.parts().1
    }

    const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("receipt_malformed", "a signed value is not in its form"),
            Self::UnknownKey => ("unknown_key", "no key of that name signs, or signed, answers"),
            Self::Signature => ("signature_invalid", "the answer was not signed by that key"),
            Self::Issuer => ("issuer_mismatch", "another gateway signed the answer"),
            Self::Thread => ("thread_mismatch", "the answer is about another thread"),
            Self::Transition => ("digest_mismatch", "the answer is about another transition"),
            Self::Write => ("write_mismatch", "the answer is about another write"),
            Self::Receipt => ("receipt_mismatch", "another receipt was used"),
            Self::Fence => ("fence_mismatch", "another fencing token was signed"),
            Self::Lease => ("lease_mismatch", "another lease was signed"),
            Self::Enforced => ("enforced_mismatch", "another value of `enforced` was signed"),
            Self::Expired => ("expired", "the lease has expired by the local clock"),
            Self::Expectation => ("expectation_failed", "the view is not as expected"),
            Self::Request => ("request_mismatch", "the answer is about another approval request"),
            Self::Unused => ("approval_unused", "the answer does not say that the approval was used"),
            Self::Tool => ("tool_mismatch", "the answer is about another tool"),
            Self::Arguments => ("arguments_mismatch", "the answer has other arguments"),
        }
    }
}

/// Returns an error unless the values are equal.
pub fn must(equal: bool, otherwise: AnswerMismatch) -> Result<(), AnswerMismatch> {
    if equal { Ok(()) } else { Err(otherwise) }
}

/// Returns the claims of a signed answer about a thread. Without keys they bind the answer, and prove nothing.
pub fn claims_of(token: &str, thread: &str, keys: Option<&PublicKeys>) -> Result<Verification, AnswerMismatch> {
    let read: Unverified<Verification> =
        jws::read(token, TokenType::Verification).map_err(|_| AnswerMismatch::Malformed)?;
    let claims = match keys {
        None => read.claims_unverified().clone(),
        Some(keys) => {
            let key = keys.public(KeyUse::Chain, read.kid()).ok_or(AnswerMismatch::UnknownKey)?;
            must(matches!(key.state(), KeyState::Signing | KeyState::Retired), AnswerMismatch::UnknownKey)?;
            let claims = read.verify(key).ok_or(AnswerMismatch::Signature)?;
            must(keys.issuer().is_none_or(|it| it == claims.iss), AnswerMismatch::Issuer)?;
            claims
        }
    };
    must(claims.sub.as_str() == thread, AnswerMismatch::Thread)?;
    Ok(claims)
}

/// Returns the id of a receipt that the writer sends.
pub fn receipt_id(token: &str) -> Result<String, AnswerMismatch> {
    let read: Unverified<Receipt> = jws::read(token, TokenType::Receipt).map_err(|_| AnswerMismatch::Malformed)?;
    Ok(read.claims_unverified().jti.to_string())
}

/// Checks that claims are about this write.
pub fn check_write(claims: &Verification, transition: &Digest, write_id: &str) -> Result<(), AnswerMismatch> {
    must(claims.transition == *transition, AnswerMismatch::Transition)?;
    must(claims.write_id.as_str() == write_id, AnswerMismatch::Write)
}
