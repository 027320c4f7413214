//! Who wrote a text and who reads it, and whether the reader could have chosen the text.

use std::collections::BTreeSet;

use super::account::{Account, MachineRole, Token};
use crate::domain::primitives::confusable::alike;
use crate::domain::primitives::id::{AccountId, GroupName, NodeId, PrincipalId};

/// A person, a machine, or a reader that the gateway cannot tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// A person with an account.
    Person {
        id: AccountId,
        /// The name that owners are given by.
        name: String,
        /// The groups that may own tokens.
        groups: BTreeSet<GroupName>,
    },
    Token {
        id: PrincipalId,
        /// The person or group that answers for it.
        owner: String,
        /// The nodes that it may act as, and so read as.
        nodes: BTreeSet<NodeId>,
    },
    /// The receiver of a webhook or of an exported log, which writes nothing here; or an auditor, who may read every state.
    Receiver,
    /// An author whose account or token is gone.
    Gone,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Author {
    party: Party,
    nodes: BTreeSet<NodeId>,
}

impl From<&Account> for Party {
    fn from(account: &Account) -> Self {
        Self::Person { id: account.id.clone(), name: account.name.clone(), groups: account.groups.clone() }
    }
}

impl From<&Token> for Party {
    fn from(token: &Token) -> Self {
        match token.role {
            MachineRole::Auditor => Self::Receiver,
            _ => Self::Token { id: token.principal(), owner: token.owner.clone(), nodes: token.nodes.clone() },
        }
    }
}

impl Party {
    /// The id of the account or token, if it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Person { id, .. } => Some(id.as_str()),
            Self::Token { id, .. } => Some(id.as_str()),
            Self::Receiver | Self::Gone => None,
        }
    }

    /// Whether this reader could have chosen what `author` wrote: it is the author, owns it, is owned by it, or has the
    /// same owner. An author who is gone may be anybody but a receiver.
    pub fn could_have_written_as(&self, author: &Self) -> bool {
        match (self, author) {
            (Self::Receiver, _) | (_, Self::Receiver) => false,
            (Self::Gone, _) | (_, Self::Gone) => true,
            (Self::Person { id, .. }, Self::Person { id: other, .. }) => id == other,
            (Self::Token { id, owner, .. }, Self::Token { id: other, owner: others, .. }) => {
                id == other || alike(owner, others)
            }
            (person @ Self::Person { .. }, Self::Token { owner, .. })
            | (Self::Token { owner, .. }, person @ Self::Person { .. }) => person.is_owner(owner),
        }
    }

    /// Whether an owner's name means this person, alone or as one of a group.
    fn is_owner(&self, owner: &str) -> bool {
        match self {
            Self::Person { id, name, groups } => {
                id.as_str() == owner || alike(owner, name) || groups.iter().any(|it| alike(owner, it.as_str()))
            }
            Self::Token { .. } | Self::Receiver | Self::Gone => false,
        }
    }
}

impl Author {
    /// An author who writes as no node.
    pub const fn of(party: Party) -> Self {
        Self { party, nodes: BTreeSet::new() }
    }

    /// An author who names a node. A machine reads what all of its nodes read; a person who asks for something in the name
    /// of a node reads nothing by it.
    pub fn as_node(party: Party, node: Option<&NodeId>) -> Self {
        let nodes = match &party {
            Party::Token { nodes, .. } => nodes.iter().chain(node).cloned().collect(),
            Party::Person { .. } | Party::Receiver | Party::Gone => BTreeSet::new(),
        };
        Self { party, nodes }
    }

    pub const fn party(&self) -> &Party {
        &self.party
    }

    /// The nodes as which a machine that wrote it can read.
    pub const fn nodes(&self) -> &BTreeSet<NodeId> {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, groups: &[&str]) -> Party {
        let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
        Party::Person { id: format!("id-of-{name}").as_str().try_into().unwrap(), name: name.to_owned(), groups }
    }

    fn token(name: &str, owner: &str) -> Party {
        Party::Token {
            id: name.try_into().unwrap(),
            owner: owner.to_owned(),
            nodes: BTreeSet::from(["vault".try_into().unwrap()]),
        }
    }

    #[test]
    fn a_reader_could_have_chosen_what_it_or_its_own_wrote() {
        let (ada, ben) = (person("ada", &["ops"]), person("ben", &["ops"]));
        let (hers, teams, other) = (token("t1", "ada"), token("t2", "ops"), token("t3", "elsewhere"));
        for (reader, author) in [(&ada, &ada), (&hers, &hers), (&ada, &hers), (&hers, &ada), (&ben, &teams)] {
            assert!(reader.could_have_written_as(author), "{reader:?} {author:?}");
        }
        assert!(token("t4", "ops").could_have_written_as(&teams), "one owner, two tokens");
        for (reader, author) in [(&ada, &ben), (&ben, &hers), (&ada, &other), (&hers, &teams), (&other, &ben)] {
            assert!(!reader.could_have_written_as(author), "{reader:?} {author:?}");
        }
    }

    #[test]
    fn an_author_who_is_gone_may_be_any_reader_and_a_receiver_is_no_author() {
        let ada = person("ada", &[]);
        assert!(ada.could_have_written_as(&Party::Gone) && token("t", "x").could_have_written_as(&Party::Gone));
        assert!(!Party::Receiver.could_have_written_as(&Party::Gone) && !Party::Receiver.could_have_written_as(&ada));
    }

    #[test]
    fn a_person_reads_nothing_by_naming_a_node() {
        let (node, other): (NodeId, NodeId) = ("planner".try_into().unwrap(), "vault".try_into().unwrap());
        assert!(Author::as_node(person("ada", &[]), Some(&node)).nodes().is_empty());
        let nodes = Author::as_node(token("t", "ada"), Some(&node)).nodes().clone();
        assert_eq!(nodes, BTreeSet::from([node, other]), "what it read as one node it can write as another");
    }
}
