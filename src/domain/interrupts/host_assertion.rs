//! What a host says, as it is posted: bounded, and taken as it is.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::json::canonical::canonical;
use crate::domain::json::diff::leaves;
use crate::domain::json::pointer::Pointer;
use crate::domain::threads::usage::InvalidUsage;

/// The kind of interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = InterruptKind)]
pub enum InterruptKind {
    /// A step of a graph that its host wants people to look at first.
    StateTransitionReview,
}

/// What a host says. It is kept as it came, and compared so when it comes again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAssertion {
    pub kind: InterruptKind,
    /// The host's own digest of the step, in the host's own spelling.
    pub transition_digest: String,
    /// The keys that the step changes.
    pub changed_keys: Vec<String>,
    /// What the step changes, without what people need not see.
    pub redacted_diff: Value,
    /// What the host's framework calls the interrupt: it resumes by that.
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
    /// How long people are asked at most, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// Fewer characters than these are no digest of anything; a hash of 512 bits in hex and a prefix have fewer than the most.
const DIGEST_CHARS: std::ops::RangeInclusive<usize> = 16..=200;

/// Frameworks name interrupts by 32 digits or a UUID.
const NAME_CHARS_MAX: usize = 200;

/// People read every one of them.
const KEYS_MAX: usize = 200;
const KEY_CHARS_MAX: usize = 500;
const KEYS_BYTES_MAX: usize = 64 * 1024;

const TITLE_CHARS_MAX: usize = 200;
const REASON_CHARS_MAX: usize = 2_000;

/// What people can read on one page; more is not looked at, only approved.
pub const REDACTED_DIFF_BYTES_MAX: usize = 64 * 1024;
const REDACTED_DIFF_LEAVES_MAX: usize = 500;

/// Less than a minute is over before anybody is there.
const EXPIRES_IN_SECS_MIN: u64 = 60;

impl HostAssertion {
    /// Whether it stays within its bounds.
    pub fn check(&self) -> Result<(), InvalidUsage> {
        let wrong = |name: &str, detail| Err(InvalidUsage { pointer: Pointer::root().child(name), detail });
        if !DIGEST_CHARS.contains(&self.transition_digest.len()) || !is_plain(&self.transition_digest) {
            return wrong("transition_digest", "a digest is 16 to 200 characters from A-Z a-z 0-9 : _ - + / =");
        }
        if !(1..=NAME_CHARS_MAX).contains(&self.interrupt_id.len()) || !is_plain(&self.interrupt_id) {
            return wrong("interrupt_id", "an interrupt's name is 1 to 200 characters from A-Z a-z 0-9 : _ - + / =");
        }
        let keys = &self.changed_keys;
        let short = keys.len() <= KEYS_MAX && keys.iter().all(|it| fits(it, KEY_CHARS_MAX));
        if !short || canonical(&json!(keys)).len() > KEYS_BYTES_MAX {
            return wrong("changed_keys", "at most 200 keys, each of 1 to 500 characters, and 64 KiB in all");
        }
        if self.attempt == 0 {
            return wrong("attempt", "attempts are counted from 1");
        }
        let longer = |text: &Option<String>, max| text.as_ref().is_some_and(|it| !fits(it, max));
        if longer(&self.thread_ref, NAME_CHARS_MAX) {
            return wrong("thread_ref", "1 to 200 characters");
        }
        if longer(&self.title, TITLE_CHARS_MAX) {
            return wrong("title", "1 to 200 characters");
        }
        if longer(&self.reason, REASON_CHARS_MAX) {
            return wrong("reason", "1 to 2000 characters");
        }
        if self.expires_in.is_some_and(|it| it < EXPIRES_IN_SECS_MIN) {
            return wrong("expires_in", "at least 60 seconds");
        }
        let diff = &self.redacted_diff;
        let small = canonical(diff).len() <= REDACTED_DIFF_BYTES_MAX && leaves(diff).len() <= REDACTED_DIFF_LEAVES_MAX;
        if small { Ok(()) } else { wrong("redacted_diff", "at most 64 KiB and 500 values: people read all of it") }
    }
}

/// Letters, digits, and what hex, base64 and UUIDs use besides.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b':' | b'_' | b'-' | b'+' | b'/' | b'='))
}

fn fits(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.chars().count())
}
