//! Waiting for the next events of the log, and checks that a waiting client is still authorized.

use std::time::Duration;

use countersign_domain::identity::account::Token;
use countersign_store::record::Stored;

use crate::error::Result;
use crate::identity::session::SignedIn;
use crate::log::Log;

/// How old the shared log length may be. With it, a thousand waiting clients cause ten queries a second in
/// total.
const FRESH: Duration = Duration::from_millis(100);

impl Log {
    /// Returns the length of the log, at most [`FRESH`] old.
    pub async fn log_end(&self) -> Result<u64> {
        // The lock is held during the query on purpose: the clients that wait for it share one result.
        let mut known = self.reach.0.lock().await;
        let now = self.core.clock.instant();
        match *known {
            Some((at, length)) if now.saturating_duration_since(at) < FRESH => Ok(length),
            _ => {
                let length = self.log_length().await?;
                *known = Some((now, length));
                Ok(length)
            }
        }
    }

    /// Waits until the log grows beyond `place`, for at most `patience`. Returns the length of the log.
    pub async fn wait_for_log(&self, place: u64, patience: Duration) -> Result<u64> {
        let begun = self.core.clock.instant();
        loop {
            let reach = self.log_end().await?;
            let waited = self.core.clock.instant().saturating_duration_since(begun);
            let left = patience.saturating_sub(waited);
            // The length is read at least once, even without patience.
            if reach > place || left.is_zero() {
                return Ok(reach);
            }
            // The store signals a commit before the sequencer assigns its position, so this checks again soon
            // after the signal.
            self.core.changed(left).await;
        }
    }

    /// Checks that a token is still valid with the same rights as when it was authenticated.
    pub async fn token_is_current(&self, token: &Stored<Token>) -> Result<()> {
        let keys = self.core.keys()?;
        self.identity.token_still(&keys, token).await.map(drop)
    }

    /// Returns the current account of a session, if the session is still valid.
    pub async fn current_session(&self, person: &SignedIn) -> Result<SignedIn> {
        self.identity.session_by(&person.session.record.id).await
    }
}
