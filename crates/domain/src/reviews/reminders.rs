//! Reminders and escalations of undecided reviews.
//!
//! The times, and the right to vote after an escalation, follow from the review itself. Nothing waits for the event to
//! be written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState};
use crate::primitives::id::GroupName;
use crate::primitives::time::Timestamp;

/// The reminder and the escalation of a pending review.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldReminders {
    /// When the reviewers are reminded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<Reminder>,
    /// When more groups are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// When the reviewers are reminded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reminder {
    pub from: Timestamp,
    /// The time at which the event was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

/// When more groups are asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    pub from: Timestamp,
    /// The groups that may then vote in every stage, in addition to the stage's own groups.
    pub to: BTreeSet<GroupName>,
    /// The time at which the event was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

/// An event that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DueReminder {
    Reminded,
    Escalated,
}

impl HoldReminders {
    /// Checks that there is neither a reminder nor an escalation.
    pub const fn are_none(&self) -> bool {
        self.reminder.is_none() && self.escalation.is_none()
    }

    /// Returns the times of events that are not written yet.
    fn pending(&self) -> impl Iterator<Item = Timestamp> {
        let reminder = self.reminder.filter(|it| it.told_at.is_none()).map(|it| it.from);
        let escalation = self.escalation.as_ref().filter(|it| it.told_at.is_none()).map(|it| it.from);
        reminder.into_iter().chain(escalation)
    }
}

impl Hold {
    /// Returns the groups that may vote in every stage at a time, in addition to the stage's own groups.
    pub fn escalation_groups(&self, now: Timestamp) -> Option<&BTreeSet<GroupName>> {
        // The right to vote depends on the time alone and not on the worker that writes the event.
        self.notices.escalation.as_ref().filter(|it| it.from <= now).map(|it| &it.to)
    }

    /// Returns all groups that may vote in a stage at a time.
    pub fn groups_for_stage(&self, stage: usize, now: Timestamp) -> BTreeSet<GroupName> {
        let own = self.stages.get(stage).into_iter().flat_map(|it| &it.groups);
        own.chain(self.escalation_groups(now).into_iter().flatten()).cloned().collect()
    }

    /// Checks that a member of these groups may vote at a time.
    pub fn asks(&self, groups: &BTreeSet<GroupName>, now: Timestamp) -> bool {
        (0..self.stages.len()).any(|stage| !self.groups_for_stage(stage, now).is_disjoint(groups))
    }

    /// Returns the next time at which the gateway must act without a request.
    pub fn next_due(&self) -> Timestamp {
        match self.state {
            // The expiry is always due at the end.
            HoldState::Open {} => self.notices.pending().chain([self.expires_at]).min().unwrap_or(self.expires_at),
            _ => self.expires_at,
        }
    }

    /// Returns the review with all due events marked as written, and these events. Returns `None` if none is due.
    pub fn noticed(mut self, now: Timestamp) -> Option<(Self, Vec<DueReminder>)> {
        // A decided or expired review sends no more notifications.
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
