//! Who proposes: a machine by its token, or, where the policy lets them, a person by their account.

use crate::domain::account::{Account, Token};
use crate::domain::id::PrincipalId;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// Who proposes.
#[derive(Clone, Copy)]
pub(super) enum Proposer<'a> {
    /// A machine, by its token.
    Token(&'a Stored<Token>),
    /// A person, by their account.
    Person(&'a Stored<Account>),
}

impl Proposer<'_> {
    /// Whom the statement names.
    pub(super) fn principal(&self) -> PrincipalId {
        match self {
            Self::Token(it) => it.record.principal(),
            Self::Person(it) => PrincipalId::from(&it.record.id),
        }
    }

    /// Who had a hand in it, and so cannot approve it: whoever answers for the token, or the person.
    pub(super) fn author(&self) -> &str {
        match self {
            Self::Token(it) => &it.record.owner,
            Self::Person(it) => it.record.id.as_str(),
        }
    }

    /// The decision relies on the row as it was read.
    pub(super) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Token(it) => draft.rely_on(it),
            Self::Person(it) => draft.rely_on(it),
        };
    }
}
