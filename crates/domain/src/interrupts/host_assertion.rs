//! The description of a step that a host application posts. It is limited in size and otherwise unverified.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json::canonical::canonical;
use crate::json::diff::leaves;
use crate::json::pointer::Pointer;
use crate::threads::usage::InvalidUsage;

/// The kind of interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = InterruptKind))]
pub enum InterruptKind {
    /// A step of a graph that needs a decision before it runs.
    StateTransitionReview,
}

/// The host application's description. It is stored unchanged, and compared when the same post is repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAssertion {
    pub kind: InterruptKind,
    /// The host's own digest of the step, in the host's own spelling.
    pub transition_digest: String,
    /// The keys that the step changes.
    pub changed_keys: Vec<String>,
    /// The changes of the step, already redacted by the host application.
    pub redacted_diff: Value,
    /// The framework's id of the interrupt, by which it resumes.
    pub interrupt_id: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The host's own id of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The reason why the step needs a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The longest time for the decision, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// The length of a digest. Shorter texts are no digest. A hash of 512 bits in hex with a prefix fits.
const DIGEST_CHARS: std::ops::RangeInclusive<usize> = 16..=200;

/// The length limit of names. Frameworks use 32 digits or a UUID.
const NAME_CHARS_MAX: usize = 200;

/// The limit of keys, because reviewers read all of them.
const KEYS_MAX: usize = 200;
const KEY_CHARS_MAX: usize = 500;
const KEYS_BYTES_MAX: usize = 64 * 1024;

const TITLE_CHARS_MAX: usize = 200;
const REASON_CHARS_MAX: usize = 2_000;

/// The size limit of the changes. Reviewers would approve longer changes without reading them.
pub const REDACTED_DIFF_BYTES_MAX: usize = 64 * 1024;
const REDACTED_DIFF_LEAVES_MAX: usize = 500;

/// The shortest time for a decision. No reviewer arrives within less than a minute.
const EXPIRES_IN_SECS_MIN: u64 = 60;

impl HostAssertion {
    /// Checks all limits.
    pub fn check(&self) -> Result<(), InvalidUsage> {
        let wrong = |name: &str, detail| Err(InvalidUsage { pointer: Pointer::root().child(name), detail });
        if !DIGEST_CHARS.contains(&self.transition_digest.len()) || !is_plain(&self.transition_digest) {
            return wrong(
                "transition_digest",
                "`transition_digest` must have 16 to 200 characters from A-Z a-z 0-9 : _ - + / =",
            );
        }
        if !(1..=NAME_CHARS_MAX).contains(&self.interrupt_id.len()) || !is_plain(&self.interrupt_id) {
            return wrong("interrupt_id", "`interrupt_id` must have 1 to 200 characters from A-Z a-z 0-9 : _ - + / =");
        }
        // Both the number and the total size are limited, because reviewers read every key.
        let keys = &self.changed_keys;
        let short = keys.len() <= KEYS_MAX && keys.iter().all(|it| fits(it, KEY_CHARS_MAX));
        if !short || canonical(&json!(keys)).len() > KEYS_BYTES_MAX {
            return wrong(
                "changed_keys",
                "`changed_keys` has at most 200 keys of 1 to 500 characters each, and 64 KiB in all",
            );
        }
        if self.attempt == 0 {
            return wrong("attempt", "`attempt` starts at 1");
        }
        let longer = |text: &Option<String>, max| text.as_ref().is_some_and(|it| !fits(it, max));
        if longer(&self.thread_ref, NAME_CHARS_MAX) {
            return wrong("thread_ref", "must have 1 to 200 characters");
        }
        if longer(&self.title, TITLE_CHARS_MAX) {
            return wrong("title", "must have 1 to 200 characters");
        }
        if longer(&self.reason, REASON_CHARS_MAX) {
            return wrong("reason", "must have 1 to 2000 characters");
        }
        if self.expires_in.is_some_and(|it| it < EXPIRES_IN_SECS_MIN) {
            return wrong("expires_in", "`expires_in` must be at least 60 seconds");
        }
        let diff = &self.redacted_diff;
        // The canonical length does not depend on white space.
        let small = canonical(diff).len() <= REDACTED_DIFF_BYTES_MAX && leaves(diff).len() <= REDACTED_DIFF_LEAVES_MAX;
        if small {
            Ok(())
        } else {
            wrong(
                "redacted_diff",
                "`redacted_diff` has at most 64 KiB and 500 values, because reviewers read all of it",
            )
        }
    }
}

/// Checks for letters, digits and the other characters of hex, base64 and UUIDs.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b':' | b'_' | b'-' | b'+' | b'/' | b'='))
}

fn fits(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.chars().count())
}
