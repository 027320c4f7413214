//! Tells waiting readers that something was committed.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock::{Clock as _, SystemClock};

/// A commit this recent may have come between a caller's look and its wait.
const RECENT: Duration = Duration::from_secs(1);

/// How soon a caller that may have missed a commit looks again. Also how often at most each of many waiting
/// callers looks while one commit follows another: a thousand of them must not all read after each.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Rung after each commit, by whoever made it. Callers keep no place of their own, so one that begins to
/// wait just after a ring cannot know whether it saw what was rung for: it then waits only a little.
#[derive(Debug)]
pub(super) struct CommitNotifier(watch::Sender<Option<Instant>>);

impl CommitNotifier {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn ring(&self) {
        self.0.send_replace(Some(SystemClock.instant()));
    }

    /// Returns at the next ring, or after the patience given, or soon if it rang just now.
    pub(super) async fn wait(&self, patience: Duration) {
        let mut rings = self.0.subscribe();
        let last = *rings.borrow_and_update();
        if last.is_some_and(|it| SystemClock.instant().saturating_duration_since(it) < RECENT) {
            tokio::time::sleep(patience.min(LOOK_AGAIN)).await;
        } else {
            // Whether it rang or patience ended, the caller looks again.
            let _ = tokio::time::timeout(patience, rings.changed()).await;
        }
    }
}
