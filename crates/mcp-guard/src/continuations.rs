//! Calls that go on after their server asked the client for input, with the approval that they have already used.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use serde_json::{Value, json};

use crate::open_calls::ForwardedCall;

/// A call that goes on after the server asked its client for input.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuedCall {
    pub responses: Option<Value>,
    /// The state that the server sent with its interim result.
    pub state: Option<String>,
}

/// The most calls in memory. A call beyond it does not go on.
const CONTINUATIONS_MAX: usize = 1_000;

/// The calls that wait for input of their clients.
#[derive(Default)]
pub struct Continuations(Mutex<BTreeMap<String, ForwardedCall>>);

impl Continuations {
    /// Notes that a call goes on with this state.
    pub fn put(&self, call: &ForwardedCall, state: Option<&str>) {
        let (now, mut calls) = (SystemClock.instant(), self.calls());
        calls.retain(|_, it| it.until > now);
        if calls.len() < CONTINUATIONS_MAX {
            calls.insert(key(&call.call, state), call.clone());
        }
    }

    /// Returns a call that goes on. Each question is answered once, and before the lease ends.
    pub fn take(&self, call: &str, state: Option<&str>) -> Option<ForwardedCall> {
        self.calls().remove(&key(call, state)).filter(|it| it.until > SystemClock.instant())
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, ForwardedCall>> {
        // A panic cannot leave the map half changed, so a poisoned lock is still usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(call: &str, state: Option<&str>) -> String {
    // A state can be long.
    Digest::of_file(canonical(&json!([call, state])).as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn call_goes_on_once_with_its_own_state() {
        let open = Continuations::default();
        let call_until = |secs| ForwardedCall {
            request: "request".to_owned(),
            call: "call".to_owned(),
            change: None,
            until: SystemClock.instant() + Duration::from_secs(secs),
        };
        open.put(&call_until(60), Some("s"));
        assert!(open.take("other", Some("s")).is_none() && open.take("call", None).is_none());
        assert_eq!(open.take("call", Some("s")).map(|it| it.request).as_deref(), Some("request"));
        assert!(open.take("call", Some("s")).is_none());
        open.put(&call_until(0), Some("s"));
        assert!(open.take("call", Some("s")).is_none(), "the lease has ended");
    }
}
