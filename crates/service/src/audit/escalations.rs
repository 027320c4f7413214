//! Checks the reminders and escalations of a review against its policy and its events.

use countersign_domain::reviews::{DueReminder, Hold, HoldReminders};
use countersign_store::row::Table;

use super::AuditRun;
use super::event_replay::HoldEvents;
use crate::reviews::escalate::notice_data;

impl AuditRun<'_> {
    pub(super) fn check_notices(&mut self, hold: &Hold, told: &HoldEvents<'_>) {
        let reminded = hold.notices.reminder.and_then(|it| it.told_at).map(|at| (DueReminder::Reminded, at));
        let escalated =
            hold.notices.escalation.as_ref().and_then(|it| it.told_at).map(|at| (DueReminder::Escalated, at));
        let kept = [reminded, escalated].into_iter().flatten();
        let kept: Vec<_> = kept.map(|(notice, at)| (notice_data(hold, notice), at)).collect();
        let mut events: Vec<_> = told.notices.iter().map(|it| (Some((it.kind, it.data.clone())), it.at)).collect();
        // The row names the reminder first, so the events are sorted in the same way.
        events.sort_by_key(|it| it.0.as_ref().map(|(kind, _)| kind.name()).unwrap_or_default() == "review.escalated");
        self.expect(
            kept == events,
            Table::Holds,
            &hold.id,
            "the reminders and escalations of the review differ from its events",
        );
    }

    /// Checks that the times and groups of reminders and escalations match the policy.
    pub(super) fn check_notice_terms(&mut self, hold: &Hold, asked: &HoldReminders) {
        // The policy sets the times, but not whether a reminder was already sent.
        let mut untold: HoldReminders = hold.notices.clone();
        if let Some(reminder) = &mut untold.reminder {
            reminder.told_at = None;
        }
        if let Some(escalation) = &mut untold.escalation {
            escalation.told_at = None;
        }
        self.expect(
            untold == *asked,
            Table::Holds,
            &hold.id,
            "the reminder and escalation times or groups of the review differ from its policy",
        );
    }
}
