//! The errors of the use cases. Unless a variant states otherwise, nothing was changed.

use countersign_adapters::archives::ArchiveFileError;
use countersign_adapters::keyring::KeyringError;
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::oidc_identity::SignInRejected;
use countersign_domain::identity::passkey::AssertionRejected;
use countersign_domain::interrupts::InterruptRejected;
use countersign_domain::json::parse::JsonError;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::platform::idempotency::IdempotencyError;
use countersign_domain::policy::PolicyError;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::VoteRejected;
use countersign_domain::threads::approval_request::ApprovalRequestError;
use countersign_domain::threads::thread::Checkpoint;
use countersign_store::StoreError;
use serde_json::Value;

use super::episodes::envelope_error::{EnvelopeCreationError, EnvelopeRejected};
use super::platform::rejection_body::RejectionBody;

/// Why a request has no valid token. An unknown token and a wrong secret are the same, so that no client learns which
/// tokens exist. Only the holder of the secret learns that a token has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenRefusal {
    #[error("The request has no token. Send the header `Authorization: Bearer cs_…`.")]
    Missing,
    #[error(
        "The header `Authorization` has no token. Send `Bearer`, a space, and the whole token, which begins with `cs_`."
    )]
    Malformed,
    #[error("The token is unknown. Check that it is complete and that it is a token of this gateway.")]
    Unknown,
    #[error("The token was revoked or has expired. Ask an administrator for a new one.")]
    Ended,
}

