//! Noticing: when people are reminded of a hold that nobody has decided, and when others are asked as well.
//!
//! The moments follow from the hold, and so does who may vote: that an event was written is a fact of its own, and nothing
//! waits for it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState};
use crate::domain::primitives::id::GroupName;
use crate::domain::primitives::time::Timestamp;

/// What is said of a hold while it waits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldReminders {
    /// When those who are asked are reminded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<Reminder>,
    /// When others are asked as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// When those who are asked are reminded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reminder {
    pub from: Timestamp,
    /// When the event of it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

/// When others are asked as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    pub from: Timestamp,
    /// Whose members may then vote in every stage, besides the stage's own.
    pub to: BTreeSet<GroupName>,
    /// When the event of it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

/// What a look at a hold finds that is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DueReminder {
    /// Those who are asked are reminded.
    Reminded,
    /// Others are asked as well.
    Escalated,
}

impl HoldReminders {
    /// Whether nothing is ever said.
    pub const fn are_none(&self) -> bool {
        self.reminder.is_none() && self.escalation.is_none()
    }

    /// The moments at which something is to be told that was not told yet.
    fn pending(&self) -> impl Iterator<Item = Timestamp> {
        let reminder = self.reminder.filter(|it| it.told_at.is_none()).map(|it| it.from);
        let escalation = self.escalation.as_ref().filter(|it| it.told_at.is_none()).map(|it| it.from);
        reminder.into_iter().chain(escalation)
    }
}

impl Hold {
    /// The groups that may vote in every stage by then, besides the stage's own.
    pub fn escalation_groups(&self, now: Timestamp) -> Option<&BTreeSet<GroupName>> {
        self.notices.escalation.as_ref().filter(|it| it.from <= now).map(|it| &it.to)
    }

    /// Whose members may vote in a stage by then.
    pub fn groups_for_stage(&self, stage: usize, now: Timestamp) -> BTreeSet<GroupName> {
        let own = self.stages.get(stage).into_iter().flat_map(|it| &it.groups);
        own.chain(self.escalation_groups(now).into_iter().flatten()).cloned().collect()
    }

    /// Whether somebody of these groups is asked by then.
    pub fn asks(&self, groups: &BTreeSet<GroupName>, now: Timestamp) -> bool {
        (0..self.stages.len()).any(|stage| !self.groups_for_stage(stage, now).is_disjoint(groups))
    }

    /// The next moment at which something is due without anybody asking.
    pub fn next_due(&self) -> Timestamp {
        match self.state {
            HoldState::Open {} => self.notices.pending().chain([self.expires_at]).min().unwrap_or(self.expires_at),
            _ => self.expires_at,
        }
    }

    /// The hold once everything is told that is due, and what that is; `None` if nothing is.
    pub fn noticed(mut self, now: Timestamp) -> Option<(Self, Vec<DueReminder>)> {
        if !self.is_open(now) {
            return None;
        }
        let mut told = Vec::new();
        if let Some(reminder) = &mut self.notices.reminder
            && reminder.told_at.is_none()
            && reminder.from <= now
        {
            reminder.told_at = Some(now);
            told.push(DueReminder::Reminded);
        }
        if let Some(escalation) = &mut self.notices.escalation
            && escalation.told_at.is_none()
            && escalation.from <= now
        {
            escalation.told_at = Some(now);
            told.push(DueReminder::Escalated);
        }
        (!told.is_empty()).then_some((self, told))
    }
}
