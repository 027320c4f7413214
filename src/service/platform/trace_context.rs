//! Whose trace the work at hand belongs to.
//!
//! A request's goes along with its task, and not through every function: nothing is decided by it, and only two places
//! ask, where an event is written down and where it is told.

use tokio::task::futures::TaskLocalFuture;

use crate::domain::platform::trace_parent::TraceParent;

tokio::task_local! {
    static TRACE: Option<TraceParent>;
}

/// Work that belongs to a trace, or to none.
pub fn within<F: Future>(trace: Option<TraceParent>, work: F) -> TaskLocalFuture<Option<TraceParent>, F> {
    TRACE.scope(trace, work)
}

/// The trace of the work that this is a part of.
pub fn trace() -> Option<TraceParent> {
    TRACE.try_with(Clone::clone).ok().flatten()
}
