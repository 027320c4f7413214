//! Names of people, groups and token owners: which exist, and which look like an existing one.
//!
//! The owner decides who may not approve the proposals of a token. A name that only looks like that of an account would
//! exclude no one. The owner must therefore exist before a token names it.

use std::collections::BTreeSet;

use countersign_domain::identity::account::{Account, PersonRole, Token};
use countersign_domain::identity::party::Party;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::confusable::alike;
use countersign_domain::primitives::id::GroupName;

use crate::service::error::{Error, Result};
use crate::service::identity::Identity;

const NO_SUCH_OWNER: &str = "no account and no group has this name: check the spelling, or create a new group (`--new-group`, or the checkbox on the page)";
const SEVERAL_OWNERS: &str = "several accounts or groups have similar names: write the exact name";
const OWNER_IS_A_PERSON: &str = "an account has this name or a similar one: choose another name for the new group";
const GROUP_LOOKS_ALIKE: &str = "a group has a similar name: write its exact name, or choose another name";
const NAME_TAKEN: &str = "an account with this name exists already, and it was not changed: choose another name";
const NAME_LOOKS_ALIKE: &str =
    "an account with a similar name exists already, and it was not changed: choose another name";
const NAME_OF_AN_OWNER: &str = "a group or the owner of a token has this name or a similar one: choose another name, and add the account to that group if it owns the tokens";
const GROUP_IS_A_PERSON: &str =
    "an account has the name of this new group or a similar one, so members would own its tokens: choose another name";

/// Owner of a new token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewOwner {
    /// An existing account or group.
    Existing(String),
    /// A group that may have no members yet.
    Group(String),
}

impl Identity {
    /// Returns the names of the reviewers whom the owner's tokens exclude, by separation of duties.
    pub async fn excluded_by(&self, owner: &str) -> Result<Vec<String>> {
        Ok(excluded_by(owner, &self.people().await?))
    }

    /// Returns a token as a reader, with the people who own it.
    pub async fn reader_with(&self, token: &Token) -> Result<Party> {
        Ok(Party::reader(token, &self.accounts_all(&*self.core.keys()?).await?))
    }

    /// Returns the stored name of an owner: the exact spelling of the account or the group. An account can also be
    /// given by its id.
    pub(in crate::service) async fn owner_named(&self, keys: &Keys, owner: &NewOwner) -> Result<String> {
        let people = self.accounts_all(keys).await?;
        let groups = self.groups_of(&people);
        let bad = |why: &str| Error::invalid("/owner", why);
        match owner {
            NewOwner::Existing(name) => {
                if let Some(account) = people.iter().find(|it| it.id.as_str() == name) {
                    return Ok(account.name.clone());
                }
                let persons = people.iter().map(|it| it.name.as_str());
                let known: BTreeSet<&str> = persons.chain(groups.iter().map(GroupName::as_str)).collect();
                if known.contains(name.as_str()) {
                    return Ok(name.clone());
                }
                // A name that differs only in case or in similar characters is resolved if the result is unique.
                let mut like = known.into_iter().filter(|it| alike(it, name));
                match (like.next(), like.next()) {
                    (Some(one), None) => Ok(one.to_owned()),
                    (None, _) => Err(bad(NO_SUCH_OWNER)),
                    (Some(_), Some(_)) => Err(bad(SEVERAL_OWNERS)),
                }
            }
            NewOwner::Group(name) => {
                let group = GroupName::try_from(name.as_str()).map_err(|error| bad(&error.to_string()))?;
                // A group that looks like a person would exclude no one from voting.
                if people.iter().any(|it| alike(&it.name, name)) {
                    return Err(bad(OWNER_IS_A_PERSON));
                }
                check_group(&group, &groups).map_err(|()| bad(GROUP_LOOKS_ALIKE))?;
                Ok(name.clone())
            }
        }
    }

    /// Rejects a new account if its name looks like that of an account, a group or the owner of a token. Rejects also new
    /// groups that look like an existing name.
    pub(in crate::service) async fn check_names(
        &self,
        keys: &Keys,
        name: &str,
        groups: &BTreeSet<GroupName>,
    ) -> Result<()> {
        let people = self.accounts_all(keys).await?;
        if people.iter().any(|it| it.name == name) {
            return Err(Error::Exists(NAME_TAKEN));
        }
        if people.iter().any(|it| alike(&it.name, name)) {
            return Err(Error::Exists(NAME_LOOKS_ALIKE));
        }
        if self.is_name_of_owner(&people, name).await? || groups.iter().any(|it| alike(it.as_str(), name)) {
            return Err(Error::Exists(NAME_OF_AN_OWNER));
        }
        self.check_groups(&people, groups)
    }

    /// Checks whether a name looks like that of a group, or of the owner of a token, even a revoked one. A new account
    /// with that name would count as an owner: it would see copies of redacted values that the owner's tokens wrote.
    pub(in crate::service) async fn is_name_of_owner(&self, people: &[Account], name: &str) -> Result<bool> {
        let owners: BTreeSet<String> = self.tokens().await?.into_iter().map(|it| it.owner).collect();
        let groups = self.groups_of(people);
        Ok(groups.iter().map(GroupName::as_str).chain(owners.iter().map(String::as_str)).any(|it| alike(it, name)))
    }

    /// Rejects a new group that looks like an existing group or account.
    pub(in crate::service) fn check_groups(&self, people: &[Account], groups: &BTreeSet<GroupName>) -> Result<()> {
        let known = self.groups_of(people);
        let new = |it: &&GroupName| !known.contains(*it);
        // The members of a group own the tokens whose owner has its name, so they would own those of the account.
        if groups.iter().filter(new).any(|it| people.iter().any(|person| alike(&person.name, it.as_str()))) {
            return Err(Error::invalid("/groups", GROUP_IS_A_PERSON));
        }
        let checked = groups.iter().try_for_each(|it| check_group(it, &known));
        checked.map_err(|()| Error::invalid("/groups", GROUP_LOOKS_ALIKE))
    }

    /// Returns the groups of all people, and the groups that values of the OpenID provider are mapped to.
    fn groups_of(&self, people: &[Account]) -> BTreeSet<GroupName> {
        // A mapped group exists even while no account is in it.
        let mapped = self.ways().provider.iter().flat_map(|it| &it.settings.mapping.groups).map(|(_, group)| group);
        people.iter().flat_map(|it| &it.groups).chain(mapped).cloned().collect()
    }
}

fn check_group(group: &GroupName, known: &BTreeSet<GroupName>) -> std::result::Result<(), ()> {
    let other = known.iter().any(|it| it != group && alike(it.as_str(), group.as_str()));
    // An existing group stays usable, even if a similar one exists.
    if other && !known.contains(group) { Err(()) } else { Ok(()) }
}

/// Returns the names of the reviewers among these people whom the owner's tokens exclude.
pub fn excluded_by(owner: &str, people: &[Account]) -> Vec<String> {
    let excluded = |it: &&Account| it.role == PersonRole::Reviewer && !it.disabled && it.answers_for(owner);
    people.iter().filter(excluded).map(|it| it.name.clone()).collect()
}
