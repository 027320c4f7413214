//! Checks each extension of a deadline against the events and against the limits for extensions.

use countersign_domain::reviews::{EXTENSIONS_MAX, Hold};
use countersign_store::row::Table;

use super::AuditRun;
use super::event_replay::HoldEvents;
use crate::reviews::extend::extension_data;

impl AuditRun<'_> {
    pub(super) fn check_deadline(&mut self, hold: &Hold, told: &HoldEvents<'_>) {
        let kept = hold.extensions.iter().map(|it| (extension_data(hold, it), it.at));
        let same = kept.eq(told.extensions.iter().map(|it| (it.data.clone(), it.at)));
        self.expect(same, Table::Holds, &hold.id, "the deadline extensions of the review differ from its events");
        let mut deadline = hold.first_deadline();
        let mut lawful = hold.extensions.len() <= EXTENSIONS_MAX;
        for extension in &hold.extensions {
            let excluded = hold.excluded.contains(&extension.name) || hold.excluded.contains(extension.person.as_str());
            // Each extension must continue the one before, before its end, and by a person who is not excluded.
            lawful &= extension.was == deadline && extension.at < deadline && extension.until > deadline && !excluded;
            deadline = extension.until;
        }
        lawful &= deadline == hold.expires_at && deadline <= hold.latest_deadline();
        self.expect(lawful, Table::Holds, &hold.id, "a deadline extension of the review was not allowed");
    }
}
