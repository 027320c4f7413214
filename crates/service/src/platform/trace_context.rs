//! The trace context of the running work.
//!
//! It travels in a task-local instead of through every function. No decision depends on it, and only the
//! recording and the delivery of events read it.

use countersign_domain::platform::trace_parent::TraceParent;
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static TRACE: Option<TraceParent>;
}

/// Runs work within a trace context, or within none.
pub fn within<F: Future>(trace: Option<TraceParent>, work: F) -> TaskLocalFuture<Option<TraceParent>, F> {
    TRACE.scope(trace, work)
}

/// Returns the trace context of the running work.
pub fn trace() -> Option<TraceParent> {
    TRACE.try_with(Clone::clone).ok().flatten()
}
