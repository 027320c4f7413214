//! Notifies waiting readers of commits, for long polling.

use std::time::{Duration, Instant};

use countersign_adapters::clock::{Clock as _, SystemClock};
use tokio::sync::watch;

/// A commit within this time may have happened between a caller's read and its wait.
const RECENT: Duration = Duration::from_secs(1);

/// The delay until a caller reads again if it may have missed a commit. It also limits how often waiting callers read
/// while commits follow each other, so a thousand callers do not all read after each commit.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// The notifier of commits. A caller has no cursor, so a caller that starts to wait just after a notification cannot
/// know whether it saw that commit. It then waits only briefly.
#[derive(Debug)]
pub(super) struct CommitNotifier(watch::Sender<Option<Instant>>);

impl CommitNotifier {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn ring(&self) {
        self.0.send_replace(Some(SystemClock.instant()));
    }

    /// Returns at the next notification, after `patience`, or soon if a notification was sent just before.
    pub(super) async fn wait(&self, patience: Duration) {
        let mut rings = self.0.subscribe();
        let last = *rings.borrow_and_update();
        // The caller may have missed this commit, so it must not wait for the next one.
        if last.is_some_and(|it| SystemClock.instant().saturating_duration_since(it) < RECENT) {
            tokio::time::sleep(patience.min(LOOK_AGAIN)).await;
        } else {
            // Both results are handled alike: the caller reads again.
            let _ = tokio::time::timeout(patience, rings.changed()).await;
        }
    }
}
