//! Checks delegations against their events, and every vote on behalf of another reviewer against its delegation.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_domain::identity::delegation::LENGTH_MAX;
use countersign_domain::identity::passkey::Passkey;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, Vote};
use countersign_store::CLOCK_SKEW_MILLIS_MAX;
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::identity::{RowHistories, changed, made, text};
use crate::identity::delegations::{delegated_data, ended_data};

/// Maximum difference between the clock of a gateway and that of the database.
const CLOCK_SKEW_MAX: Duration = Duration::from_millis(CLOCK_SKEW_MILLIS_MAX.unsigned_abs());

/// Returns true if a passkey was not yet removed at that time. The clocks of two gateways may differ, so a removal
/// shortly before is tolerated.
pub(super) fn counted(passkey: &Passkey, moment: Timestamp) -> bool {
    passkey.removed_at.is_none_or(|it| moment < it.plus(2 * CLOCK_SKEW_MAX))
}

impl AuditRun<'_> {
    pub(super) fn check_delegations(&mut self, outside: &[&Event]) {
        let (mut lives, mut ends) = (RowHistories::new(), BTreeMap::<&str, Vec<(Value, Timestamp)>>::new());
        for event in outside {
            let id = text(event, "delegation");
            match event.kind {
                EventType::Delegated => made(&mut lives, id, event),
                EventType::DelegationEnded => {
                    changed(&mut lives, id);
                    ends.entry(id.unwrap_or_default()).or_default().push((event.data.clone(), event.at));
                }
                _ => {}
            }
        }
        for (id, stored) in &self.all.delegations {
            let delegation = &stored.record;
            let life = lives.get(id.as_str());
            let same = life
                .and_then(|it| it.made)
                .is_some_and(|it| it.data == delegated_data(delegation) && it.at == delegation.begins_at);
            self.expect(same, Table::Delegations, id, "the delegation differs from the event that created it");
            let kept: Vec<_> = delegation.ended.iter().map(|it| (ended_data(&delegation.id, it), it.at)).collect();
            let same = ends.get(id.as_str()).map_or(kept.is_empty(), |it| *it == kept);
            self.expect(
                same,
                Table::Delegations,
                id,
                "the row and its events disagree on whether the delegation ended",
            );
            self.expect_revision(Table::Delegations, id, stored.revision, life);
            // A forged delegation could give a person a second vote.
            let proper = delegation.from != delegation.to
                && delegation.ends_at <= delegation.begins_at.plus(LENGTH_MAX)
                && delegation.confirmed_by.as_ref().is_none_or(|by| {
                    let passkey = self.all.passkeys.get(by.as_str());
                    passkey.is_some_and(|it| it.record.account == delegation.from)
                });
            self.expect(
                proper,
                Table::Delegations,
                id,
                "the delegation breaks a rule for delegations: check its people, its length and its passkey",
            );
        }
        self.expect_all(Table::Delegations, &lives, &self.all.delegations.keys().map(String::as_str).collect());
    }

    /// Checks that every vote on behalf of another reviewer was cast under a delegation that was active.
    pub(super) fn check_places(&mut self, hold: &Hold) {
        for vote in &hold.votes {
            let good = vote.absent.is_none() || self.is_delegated(hold, vote);
            self.expect(
                good,
                Table::Holds,
                &hold.id,
                "a vote was cast on behalf of another reviewer without an active delegation",
            );
        }
    }

    /// Returns true if the delegation was active at the time of the vote. A vote shortly after the end of the
    /// delegation is tolerated. The two times come from clocks that may differ, and the database decided the order.
    fn is_delegated(&self, hold: &Hold, vote: &Vote) -> bool {
        let Some(absent) = &vote.absent else { return true };
        let delegation = self.all.delegations.get(absent.delegation.as_str()).map(|it| &it.record);
        delegation.is_some_and(|it| {
            it.from == absent.person
                && it.to == vote.reviewer
                && it.begins_at <= vote.at
                && vote.at < it.ends_at
                && it.ended.as_ref().is_none_or(|end| vote.at < end.at.plus(2 * CLOCK_SKEW_MAX))
                && it.confirmed_by.as_ref().map_or_else(
                    // In a stage that requires a passkey, a delegation without one has no effect.
                    || hold.jury(vote.at).passkey_need(vote.stage).is_nothing(),
                    // A delegation is worth no more than the passkey that confirmed it.
                    |by| self.all.passkeys.get(by.as_str()).is_some_and(|it| counted(&it.record, vote.at)),
                )
        })
    }
}
