//! Redacts states without blocking other requests: small ones at once, large ones on a blocking thread after a
//! wait in the fair queue.

use std::future::Future;

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::policy::parts;
use countersign_domain::primitives::id::ThreadId;
use serde_json::Value;

use super::redaction::{RedactedTextContext, Redaction};
use crate::error::Result;
use crate::threads::Threads;

/// Parts of states up to which they are redacted on the thread that answers the request, in about five
/// milliseconds.
const PARTS_REDACTED_HERE_MAX: u64 = 2_000;

tokio::task_local! {
    /// Set while a future runs as redaction. It has its permit already, and waiting for another one would be a deadlock.
    static IS_REDACTING: ();
}

/// The reader whose requests wait for each other, and the size of the states that are redacted.
pub(crate) struct RedactionWork {
    by: String,
    parts: u64,
}

impl RedactionWork {
    /// Returns the work for a reader of a thread. Readers without an id share one place for each thread.
    pub(crate) fn of<'v>(reader: &Party, thread: &ThreadId, states: impl IntoIterator<Item = &'v Value>) -> Self {
        Self::by(reader.id().unwrap_or(thread.as_str()), states)
    }

    /// Returns the work for a caller.
    pub(crate) fn by<'v>(by: &str, states: impl IntoIterator<Item = &'v Value>) -> Self {
        Self { by: by.to_owned(), parts: states.into_iter().map(parts).fold(0, u64::saturating_add) }
    }
}

impl Threads {
    /// Runs the redaction of states.
    pub(crate) async fn redact<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        work: RedactionWork,
        redacting: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T> {
        // These futures are large. Each move of one by value would take that much of the stack.
        let redacting = Box::pin(redacting());
        if work.parts <= PARTS_REDACTED_HERE_MAX || IS_REDACTING.try_with(|()| ()).is_ok() {
            return redacting.await;
        }
        let turn = self.core.turns.redacting.take(&work.by).await?;
        self.core.metrics.worked(BlockingWork::Redaction);
        turn.run(BlockingWork::Redaction.name(), IS_REDACTING.scope((), redacting)).await?
    }

    /// Returns the redaction of texts by these authors for one reader of a thread.
    pub(crate) async fn redaction_of_texts(
        &self,
        thread: &ThreadId,
        reader: &Party,
        around: RedactedTextContext,
        authors: Vec<Author>,
    ) -> Result<Redaction> {
        let (work, reader) = (RedactionWork::of(reader, thread, &around.states), reader.clone());
        self.redact(work, move || async move { Ok(around.redaction(reader, &authors)) }).await
    }
}
