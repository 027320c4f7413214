//! Names of people, groups and owners: which exist, and which a person would take for one that exists.
//!
//! An owner decides who may not approve what a token proposes. A name that only looks like an account's would exclude
//! nobody, so an owner exists before a token names it.

use std::collections::BTreeSet;

use crate::domain::identity::account::{Account, PersonRole};
use crate::domain::keys::Keys;
use crate::domain::primitives::confusable::alike;
use crate::domain::primitives::id::GroupName;
use crate::service::Service;
use crate::service::error::{Error, Result};

const NO_SUCH_OWNER: &str = "no account and no group has this name: check the spelling, or make it a new group (`--new-group`, or the box on the page)";
const SEVERAL_OWNERS: &str = "several accounts or groups have names like this one: write the exact name";
const OWNER_IS_A_PERSON: &str = "an account has this name, or one that looks like it: it cannot be a new group";
const GROUP_LOOKS_ALIKE: &str = "a group has a name that looks like this one: write the exact name, or choose another";
const NAME_TAKEN: &str = "there is an account of that name already; nothing of it was changed";
const NAME_LOOKS_ALIKE: &str =
    "there is an account of a name that looks like this one; nothing of it was changed. Choose another name";

/// Who answers for a new token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewOwner {
    /// An account or a group that exists.
    Existing(String),
    /// A group, which may have no members yet.
    Group(String),
}

impl Service {
    /// The names of the reviewers whom an owner's tokens exclude, by separation of duties.
    pub async fn excluded_by(&self, owner: &str) -> Result<Vec<String>> {
        Ok(excluded_by(owner, &self.people().await?))
    }

    /// The name under which an owner is stored: that of the account or group as it is spelled there. An account may be given
    /// by its id.
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
                let mut like = known.into_iter().filter(|it| alike(it, name));
                match (like.next(), like.next()) {
                    (Some(one), None) => Ok(one.to_owned()),
                    (None, _) => Err(bad(NO_SUCH_OWNER)),
                    (Some(_), Some(_)) => Err(bad(SEVERAL_OWNERS)),
                }
            }
            NewOwner::Group(name) => {
                let group = GroupName::try_from(name.as_str()).map_err(|error| bad(&error.to_string()))?;
                if people.iter().any(|it| alike(&it.name, name)) {
                    return Err(bad(OWNER_IS_A_PERSON));
                }
                check_group(&group, &groups).map_err(|()| bad(GROUP_LOOKS_ALIKE))?;
                Ok(name.clone())
            }
        }
    }

    /// Refuses a new account whose name, or one of whose new groups, looks like one that exists.
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
        self.check_groups(&people, groups)
    }

    /// Refuses a new group that looks like one that exists.
    pub(in crate::service) fn check_groups(&self, people: &[Account], groups: &BTreeSet<GroupName>) -> Result<()> {
        let known = self.groups_of(people);
        let checked = groups.iter().try_for_each(|it| check_group(it, &known));
        checked.map_err(|()| Error::invalid("/groups", GROUP_LOOKS_ALIKE))
    }

    /// Groups that somebody is in, and those that an OpenID provider's values are mapped to.
    fn groups_of(&self, people: &[Account]) -> BTreeSet<GroupName> {
        let mapped = self.ways().provider.iter().flat_map(|it| &it.settings.mapping.groups).map(|(_, group)| group);
        people.iter().flat_map(|it| &it.groups).chain(mapped).cloned().collect()
    }
}

fn check_group(group: &GroupName, known: &BTreeSet<GroupName>) -> std::result::Result<(), ()> {
    let other = known.iter().any(|it| it != group && alike(it.as_str(), group.as_str()));
    if other && !known.contains(group) { Err(()) } else { Ok(()) }
}

/// The names of the reviewers among these people whom an owner's tokens exclude.
pub fn excluded_by(owner: &str, people: &[Account]) -> Vec<String> {
    let excluded = |it: &&Account| it.role == PersonRole::Reviewer && !it.disabled && it.answers_for(owner);
    people.iter().filter(excluded).map(|it| it.name.clone()).collect()
}
