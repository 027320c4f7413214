//! Who proposes: a machine by its token, or a person by their account.

use std::collections::BTreeSet;

use crate::domain::identity::account::{Account, Token};
use crate::domain::policy::ComparedValues;
use crate::domain::primitives::id::{NodeId, PrincipalId};
use crate::store::change::Draft;
use crate::store::record::Stored;

/// As which a person reads nothing.
static NO_NODES: BTreeSet<NodeId> = BTreeSet::new();

#[derive(Clone, Copy)]
pub(in crate::service) enum Proposer<'a> {
    Token(&'a Stored<Token>),
    /// A person, by their account.
    Person(&'a Stored<Account>),
    /// A person, who rewrites what a machine asked for.
    Editor(&'a Stored<Account>, &'a Stored<Token>),
}

impl Proposer<'_> {
    /// Whom the statement names.
    pub(in crate::service) fn principal(&self) -> PrincipalId {
        match self {
            Self::Token(it) => it.record.principal(),
            Self::Person(it) | Self::Editor(it, _) => PrincipalId::from(&it.record.id),
        }
    }

    /// As whom it is judged: what was rewritten, as if the agent itself had asked.
    pub(in crate::service) fn judged_as(&self) -> PrincipalId {
        match self {
            Self::Editor(_, agent) => agent.record.principal(),
            Self::Token(_) | Self::Person(_) => self.principal(),
        }
    }

    /// Whether a policy bounds how often it may ask. People are not kept from asking by what an agent asked before, in the
    /// name of the same node.
    pub(in crate::service) fn has_tries(&self) -> bool {
        matches!(self, Self::Token(_) | Self::Editor(..))
    }

    /// Who rewrites what was asked for, if somebody does.
    pub(in crate::service) fn editor(&self) -> Option<&Stored<Account>> {
        match self {
            Self::Editor(person, _) => Some(person),
            Self::Token(_) | Self::Person(_) => None,
        }
    }

    /// Who had a hand in it, and so cannot approve it: whoever answers for the token, or the person.
    pub(in crate::service) fn author(&self) -> &str {
        match self {
            Self::Token(it) | Self::Editor(_, it) => &it.record.owner,
            Self::Person(it) => it.record.id.as_str(),
        }
    }

    /// Which redacted values its request is compared with where it may see the result.
    pub(in crate::service) fn comparison(&self) -> ComparedValues<'_> {
        match self {
            Self::Token(it) => ComparedValues::WithReadable(&it.record.nodes),
            Self::Person(_) | Self::Editor(..) => ComparedValues::WithReadable(&NO_NODES),
        }
    }

    /// The decision relies on the rows as they were read.
    pub(in crate::service) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Token(it) => draft.require_unchanged(it),
            Self::Person(it) => draft.require_unchanged(it),
            Self::Editor(person, agent) => draft.require_unchanged(person).require_unchanged(agent),
        };
    }
}
