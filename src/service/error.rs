//! Why the gateway did not do as asked. Nothing was changed in any of these cases, unless said.

use serde_json::Value;

use crate::archives::ArchiveFileError;
use crate::domain::chain::denial::DenialCode;
use crate::domain::chain::hash::Digest;
use crate::domain::identity::oidc_identity::SignInRejected;
use crate::domain::identity::passkey::AssertionRejected;
use crate::domain::interrupts::InterruptRejected;
use crate::domain::json::parse::JsonError;
use crate::domain::json::pointer::Pointer;
use crate::domain::platform::idempotency::IdempotencyError;
use crate::domain::policy::PolicyError;
use crate::domain::primitives::id::ReviewId;
use crate::domain::reviews::VoteRejected;
use crate::domain::threads::thread::Checkpoint;
use crate::keyring::KeyringError;
use crate::store::StoreError;

use super::episodes::envelope_error::{EnvelopeCreationError, EnvelopeRejected};
use super::platform::rejection_body::RejectionBody;

/// Why the gateway did not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such thing, or the asker may not know of it.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The asker may not do that.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The asker's role may not do that.
    #[error("the role {role} may not do that: it takes {may}")]
    NotOfRole { role: &'static str, may: String },
    #[error("sign in, or send a valid token")]
    Unauthenticated,
    /// The request's JSON is not strict JSON.
    #[error("the JSON is refused: {}", .0.code.as_str())]
    Json(JsonError),
    /// The request is well-formed and asks for something that cannot be.
    #[error("{detail}")]
    Invalid {
        pointer: String,
        /// What is wrong and what to do, in fixed words.
        detail: String,
    },
    /// The policy rejects the transition.
    #[error("the policy rejects it")]
    Rejected(RejectionBody),
    /// A policy that does not compile.
    #[error("the policy is refused: {0}")]
    Policy(PolicyError),
    /// Something else was committed since.
    #[error("the head has moved; read it and propose again")]
    HeadMoved { version: u64, transition: Digest },
    /// Something else was done under the name of this step.
    #[error("this step has done something else; give what is new a name of its own, or read what became of it")]
    StepReused {
        /// What it has done, or people may still let it do.
        transition: Digest,
        checkpoint: Checkpoint,
    },
    /// Branches have several values at one place.
    #[error("the branches do not agree; settle it by another strategy, or by `resolve`")]
    Conflict {
        places: Vec<Pointer>,
        /// The head that they were to be joined on, as it is.
        checkpoint: Checkpoint,
    },
    /// No envelope is made of a view.
    #[error(transparent)]
    NotSealed(#[from] EnvelopeCreationError),
    /// An envelope is not believed.
    #[error("the envelope is not believed: {}", .0.code.as_str())]
    Envelope(EnvelopeRejected),
    /// The thread waits for people.
    #[error("the thread is held by a review")]
    ThreadHeld(ReviewId),
    /// A writer was let through and has not said how it went.
    #[error("a write is in progress; wait until it ends")]
    WriteInProgress,
    #[error("halted; it goes on when an administrator lifts the halt")]
    Halted,
    /// The thread takes nothing.
    #[error("the thread is closed")]
    Closed,
    /// The thread is a run that was imported.
    #[error("this is a run that was imported; it is read, and nothing else is done with it")]
    Imported,
    /// It is there already, and not the same.
    #[error("{0}")]
    Exists(&'static str),
    /// It is not in the state that the request needs.
    #[error("{0}")]
    WrongState(&'static str),
    /// A writer is not let through.
    #[error("denied: {}", .0.as_str())]
    Denied(DenialCode),
    /// What a host posted is not taken.
    #[error(transparent)]
    NotTaken(#[from] InterruptRejected),
    /// A request that has a key is neither carried out nor answered as before.
    #[error(transparent)]
    NotRepeated(#[from] IdempotencyError),
    #[error(transparent)]
    Vote(#[from] VoteRejected),
    /// A passkey does not count.
    #[error("the passkey does not count: {0}")]
    Passkey(#[from] AssertionRejected),
    /// It came another way than through a named proxy.
    #[error("ask at the gateway's public address; it answers nobody else than its proxy here")]
    Misdirected,
    /// Whom an OpenID provider sent back is not let in.
    #[error("signing in with the organisation did not work: {}", .0.as_str())]
    NotLetIn(SignInRejected),
    /// Too much at once from one asker.
    #[error("too many requests; wait a little")]
    TooMany,
    /// Others were faster three times in a row.
    #[error("the thread is busy; try again")]
    Busy,
    /// A deadline has passed before it was done.
    #[error("the deadline has passed; nobody decided in time")]
    Expired,
    /// The gateway's clock and the database's differ: what it would sign would bear a wrong time.
    #[error(
        "this gateway's clock is more than 2 s off its database's, so it decides nothing; an administrator must set the clocks right"
    )]
    ClockSkew,
    /// The values of a version are erased.
    #[error("the values of this version are erased, as the policy has it; what was signed of it stays")]
    Erased,
    /// A version's values are in an archive whose file cannot be used.
    #[error("an archive cannot be used")]
    Archive(#[source] ArchiveFileError),
    /// A version's values are in an archive, and this gateway was not told where those are.
    #[error("it is not known where archives are")]
    NoArchives,
    /// An archive cannot be written or removed.
    #[error("an archive cannot be written or removed")]
    Unwritten(#[source] std::io::Error),
    /// What is stored does not agree with what was signed.
    #[error("what is stored is not what was signed")]
    Broken(&'static str),
    /// The database is down, read-only, full or damaged. What was under way may have been carried out all the same.
    #[error("the database cannot be used now")]
    Unavailable(#[source] StoreError),
    /// The store failed. If the database itself did, what was under way may have been carried out all the same.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The copy of the log cannot be written.
    #[error("the copy of the log cannot be written")]
    Copy(#[source] std::io::Error),
    /// People cannot be told by mail.
    #[error("the mail server cannot be used")]
    Mail(#[source] crate::mail::MailError),
    /// The keyring cannot be used.
    #[error("the keyring cannot be used")]
    Keyring(#[from] KeyringError),
}

/// What a service method gives.
pub type Result<T> = std::result::Result<T, Error>;

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::ClockSkew => Self::ClockSkew,
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
    /// A part of a request that cannot be.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        Self::Invalid { pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// Whether what is stored was found not to be what was signed, or sealed.
    pub const fn is_chain_failure(&self) -> bool {
        matches!(
            self,
            Self::Broken(_)
                | Self::Denied(DenialCode::ChainBroken)
                | Self::Store(StoreError::Unsealed(_) | StoreError::Unreadable(_))
        )
    }

    /// Whether it is what is told of that cannot be read, now or ever, and not the gateway or its database that fails: another
    /// thing can be told all the same.
    pub const fn is_of_what_is_told(&self) -> bool {
        let gone = matches!(self, Self::NotFound(_) | Self::Archive(_) | Self::NoArchives | Self::Erased);
        gone || self.is_chain_failure()
    }

    /// Whether the request may have been carried out although it failed: the database failed, perhaps after it had the
    /// commit. The same request can be sent again, and nothing is done twice.
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Store(StoreError::Database(_)))
    }

    /// Whether the database cannot be used, so that whatever else needs it fails as well.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// By the database's clock, a deadline passed between deciding and committing.
    pub(super) fn is_too_late(&self) -> bool {
        matches!(self, Self::Store(StoreError::TooLate))
    }

    /// By the database's clock, what was relied on having passed has not: a lease, which the asker is told of so, or a
    /// deadline.
    pub(super) fn is_too_soon(&self) -> bool {
        matches!(self, Self::WriteInProgress)
    }

    /// Whoever decides only once has been too slow, and may come again.
    pub(super) fn busy_if_conflict(self) -> Self {
        if self.is_conflict() { Self::Busy } else { self }
    }

    /// Whether deciding again on fresh facts may succeed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(StoreError::Conflict(_)))
    }
}

/// A JSON object as events carry it.
pub type EventData = Value;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::outage::Outage;

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
