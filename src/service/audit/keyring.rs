//! Keys: what the log tells became of them against the keyring. An older one, put back, would bring to life what was
//! revoked.

use super::AuditRun;
use super::identity::text;
use crate::domain::keys::{KeyState, KeyUse, PublicKey};
use crate::domain::log::event::{Event, EventType};
use crate::store::CLOCK_SKEW_MILLIS_MAX;
use crate::store::row::Table;

impl AuditRun<'_> {
    /// Each key that an event says was revoked is so, and each that began to sign is known and not yet to come.
    pub(super) fn check_keys(&mut self) {
        // What happened since the keyring was read may not be in it yet.
        let until = self.now.millis().saturating_sub(2 * CLOCK_SKEW_MILLIS_MAX);
        let turned = |it: &&Event| it.kind == EventType::KeyRotated && it.at.millis() <= until;
        let events: Vec<&Event> = self.all.events.values().map(|it| &it.record).filter(turned).collect();
        for event in events {
            let Some(key_use) = text(event, "use").and_then(KeyUse::named) else { continue };
            let state = |kid: &str| self.keys.trusted().public(key_use, kid).map(PublicKey::state);
            let revoked = text(event, "revoked").is_none_or(|it| state(it) == Some(KeyState::Revoked));
            let began = text(event, "signing").is_none_or(|it| !matches!(state(it), None | Some(KeyState::Next)));
            self.expect(
                revoked,
                Table::Events,
                &event.id,
                "the keyring does not know that this key was revoked: is it an older one?",
            );
            self.expect(
                began,
                Table::Events,
                &event.id,
                "the keyring does not know that this key signs: is it an older one?",
            );
        }
    }
}
