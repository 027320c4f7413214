//! Authors and readers of texts, and whether a reader could have written a text.

use std::collections::BTreeSet;

use super::account::{Account, MachineRole, Token};
use crate::primitives::confusable::alike;
use crate::primitives::id::{AccountId, GroupName, NodeId, PrincipalId};

/// A person, a machine, or an unknown reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// A person with an account.
    Person {
        id: AccountId,
        /// The name by which tokens name their owner.
        name: String,
        /// The groups of the person. A group may own a token too.
        groups: BTreeSet<GroupName>,
    },
    Token {
        id: PrincipalId,
        /// The owner of the token.
        owner: String,
        /// The nodes that it may act as. It can read what they read.
        nodes: BTreeSet<NodeId>,
        /// The people who own it, by name or by group. Empty for an author, because it is enough to resolve one of
        /// two parties.
        people: Vec<Self>,
    },
    /// The receiver of a webhook or of a log export, which writes nothing here. Also an auditor, who may read every
    /// state.
    Receiver,
    /// An author whose account or token is deleted.
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
            // An auditor may read every state, so its reads need no comparison with an author.
            MachineRole::Auditor => Self::Receiver,
            _ => Self::Token {
                id: token.principal(),
                owner: token.owner.clone(),
                nodes: token.nodes.clone(),
                people: Vec::new(),
            },
        }
    }
}

impl Party {
    /// Returns a token as a reader. One person can own it by name and another token by a group, so the people who own it
    /// are compared too.
    pub fn reader<'a>(token: &Token, accounts: impl IntoIterator<Item = &'a Account>) -> Self {
        let mut reader = Self::from(token);
        if let Self::Token { people, .. } = &mut reader {
            people.extend(accounts.into_iter().filter(|it| it.answers_for(&token.owner)).map(Self::from));
        }
        reader
    }

    /// Returns the id of the account or token, if it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Person { id, .. } => Some(id.as_str()),
            Self::Token { id, .. } => Some(id.as_str()),
            Self::Receiver | Self::Gone => None,
        }
    }

    /// Checks that this reader could have written the author's text: they are the same, one owns the other, or one person
    /// owns both. A deleted author could be anyone except a receiver.
    pub fn could_have_written_as(&self, author: &Self) -> bool {
        match (self, author) {
            // A receiver never writes, so it has no text of its own.
            (Self::Receiver, _) | (_, Self::Receiver) => false,
            // The owner of a deleted account is unknown, so the cautious answer is yes.
            (Self::Gone, _) | (_, Self::Gone) => true,
            (Self::Person { id, .. }, Self::Person { id: other, .. }) => id == other,
            (Self::Token { id, owner, people, .. }, Self::Token { id: other, owner: others, .. }) => {
                id == other || alike(owner, others) || people.iter().any(|it| it.is_owner(others))
            }
            (person @ Self::Person { .. }, Self::Token { owner, .. })
            | (Self::Token { owner, .. }, person @ Self::Person { .. }) => person.is_owner(owner),
        }
    }

    /// Checks that an owner's name means this person or one of their groups.
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
    /// Returns an author without a node.
    pub const fn of(party: Party) -> Self {
        Self { party, nodes: BTreeSet::new() }
    }

    /// Returns an author who names a node. A machine can read what all its nodes read. A person who names a node gains
    /// no read access by it.
    pub fn as_node(party: Party, node: Option<&NodeId>) -> Self {
        let nodes = match &party {
            Party::Token { nodes, .. } => nodes.iter().chain(node).cloned().collect(),
            // A person could otherwise gain the reads of a node by naming it.
            Party::Person { .. } | Party::Receiver | Party::Gone => BTreeSet::new(),
        };
        Self { party, nodes }
    }

    pub const fn party(&self) -> &Party {
        &self.party
    }

    /// Returns the nodes that the machine can read as.
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
            people: Vec::new(),
        }
    }

    fn owned_by(mut token: Party, owners: &[&Party]) -> Party {
        if let Party::Token { people, .. } = &mut token {
            people.extend(owners.iter().map(|it| (*it).clone()));
        }
        token
    }

    #[test]
    fn tokens_of_one_person_are_one_party_whether_a_name_or_a_group_owns_them() {
        let (ada, ben) = (person("ada", &["ops", "eng"]), person("ben", &["eng"]));
        let author = |owner: &str| token("author", owner);
        let (hers, of_ops) = (owned_by(token("t1", "ada"), &[&ada]), owned_by(token("t2", "ops"), &[&ada]));
        assert!(hers.could_have_written_as(&author("ops")) && of_ops.could_have_written_as(&author("ada")));
        assert!(of_ops.could_have_written_as(&author("eng")), "two groups with one member in both");
        assert!(!owned_by(token("t3", "ben"), &[&ben]).could_have_written_as(&author("ops")));
    }

    #[test]
    fn reader_could_have_written_own_and_owned_texts() {
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
    fn deleted_author_could_be_any_reader_and_a_receiver_is_no_author() {
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
