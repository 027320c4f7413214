//! The keys of requests that wait for a decision. The same call again, also after a restart, finds its request by them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::secret::Secret;
use serde_json::{Map, Value, json};

/// The most keys of one caller in memory. Without its key, an equal call asks again, and the earlier request expires
/// unused.
const WAITING_OF_ONE_MAX: usize = 500;

/// The keys of requests without a decision. A file for each of them survives a restart.
pub struct OpenRequests {
    folder: Option<PathBuf>,
    /// Makes the names of the files, so that they reveal nothing about the arguments.
    secret: Secret<String>,
    keys: Mutex<CallKeys>,
}

#[derive(Default)]
struct CallKeys {
    /// The keys of calls that ended while they waited, by the caller and the name of the call.
    waiting: BTreeMap<String, BTreeMap<String, String>>,
    /// The calls that are being decided.
    claimed: BTreeSet<String>,
}

/// The key of one call, while it is decided.
pub struct ClaimedKey<'o> {
    open: &'o OpenRequests,
    caller: String,
    /// The name of the call. Equal calls have equal names. `None` for the second of two equal calls at once.
    name: Option<String>,
    pub key: String,
    /// Whether an earlier call asked with this key.
    pub is_again: bool,
}

impl OpenRequests {
    pub fn new(folder: Option<PathBuf>, secret: Secret<String>) -> Self {
        Self { folder, secret, keys: Mutex::default() }
    }

    /// Takes the key of an equal call of this caller that still waits, or a new key. Two calls never hold one key at
    /// once.
    pub fn claim(&self, caller: &str, tool: &str, arguments: &Map<String, Value>) -> ClaimedKey<'_> {
        let call = canonical(&json!([self.secret.expose(), caller, tool, arguments]));
        let name = Digest::of_file(call.as_bytes()).to_string().replace(':', "-");
        let mut keys = self.keys();
        if !keys.claimed.insert(name.clone()) {
            return ClaimedKey { open: self, caller: caller.to_owned(), name: None, key: new_key(), is_again: false };
        }
        let waiting = keys.waiting.get_mut(caller).and_then(|it| it.remove(&name)).or_else(|| self.stored(&name));
        let is_again = waiting.is_some();
        ClaimedKey {
            open: self,
            caller: caller.to_owned(),
            name: Some(name),
            key: waiting.unwrap_or_else(new_key),
            is_again,
        }
    }

    fn keys(&self) -> MutexGuard<'_, CallKeys> {
        // A panic cannot leave the maps half changed, so a poisoned lock is still usable.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self, name: &str) -> Option<String> {
        let key = fs::read_to_string(self.folder.as_ref()?.join(name)).ok()?;
        Some(key).filter(|it| !it.is_empty())
    }
}

impl ClaimedKey<'_> {
    /// Stores the key of a call that waits.
    pub fn keep(&self) {
        let Some(name) = &self.name else { return };
        let mut keys = self.open.keys();
        let of_caller = keys.waiting.entry(self.caller.clone()).or_default();
        if of_caller.len() >= WAITING_OF_ONE_MAX {
            of_caller.pop_first();
        }
        of_caller.insert(name.clone(), self.key.clone());
        drop(keys);
        if let Some(folder) = &self.open.folder {
            // Without the file, a restart asks again. The earlier request then expires unused.
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(name), &self.key));
        }
    }

    /// Deletes the key, because the call does not wait any more.
    pub fn delete(&self) {
        let Some(name) = &self.name else { return };
        let mut keys = self.open.keys();
        if let Some(of_caller) = keys.waiting.get_mut(&self.caller) {
            of_caller.remove(name);
            if of_caller.is_empty() {
                keys.waiting.remove(&self.caller);
            }
        }
        drop(keys);
        if let Some(folder) = &self.open.folder {
            let _ = fs::remove_file(folder.join(name));
        }
    }

    /// Takes a new key for the same call.
    pub fn renew(&mut self) {
        self.delete();
        (self.key, self.is_again) = (new_key(), false);
    }
}

impl Drop for ClaimedKey<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.open.keys().claimed.remove(name);
        }
    }
}

fn new_key() -> String {
    random::uuid_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(folder: Option<PathBuf>) -> OpenRequests {
        OpenRequests::new(folder, Secret::new("cs_1".to_owned()))
    }

    #[test]
    fn equal_call_finds_the_key_that_waits_and_only_one_of_them() {
        let open = requests(None);
        let (a, b) = (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}));
        let (a, b) = (a.as_object().unwrap(), b.as_object().unwrap());
        let first = open.claim("me", "read", a);
        assert!(!first.is_again);
        first.keep();
        assert_ne!(open.claim("me", "read", a).key, first.key, "two calls at once are two requests");
        assert_ne!(open.claim("me", "write", a).key, first.key);
        assert_ne!(open.claim("you", "read", b).key, first.key);
        let key = first.key.clone();
        drop(first);
        let again = open.claim("me", "read", b);
        assert!(again.is_again && again.key == key);
        again.delete();
        drop(again);
        assert!(!open.claim("me", "read", a).is_again, "a decided call is asked for again");
    }

    #[test]
    fn key_survives_a_restart_and_reveals_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("guard");
        let arguments = json!({"card": "4999"});
        let arguments = arguments.as_object().unwrap();
        let before = requests(Some(at.clone()));
        let first = before.claim("me", "pay", arguments);
        first.keep();
        let named = fs::read_dir(&at).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
        let guess = Digest::of_file(canonical(&json!(["pay", arguments])).as_bytes()).to_string();
        assert!(!named.contains(&guess[7..]));
        let other = OpenRequests::new(Some(at.clone()), Secret::new("cs_2".to_owned()));
        assert_ne!(other.claim("me", "pay", arguments).key, first.key);
        let after = requests(Some(at));
        let again = after.claim("me", "pay", arguments);
        assert!(again.is_again && again.key == first.key);
        again.delete();
        drop(again);
        assert!(!after.claim("me", "pay", arguments).is_again);
    }
}
