//! The calls that a client waits for, by the id of their request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// The state of a call that the client waits for.
pub enum CallProgress {
    /// The call waits for its approval.
    Waiting { stop: Arc<Notify> },
    /// The server has the call.
    Sent(ForwardedCall),
}

/// A call that the server has.
#[derive(Clone, Debug)]
pub struct ForwardedCall {
    /// The approval request. The response of the server is its outcome.
    pub request: String,
    /// The name of the call: equal calls of one caller have equal names.
    pub call: String,
    /// The change of the tool's definition that the approval is about.
    pub change: Option<String>,
    /// The end of the lease. A question of the server must be answered before it.
    pub until: Instant,
}

/// How a response of the server ends a call.
pub enum CallEnd {
    /// The response belongs to another request.
    NoCall,
    /// The server has not got the call.
    NotSent,
    /// The response is the result of this call.
    Sent(ForwardedCall),
}

/// The state of a call when the client cancels it.
pub enum CancelledCall {
    /// The cancelled request is not an open call.
    NoCall,
    /// The call has not run, and will not.
    Waiting,
    /// The server has this call.
    Sent(ForwardedCall),
}

#[derive(Default)]
pub struct OpenCalls(Mutex<BTreeMap<String, CallProgress>>);

impl OpenCalls {
    /// Registers a call. Returns `None` if another call with its id is not finished.
    pub fn begin(&self, name: &str) -> Option<Arc<Notify>> {
        let mut calls = self.calls();
        if calls.contains_key(name) {
            return None;
        }
        let stop = Arc::new(Notify::new());
        calls.insert(name.to_owned(), CallProgress::Waiting { stop: Arc::clone(&stop) });
        Some(stop)
    }

    /// Cancels a call. A call that waits for its approval is stopped. A call at the server has no response any more.
    pub fn cancel(&self, name: &str) -> CancelledCall {
        let mut calls = self.calls();
        match calls.get(name) {
            None => CancelledCall::NoCall,
            Some(CallProgress::Waiting { stop }) => {
                stop.notify_one();
                CancelledCall::Waiting
            }
            Some(CallProgress::Sent(sent)) => {
                let sent = sent.clone();
                calls.remove(name);
                CancelledCall::Sent(sent)
            }
        }
    }

    /// Ends a call with the server's response.
    pub fn end(&self, name: &str) -> CallEnd {
        let mut calls = self.calls();
        match calls.get(name) {
            None => CallEnd::NoCall,
            Some(CallProgress::Waiting { .. }) => CallEnd::NotSent,
            Some(CallProgress::Sent(sent)) => {
                let sent = sent.clone();
                calls.remove(name);
                CallEnd::Sent(sent)
            }
        }
    }

    /// Notes that the server gets a call.
    pub fn sent(&self, name: String, sent: ForwardedCall) {
        self.calls().insert(name, CallProgress::Sent(sent));
    }

    pub fn remove(&self, name: &str) {
        self.calls().remove(name);
    }

    /// Takes all calls, because the session ends.
    pub fn take(&self) -> BTreeMap<String, CallProgress> {
        std::mem::take(&mut *self.calls())
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, CallProgress>> {
        // A panic cannot leave the map half changed, so a poisoned lock is still usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
