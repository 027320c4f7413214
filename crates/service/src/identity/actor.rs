//! The person or token that acts.

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::primitives::id::PrincipalId;
use countersign_store::change::Draft;
use countersign_store::record::Stored;

/// The name of an operator with shell access to the gateway's host and its keyring. Only an operator can lift
/// a halt alone if two people are needed.
pub const OPERATOR: &str = "command-line";

/// The person or token that halts or resumes.
#[derive(Clone, Copy, Debug)]
pub enum Actor<'a> {
    Person(&'a Stored<Account>),
    Token(&'a Stored<Token>),
}

impl Actor<'_> {
    pub(crate) fn principal(&self) -> PrincipalId {
        match self {
            Self::Person(account) => PrincipalId::from(&account.record.id),
            Self::Token(token) => token.record.principal(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Person(account) => &account.record.name,
            Self::Token(token) => &token.record.name,
        }
    }

    /// Requires at commit time that the rights of the requester are unchanged.
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Person(account) => drop(draft.require_unchanged(account)),
            Self::Token(token) => drop(draft.require_unchanged(token)),
        }
    }
}
