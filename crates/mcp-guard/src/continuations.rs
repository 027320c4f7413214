//! Calls that go on after their server asked the client for input, with the approval that they have already used.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use serde_json::json;

/// The most calls in memory. A call beyond it does not go on.
const CONTINUATIONS_MAX: usize = 1_000;

/// The calls that wait for input of their clients.
#[derive(Default)]
pub struct Continuations(Mutex<BTreeMap<String, String>>);

impl Continuations {
    /// Notes that a call goes on with this state, and with the approval request that it has used.
    pub fn put(&self, call: &str, state: Option<&str>, request: &str) {
        let mut calls = self.calls();
        if calls.len() < CONTINUATIONS_MAX {
            calls.insert(key(call, state), request.to_owned());
        }
    }

    /// Returns the approval request of a call that goes on. Each interim result is continued once.
    pub fn take(&self, call: &str, state: Option<&str>) -> Option<String> {
        self.calls().remove(&key(call, state))
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
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
    use super::*;

    #[test]
    fn call_goes_on_once_with_its_own_state() {
        let open = Continuations::default();
        open.put("call", Some("s"), "request");
        assert!(open.take("other", Some("s")).is_none() && open.take("call", None).is_none());
        assert_eq!(open.take("call", Some("s")).as_deref(), Some("request"));
        assert!(open.take("call", Some("s")).is_none());
    }
}
