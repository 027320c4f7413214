//! Following the log: whoever waits for what happens next, and whether they still may.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::domain::identity::account::Token;
use crate::service::Service;
use crate::service::error::Result;
use crate::service::identity::session::SignedIn;
use crate::store::record::Stored;

/// How old the length of the log may be that is told to many. A thousand who wait ask the store ten times a second
/// between them.
const FRESH: Duration = Duration::from_millis(100);

/// The length of the log as it was read last.
#[derive(Debug, Default)]
pub(in crate::service) struct LogEndCache(Mutex<Option<(Instant, u64)>>);

impl Service {
    /// How far the log reaches, or did a moment ago.
    pub async fn log_end(&self) -> Result<u64> {
        // Who waits here while another asks takes that one's answer.
        let mut known = self.reach.0.lock().await;
        let now = self.clock.instant();
        match *known {
            Some((at, length)) if now.saturating_duration_since(at) < FRESH => Ok(length),
            _ => {
                let length = self.log_length().await?;
                *known = Some((now, length));
                Ok(length)
            }
        }
    }

    /// Waits until the log reaches beyond a place, or as long as `patience`. How far it reaches then.
    pub async fn wait_for_log(&self, place: u64, patience: Duration) -> Result<u64> {
        let begun = self.clock.instant();
        loop {
            let reach = self.log_end().await?;
            let waited = self.clock.instant().saturating_duration_since(begun);
            let left = patience.saturating_sub(waited);
            if reach > place || left.is_zero() {
                return Ok(reach);
            }
            // What is rung for is written before the log tells of it, so it is looked for again soon after.
            self.changed(left).await;
        }
    }

    /// Whether a token may still be used as it could when it was asked for.
    pub async fn token_is_current(&self, token: &Stored<Token>) -> Result<()> {
        let keys = self.keys()?;
        self.token_still(&keys, token).await.map(drop)
    }

    /// A person as they stand now, if they are still signed in with that session.
    pub async fn current_session(&self, person: &SignedIn) -> Result<SignedIn> {
        self.session_by(&person.session.record.id).await
    }
}
