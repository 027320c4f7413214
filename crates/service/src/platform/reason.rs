//! Reasons that people and programs give for an action.

use countersign_domain::episode::imported;
use countersign_domain::episode::imported::RunImport;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::ThreadId;
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::platform::core::Core;

impl Core {
    /// Returns the error for a thread that does not exist. An imported episode may have its id.
    pub(crate) async fn no_thread(&self, keys: &Keys, thread: &ThreadId) -> Error {
        // Only names of this form belong to imports, so other misses need no second read.
        let kept: Result<Option<Stored<RunImport>>> = match imported::is_name(thread) {
            true => self.fetch(keys, thread.as_str()).await,
            false => Ok(None),
        };
        match kept {
            Ok(Some(_)) => Error::Imported,
            Ok(None) => Error::NotFound("thread"),
            Err(error) => error,
        }
    }
}

/// Shortens a reason to the stored length. An emergency action must not fail for a long reason.
pub(crate) fn cut_reason(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

pub(crate) const REASON_CHARS_MAX: usize = 1_000;

/// The text that replaces one that cannot be masked.
pub(crate) const WITHHELD: &str =
    "[withheld: its redacted values cannot be masked, because the thread's chain is broken or its values are erased]";
