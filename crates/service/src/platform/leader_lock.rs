//! Leader locks: tasks that only one of the gateways on a database runs at a time.

use std::future::Future;

use countersign_store::LeaderTask;

use crate::error::Result;
use crate::platform::core::Core;

impl Core {
    /// Runs a task under its leader lock. Returns `None` if another gateway holds the lock. The lock is
    /// released on every outcome, so that the next call of the same gateway does not find its own lock.
    pub(crate) async fn run_as_leader<T>(
        &self,
        duty: LeaderTask,
        work: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        let Some(duty) = self.store.take(duty).await? else { return Ok(None) };
        let done = work.await;
        duty.leave().await;
        done.map(Some)
    }
}
