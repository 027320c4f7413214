//! What somebody wishes about a stop, who they are, and what the wish comes to.

use crate::domain::identity::account::{Account, Token};
use crate::domain::operations::halt::Halt;
use crate::domain::primitives::id::PrincipalId;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// Who pulls a stop, or lets go.
#[derive(Clone, Copy, Debug)]
pub enum Actor<'a> {
    Person(&'a Stored<Account>),
    Token(&'a Stored<Token>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HaltRequest {
    /// Both as they are said here.
    Set(Halt),
    /// What is true here stops; the rest stays.
    Stop(Halt),
    /// What is true here goes on; the rest stays.
    Lift(Halt),
}

/// What a wish comes to, as whoever has it is told before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HaltPreview {
    /// It is written down, and somebody else has to have the same.
    Asked,
    Done,
}

impl HaltRequest {
    pub(super) fn halt(&self) -> &Halt {
        let (Self::Set(halt) | Self::Stop(halt) | Self::Lift(halt)) = self;
        halt
    }

    /// The same, for another reason.
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

    /// What they do counts only if they still stand as they did when they asked.
    pub(in crate::service) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Person(account) => drop(draft.require_unchanged(account)),
            Self::Token(token) => drop(draft.require_unchanged(token)),
        }
    }
}