/// The reason why a use case failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thing does not exist, or the caller may not see it. Both cases look the same, so that a caller cannot probe for names.
    #[error("The {0} does not exist, or you may not see it. Check its name or id.")]
    NotFound(&'static str),
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("The role {role} may not do that: it takes {may}")]
    NotOfRole { role: &'static str, may: String },
    #[error("This request needs a session or a valid token. Sign in, or send a token.")]
    Unauthenticated,
    #[error("{0}")]
    Token(TokenRefusal),
    #[error("The request is not strict JSON ({}). Correct it and send it again.", .0.code.as_str())]
    Json(JsonError),
    /// The request is well-formed and cannot be carried out as it is.
    #[error("{detail}")]
    Invalid {
        pointer: String,
        /// The problem and the next step, in fixed words: unauthenticated clients must not see their own
        /// input quoted.
        detail: String,
    },
    #[error("The policy rejects the transition. Correct what `errors` names and propose again.")]
    Rejected(RejectionBody),
    #[error("The policy is refused with `{code}`: {0}. Correct it and send it again.", code = policy_code(.0))]
    Policy(PolicyError),
    /// Another commit changed the head after the caller read it.
    #[error("Another commit moved the head. Read the head and propose again.")]
    HeadMoved { version: u64, transition: Digest },
    /// The step name was used for another request.
    #[error(
        "This step was already used for another request. Use a new step name, or read the outcome of the first one."
    )]
    StepReused {
        /// The transition that the step committed, or that is held for approval.
        transition: Digest,
        checkpoint: Checkpoint,
    },
    /// Several branches changed the same path to different values.
    #[error(
        "The branches changed the same path to different values. Use another strategy, or set the values by `resolve`."
    )]
    Conflict {
        places: Vec<Pointer>,
        /// The current head of the thread that the branches were to be joined on.
        checkpoint: Checkpoint,
    },
    #[error(transparent)]
    NotSealed(#[from] EnvelopeCreationError),
    #[error("The envelope is invalid ({}). Request a new envelope and propose again.", .0.code.as_str())]
    Envelope(EnvelopeRejected),
    #[error("A pending review holds the thread. Wait until it is decided, or cancel its proposal.")]
    ThreadHeld(ReviewId),
    /// A writer has a reservation and has not reported its outcome.
    #[error("A write is in progress on this thread. Wait until it ends, then repeat the request.")]
    WriteInProgress,
    #[error("An administrator has halted the flow or the gateway. Repeat the request after the halt is lifted.")]
    Halted,
    #[error("The thread is closed. Reopen it, or use another thread.")]
    Closed,
    #[error("This thread is an imported run, which is read-only. Use another thread.")]
    Imported,
    /// A different object with the same name exists.
    #[error("{0}")]
    Exists(&'static str),
    #[error("{0}")]
    WrongState(&'static str),
    /// The gateway does not allow the write.
    #[error("The gateway denies the write ({}). The errors reference has the next step for this code.", .0.as_str())]
    Denied(DenialCode),
    #[error(transparent)]
    NotTaken(#[from] InterruptRejected),
    #[error(transparent)]
    ApprovalRequest(#[from] ApprovalRequestError),
    /// The idempotency key of the request was used before, and its stored response cannot be returned.
    #[error(transparent)]
    NotRepeated(#[from] IdempotencyError),
    #[error(transparent)]
    Vote(#[from] VoteRejected),
    #[error("The passkey signature is invalid: {0}. Repeat the request with a new challenge.")]
    Passkey(#[from] AssertionRejected),
    /// The request did not come from the configured proxy. Such requests could forge the client's address.
    #[error("This address accepts requests only from the configured proxy. Use the gateway's public URL.")]
    Misdirected,
    /// The gateway refuses the sign-in that the OpenID provider confirmed.
    #[error("Sign-in with the OpenID provider failed ({}). Try again, or ask an administrator.", .0.as_str())]
    NotLetIn(SignInRejected),
    /// The rate limit of one client is reached.
    #[error("Too many requests from this client. Wait as long as `Retry-After` states, then try again.")]
    TooMany,
    /// Three attempts in a row lost against concurrent commits.
    #[error("Concurrent requests changed the same thread. Repeat the request.")]
    Busy,
    #[error("The deadline has passed without a decision. Propose again.")]
    Expired,
    /// The clocks of the gateway and the database differ. A signature now would contain a wrong time.
    #[error(
        "The clocks of the gateway and its database differ by more than 2 s, so the gateway decides nothing. An administrator must set the clocks right."
    )]
    ClockSkew,
    #[error("The values of this version were erased under the policy's retention. Its signed digests remain.")]
    Erased,
    /// The values of a version are in an archive file that cannot be read.
    #[error("An archive cannot be read. An administrator finds the cause in the server log.")]
    Archive(#[source] ArchiveFileError),
    /// The values of a version are in an archive, and this gateway has no archive directory configured.
    #[error("This gateway has no archive directory. Set `archives` in its configuration.")]
    NoArchives,
    #[error("An archive cannot be written or removed. Check the permissions and the space of the archive directory.")]
    Unwritten(#[source] std::io::Error),
    /// Stored data does not match its signature or seal: it was tampered with or damaged.
    #[error("Stored data does not match what was signed. An administrator must run `countersign audit`.")]
    Broken(&'static str),
    /// The database is down, read-only, full or damaged. A commit that was in progress may have succeeded.
    #[error("The database is unavailable. Repeat the request later.")]
    Unavailable(#[source] StoreError),
    /// The store failed. If the database itself failed, a commit that was in progress may have succeeded.
    #[error("The store failed. An administrator finds the cause in the server log.")]
    Store(#[source] StoreError),
    /// The log export cannot be written.
    #[error("The log export cannot be written. Check its destination in the configuration.")]
    Copy(#[source] std::io::Error),
    #[error("The mail server cannot be used. Check the `mail` section of the configuration.")]
    Mail(#[source] countersign_adapters::mail::MailError),
    #[error("The keyring cannot be used. Check its file and permissions.")]
    Keyring(#[from] KeyringError),
}

/// The party that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The gateway refuses the request. The sentence of the error has the reason.
    Refused,
    /// The gateway cannot carry out the request now. The same request may succeed later.
    Unavailable,
    /// The gateway failed. The server log has the cause.
    Failed,
}

/// The result of a use case.
pub type Result<T> = std::result::Result<T, Error>;

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::ClockSkew => Self::ClockSkew,
            // The decision relied on an expired lease that is still valid for the database. Use cases that rely on a deadline handle this error themselves.
            StoreError::TooSoon => Self::WriteInProgress,
            unavailable @ StoreError::Unavailable { .. } => Self::Unavailable(unavailable),
            other => Self::Store(other),
        }
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl Error {
    /// Returns an error about one member of a request. `pointer` is its JSON Pointer.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        Self::Invalid { pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// Returns the kind. The match is exhaustive, so that each new error gets one.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_)
            | Self::Forbidden(_)
            | Self::NotOfRole { .. }
            | Self::Unauthenticated
            | Self::Token(_)
            | Self::Json(_)
            | Self::Invalid { .. }
            | Self::Rejected(_)
            | Self::Policy(_)
            | Self::HeadMoved { .. }
            | Self::StepReused { .. }
            | Self::Conflict { .. }
            | Self::NotSealed(_)
            | Self::Envelope(_)
            | Self::ThreadHeld(_)
            | Self::WriteInProgress
            | Self::Halted
            | Self::Closed
            | Self::Imported
            | Self::Exists(_)
            | Self::WrongState(_)
            | Self::Denied(_)
            | Self::NotTaken(_)
            | Self::ApprovalRequest(_)
            | Self::NotRepeated(_)
            | Self::Vote(_)
            | Self::Passkey(_)
            | Self::Misdirected
            | Self::NotLetIn(_)
            | Self::Expired
            | Self::Erased => ErrorKind::Refused,
            Self::TooMany
            | Self::Busy
            | Self::ClockSkew
            | Self::Archive(_)
            | Self::NoArchives
            | Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Unwritten(_)
            | Self::Broken(_)
            | Self::Store(_)
            | Self::Copy(_)
            | Self::Mail(_)
            | Self::Keyring(_) => ErrorKind::Failed,
        }
    }

    /// Returns whether stored data did not match its signature or seal.
    pub const fn is_chain_failure(&self) -> bool {
        matches!(
            self,
            Self::Broken(_)
                | Self::Denied(DenialCode::ChainBroken)
                | Self::Store(StoreError::Unsealed(_) | StoreError::Unreadable(_))
        )
    }

    /// Returns whether only the requested object is unreadable, now or permanently, while the gateway and its
    /// database work. Other objects can still be read.
    pub const fn is_of_what_is_told(&self) -> bool {
        let gone = matches!(self, Self::NotFound(_) | Self::Archive(_) | Self::NoArchives | Self::Erased);
        gone || self.is_chain_failure()
    }

    /// Returns whether the request may have been carried out although it failed, because the database failed
    /// during the commit. The caller can repeat the same request safely: nothing is done twice.
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Store(StoreError::Database(_)))
    }

    /// Returns whether the database is unavailable, so that every other use of it fails too.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Returns whether a deadline passed, by the database's clock, between the decision and the commit.
    pub(super) fn is_too_late(&self) -> bool {
        matches!(self, Self::Store(StoreError::TooLate))
    }

    /// Returns whether the decision relied on a lease or a deadline that has not yet passed by the database's
    /// clock.
    pub(super) fn is_too_soon(&self) -> bool {
        matches!(self, Self::WriteInProgress)
    }

    /// Turns a deadline that passed before the commit into [`VoteRejected::Expired`].
    pub(super) fn expired_if_too_late(self) -> Self {
        if self.is_too_late() { VoteRejected::Expired.into() } else { self }
    }

    /// Returns success if a deadline passed before the commit, for work that has no purpose after it.
    pub(super) fn ok_if_too_late(self) -> Result<()> {
        if self.is_too_late() { Ok(()) } else { Err(self) }
    }

    /// Returns success if a lease or a deadline has not yet passed, for work that is due only after it.
    pub(super) fn ok_if_too_soon(self) -> Result<()> {
        if self.is_too_soon() { Ok(()) } else { Err(self) }
    }

    /// Turns a conflict into [`Error::Busy`], for use cases that do not decide again.
    pub(super) fn busy_if_conflict(self) -> Self {
        if self.is_conflict() { Self::Busy } else { self }
    }

    /// Returns whether a new decision on fresh data may succeed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(StoreError::Conflict(_)))
    }
}

const fn policy_code(error: &PolicyError) -> &'static str {
    error.code.as_str()
}

/// The `data` member of an event.
pub type EventData = Value;

#[cfg(test)]
mod tests {
    use countersign_store::outage::Outage;

    use super::*;

    #[test]
    fn only_a_failure_of_the_database_leaves_the_outcome_unknown() {
        let failures = [StoreError::Database("x".to_owned()), StoreError::unavailable(Outage::Down, "x")];
        for failure in failures {
            assert!(Error::from(failure).outcome_is_unknown());
        }
        let refusals = [StoreError::Conflict("rows"), StoreError::TooLate, StoreError::TooSoon, StoreError::Busy];
        for refusal in refusals.into_iter().chain([StoreError::ClockSkew, StoreError::Unsealed("rows")]) {
            assert!(!Error::from(refusal).outcome_is_unknown());
        }
    }
}
