//! Log events for changes of the keyring, which is a file outside the database.

use countersign_domain::keys::KeyUse;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::PrincipalId;
use countersign_store::change::Draft;
use serde_json::json;

use crate::error::Result;
use crate::log::Log;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

impl Log {
    /// Logs that another key signs for a use, or that a key was revoked.
    pub async fn note_keys_changed(&self, by: &PrincipalId, key_use: KeyUse, revoked: Option<&str>) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let mut draft = Draft::new(keys.row(), now);
            let signing = keys.signing(key_use).kid();
            let data = json!({"use": key_use.as_str(), "signing": signing, "revoked": revoked, "by": by});
            event_recorder::outside(&mut draft, None, now, EventType::KeyRotated, data)?;
            self.core.commit(draft.finish()).await
        })
    }
}
