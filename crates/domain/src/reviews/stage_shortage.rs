//! Explains why the stages of an approval cannot be filled: the groups, and why each member cannot vote.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ApprovalStage, can_be_approved, is_author};
use crate::identity::account::{Account, PersonRole};
use crate::primitives::id::GroupName;
use crate::primitives::named_enum::named_json_enum;

/// Maximum number of members that a shortage lists.
const MEMBERS_MAX: usize = 50;

/// A stage that cannot be filled. It names reviewers, so only people and auditors may read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageShortage {
    /// The stage, from 0.
    pub stage: u32,
    pub groups: BTreeSet<GroupName>,
    /// The number of distinct people who must approve.
    pub need: u32,
    /// The number of members who could vote in this stage.
    pub eligible: u32,
    /// The members of the groups by name, the first ones if there are many.
    pub members: Vec<StageMember>,
}

/// A member of a stage's groups.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageMember {
    pub name: String,
    /// The reason why the member cannot vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<StageExclusion>,
}

named_json_enum! {
    /// The reason why a member of a group cannot vote in a stage.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum StageExclusion {
        Disabled = "disabled",
        /// The account has another role than reviewer.
        Role = "role",
        /// The account is an author of the change, or owns the token that proposed it.
        Author = "author",
    }
}

/// Returns the stages that these people cannot fill. Empty if they can fill all stages together.
///
/// If each stage has enough members, but one person is needed in several stages, all stages are returned.
pub fn shortages(stages: &[ApprovalStage], excluded: &BTreeSet<String>, people: &[Account]) -> Vec<StageShortage> {
    if can_be_approved(stages, excluded, people) {
        return Vec::new();
    }
    let all: Vec<StageShortage> =
        (0..).zip(stages).map(|(index, stage)| StageShortage::of(index, stage, excluded, people)).collect();
    let alone: Vec<StageShortage> = all.iter().filter(|it| it.eligible < it.need).cloned().collect();
    if alone.is_empty() { all } else { alone }
}

impl StageShortage {
    fn of(stage: u32, asked: &ApprovalStage, excluded: &BTreeSet<String>, people: &[Account]) -> Self {
        let member = |it: &Account| StageMember { name: it.name.clone(), why_not: why_not(it, excluded) };
        let mut members: Vec<StageMember> =
            people.iter().filter(|it| !it.groups.is_disjoint(&asked.groups)).map(member).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let eligible = members.iter().filter(|it| it.why_not.is_none()).count();
        let eligible = u32::try_from(eligible).unwrap_or(u32::MAX);
        members.truncate(MEMBERS_MAX);
        Self { stage, groups: asked.groups.clone(), need: asked.need, eligible, members }
    }

    /// Returns the groups and the number of votes, which agents may know. The answer to a held proposal has them too.
    pub fn terms(&self) -> String {
        let groups: Vec<&str> = self.groups.iter().map(GroupName::as_str).collect();
        let people = if self.need == 1 { "reviewer" } else { "reviewers" };
        format!("stage {} needs {} {people} of {}", u64::from(self.stage) + 1, self.need, groups.join(" or "))
    }
}

impl fmt::Display for StageShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, and {} can vote", self.terms(), self.eligible)?;
        let member = |it: &StageMember| match it.why_not {
            Some(why) => format!("{} ({})", it.name, why.detail()),
            None => it.name.clone(),
        };
        let members: Vec<String> = self.members.iter().map(member).collect();
        if members.is_empty() { write!(f, ": no account is a member") } else { write!(f, ": {}", members.join(", ")) }
    }
}

impl StageExclusion {
    /// Returns the reason in words.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Disabled => "the account is disabled",
            Self::Role => "the account is not a reviewer",
            Self::Author => "an author of the change, or an owner of the token",
        }
    }
}

/// Returns why a member cannot vote, in the order of the rules for votes.
fn why_not(person: &Account, excluded: &BTreeSet<String>) -> Option<StageExclusion> {
    if person.disabled {
        return Some(StageExclusion::Disabled);
    }
    if person.role != PersonRole::Reviewer {
        return Some(StageExclusion::Role);
    }
    is_author(excluded, person).then_some(StageExclusion::Author)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::account::AccountCredential;
    use crate::primitives::time::Timestamp;
    use crate::reviews::{ConfirmationMethod, PasskeyRequirement};

    fn person(name: &str, role: PersonRole, groups: &[&str]) -> Account {
        Account {
            id: name.try_into().unwrap(),
            name: name.to_owned(),
            role,
            groups: groups.iter().map(|it| GroupName::try_from(*it).unwrap()).collect(),
            sign_in: AccountCredential::Password { hash: String::new() },
            disabled: false,
            created_at: Timestamp::from_millis(0),
            changed: None,
        }
    }

    fn stage(group: &str, need: u32) -> ApprovalStage {
        ApprovalStage {
            groups: BTreeSet::from([group.try_into().unwrap()]),
            need,
            comment_required: false,
            passkey: PasskeyRequirement::Nothing {},
            confirm: ConfirmationMethod::Pressing,
        }
    }

    #[test]
    fn shortage_names_each_member_and_why_not() {
        let mut people = vec![
            person("ada", PersonRole::Reviewer, &["finance", "platform"]),
            person("bob", PersonRole::Reviewer, &["finance"]),
            person("carl", PersonRole::Admin, &["finance"]),
            person("dora", PersonRole::Reviewer, &["finance"]),
            person("eve", PersonRole::Reviewer, &["other"]),
        ];
        people[3].disabled = true;
        let owner = BTreeSet::from(["platform".to_owned()]);
        assert_eq!(shortages(&[stage("finance", 1)], &owner, &people), []);
        let [short] = shortages(&[stage("finance", 2)], &owner, &people).try_into().unwrap();
        assert_eq!((short.stage, short.need, short.eligible), (0, 2, 1));
        let why: Vec<_> = short.members.iter().map(|it| (it.name.as_str(), it.why_not)).collect();
        assert_eq!(
            why,
            [
                ("ada", Some(StageExclusion::Author)),
                ("bob", None),
                ("carl", Some(StageExclusion::Role)),
                ("dora", Some(StageExclusion::Disabled)),
            ]
        );
        assert_eq!(short.terms(), "stage 1 needs 2 reviewers of finance");
        assert!(!short.terms().contains("ada"), "agents may read the terms");
        assert!(short.to_string().contains("ada (an author of the change, or an owner of the token), bob, carl"));
    }

    #[test]
    fn one_person_in_two_stages_makes_both_short() {
        let people = [person("ada", PersonRole::Reviewer, &["finance", "security"])];
        let stages = [stage("finance", 1), stage("security", 1)];
        let short = shortages(&stages, &BTreeSet::new(), &people);
        assert_eq!(short.iter().map(|it| (it.stage, it.eligible)).collect::<Vec<_>>(), [(0, 1), (1, 1)]);
        let empty = shortages(&[stage("finance", 1), stage("nobody", 1)], &BTreeSet::new(), &people);
        assert_eq!(empty.iter().map(|it| (it.stage, it.members.len())).collect::<Vec<_>>(), [(1, 0)]);
        assert!(empty[0].to_string().ends_with("and 0 can vote: no account is a member"));
    }
}
