//! The proposer of a change: a machine with a token, or a person.

use std::collections::BTreeSet;

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::primitives::id::{NodeId, PrincipalId};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

/// A person is no node, so no value is readable to a person as a node.
static NO_NODES: BTreeSet<NodeId> = BTreeSet::new();

#[derive(Clone, Copy)]
pub(crate) enum Proposer<'a> {
    Token(&'a Stored<Token>),
    Person(&'a Stored<Account>),
    /// A person who edits the proposal of a machine.
    Editor(&'a Stored<Account>, &'a Stored<Token>),
}

impl Proposer<'_> {
    /// Returns the principal that the statement names.
    pub(crate) fn principal(&self) -> PrincipalId {
        match self {
            Self::Token(it) => it.record.principal(),
            Self::Person(it) | Self::Editor(it, _) => PrincipalId::from(&it.record.id),
        }
    }

    /// Returns the principal that the policy judges. An edit is judged as if the agent itself had proposed
    /// it.
    pub(crate) fn judged_as(&self) -> PrincipalId {
        match self {
            Self::Editor(_, agent) => agent.record.principal(),
            Self::Token(_) | Self::Person(_) => self.principal(),
        }
    }

    /// Returns whether the policy limits the attempts. The earlier attempts of an agent must not block a
    /// person who acts for the same node.
    pub(crate) fn has_tries(&self) -> bool {
        matches!(self, Self::Token(_) | Self::Editor(..))
    }

    pub(crate) fn editor(&self) -> Option<&Stored<Account>> {
        match self {
            Self::Editor(person, _) => Some(person),
            Self::Token(_) | Self::Person(_) => None,
        }
    }

    /// Returns the author, who cannot approve the change (separation of duties): the owner of the token, or
    /// the person.
    pub(crate) fn author(&self) -> &str {
        match self {
            Self::Token(it) | Self::Editor(_, it) => &it.record.owner,
            Self::Person(it) => it.record.id.as_str(),
        }
    }

    /// Returns the nodes whose redacted values the request is compared with before the proposer sees the result.
    pub(crate) fn readable_nodes(&self) -> &BTreeSet<NodeId> {
        match self {
            Self::Token(it) => &it.record.nodes,
            Self::Person(_) | Self::Editor(..) => &NO_NODES,
        }
    }

    /// Requires at commit time that the rows of the proposer are unchanged.
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        match self {
            Self::Token(it) => draft.require_unchanged(it),
            Self::Person(it) => draft.require_unchanged(it),
            Self::Editor(person, agent) => draft.require_unchanged(person).require_unchanged(agent),
        };
    }
}
