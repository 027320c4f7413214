//! Requests to halt or resume, their requesters and their previews.

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::PrincipalId;

use crate::store::change::Draft;
use crate::store::record::Stored;

/// The person or token that halts or resumes.
#[derive(Clone, Copy, Debug)]
pub enum Actor<'a> {
    Person(&'a Stored<Account>),
    Token(&'a Stored<Token>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HaltRequest {
    /// Sets both halts to these values.
    Set(Halt),
    /// Sets the halts that are true here and leaves the other one.
    Stop(Halt),
    /// Lifts the halts that are true here and leaves the other one.
    Lift(Halt),
}

/// The result of a request, as the preview shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HaltPreview {
    /// The request is stored, and another person has to make the same one.
    Asked,
    Done,
}

impl HaltRequest {
    pub(super) fn halt(&self) -> &Halt {
        let (Self::Set(halt) | Self::Stop(halt) | Self::Lift(halt)) = self;
        halt
    }

    /// Returns the same request with another reason.
    pub(super) fn saying(&self, reason: String) -> Self {
        let halt = Halt { reason, ..self.halt().clone() };
        match self {
            Self::Set(_) => Self::Set(halt),
            Self::Stop(_) => Self::Stop(halt),
            Self::Lift(_) => Self::Lift(halt),
        }
    }

    pub(super) fn next(&self, now: &Halt) -> Halt {
        match self {
            Self::Set(halt) => halt.clone(),
            Self::Stop(halt) => Halt {
                proposing: now.proposing || halt.proposing,
                verifying: now.verifying || halt.verifying,
                reason: halt.reason.clone(),
            },
            Self::Lift(halt) => Halt {
                proposing: now.proposing && !halt.proposing,
                verifying: now.verifying && !halt.verifying,
                reason: halt.reason.clone(),
            },
        }
    }
}

impl Actor<'_> {
    pub(in crate::service) fn principal(&self) -> PrincipalId {
        match self {
            Self::Person(account) => PrincipalId::from(&account.record.id),
            Self::Token(token) => token.record.principal(),
        }
    }

    pub(in crate::service) fn name(&self) -> &str {
        match self {
            Self::Person(account) => &account.record.name,
            Self::Token(token) => &token.record.name,
        }
    }

    /// Requires at commit time that the rights of the requester are unchanged.
    pub(in crate::service) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Person(account) => drop(draft.require_unchanged(account)),
            Self::Token(token) => drop(draft.require_unchanged(token)),
        }
    }
}
