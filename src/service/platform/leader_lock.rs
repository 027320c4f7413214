//! Duties: what one gateway does at a time, of all that share a database.

use std::future::Future;

use crate::service::Service;
use crate::service::error::Result;
use crate::store::LeaderTask;

impl Service {
    /// Does this while nobody else does; `None` if another is at it. However it ends, the duty is anybody's by then: who
    /// goes on at once is never told that another is at it where it is only they themselves, a moment ago.
    pub(in crate::service) async fn run_as_leader<T>(
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
