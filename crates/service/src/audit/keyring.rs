//! Compares the states of keys with the audit log. Restoring an older keyring would make revoked keys valid again.

use countersign_domain::keys::{KeyState, KeyUse, PublicKey};
use countersign_domain::log::event::{Event, EventType};
use countersign_store::CLOCK_SKEW_MILLIS_MAX;
use countersign_store::row::Table;

use super::AuditRun;
use super::identity::text;

impl AuditRun<'_> {
    /// Checks that each key that an event revoked is revoked, and that each key that started to sign is known and
    /// active.
    pub(super) fn check_keys(&mut self) {
        // Recent events may be newer than the keyring that was read.
        let until = self.now.millis().saturating_sub(2 * CLOCK_SKEW_MILLIS_MAX);
        let turned = |it: &&Event| it.kind == EventType::KeyRotated && it.at.millis() <= until;
        let events: Vec<&Event> = self.all.events.values().map(|it| &it.record).filter(turned).collect();
        for event in events {
            let Some(key_use) = text(event, "use").and_then(KeyUse::named) else { continue };
            let state = |kid: &str| self.keys.trusted().public(key_use, kid).map(PublicKey::state);
            // An unknown key counts as wrong, because it may have been removed to hide its revocation.
            let revoked = text(event, "revoked").is_none_or(|it| state(it) == Some(KeyState::Revoked));
            let began = text(event, "signing").is_none_or(|it| !matches!(state(it), None | Some(KeyState::Next)));
            self.expect(
                revoked,
                Table::Events,
                &event.id,
                "the keyring does not have this key as revoked: use the current keyring file, not an older copy",
            );
            self.expect(
                began,
                Table::Events,
                &event.id,
                "the keyring does not have this key as signing: use the current keyring file, not an older copy",
            );
        }
    }
}
