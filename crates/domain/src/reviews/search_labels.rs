//! The search labels of reviews.
//!
//! The labels are stored unencrypted, so they must not contain an agent's values. They contain flow, thread and group
//! names, protected keys as the policy writes them, and keyed digests of effects.

use std::fmt;

use super::{Hold, HoldState};
use crate::chain::hash::Digest;
use crate::primitives::id::{FlowId, GroupName, ThreadId};

/// The length limit of a searchable key.
const KEY_BYTES_MAX: usize = 256;

/// The limit of searchable keys per review. Hardly any change touches more.
const KEYS_MAX: usize = 32;

/// Whether the review is still open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HoldPhase {
    Open,
    Past,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HoldOutcome {
    Approved,
    Denied,
    Expired,
    /// The proposer cancelled it.
    Cancelled,
    /// A newer transition or policy replaced it.
    Superseded,
}

/// A searchable protected key, such as `payment.amount`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SearchKey(String);

/// One search label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SearchWord {
    /// All reviews in the phase.
    In(HoldPhase),
    Ended(HoldOutcome),
    Flow(HoldPhase, FlowId),
    /// Open reviews that a group may decide.
    Asked(GroupName),
    /// Reviews that touch a protected key or a key below it.
    Key(HoldPhase, SearchKey),
    Thread(ThreadId),
    /// Attempts at one effect that were not approved.
    Attempted(Digest),
}

impl HoldOutcome {
    /// All outcomes, in the order of the page.
    pub const ALL: [Self; 5] = [Self::Approved, Self::Denied, Self::Expired, Self::Cancelled, Self::Superseded];

    /// Returns the code for lists and URLs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }
}

impl HoldPhase {
    const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Past => "past",
        }
    }
}

impl SearchKey {
    /// Reads a key in one of the forms `payment.amount`, `$.payment.amount` and `/payment/amount`. Returns `None` if it
    /// is invalid.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let dotted = match text.strip_prefix('/') {
            Some(pointer) => pointer.replace('/', "."),
            None => text.strip_prefix("$.").unwrap_or(text).to_owned(),
        };
        // PostgreSQL cannot store NUL in text.
        let sound = !dotted.is_empty() && dotted.len() <= KEY_BYTES_MAX && !dotted.contains('\0');
        sound.then_some(Self(dotted))
    }

    /// Returns the key and all keys above it.
    fn and_above(&self) -> impl Iterator<Item = Self> {
        let ends = self.0.match_indices('.').map(|(at, _)| at).chain([self.0.len()]);
        ends.filter(|end| *end > 0).map(|end| Self(self.0[..end].to_owned()))
    }
}

impl fmt::Display for SearchWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(phase) => f.write_str(phase.word()),
            Self::Ended(ending) => f.write_str(ending.word()),
            Self::Flow(phase, flow) => write!(f, "{} flow {flow}", phase.word()),
            Self::Asked(group) => write!(f, "open group {group}"),
            Self::Key(phase, key) => write!(f, "{} key {}", phase.word(), key.0),
            Self::Thread(thread) => write!(f, "thread {thread}"),
            Self::Attempted(effect) => write!(f, "attempted {effect}"),
        }
    }
}

impl HoldState {
    /// Returns the outcome, or `None` if it is open.
    pub const fn ending(&self) -> Option<HoldOutcome> {
        Some(match self {
            Self::Open {} => return None,
            Self::Approved { .. } => HoldOutcome::Approved,
            Self::Denied { .. } => HoldOutcome::Denied,
            Self::Expired { .. } => HoldOutcome::Expired,
            Self::Cancelled { .. } => HoldOutcome::Cancelled,
            Self::Superseded { .. } => HoldOutcome::Superseded,
        })
    }
}

impl Hold {
    /// Returns all search labels of the review.
    pub fn searched_by(&self) -> Vec<SearchWord> {
        let ending = self.state.ending();
        let phase = if ending.is_some() { HoldPhase::Past } else { HoldPhase::Open };
        let mut words = vec![
            SearchWord::In(phase),
            SearchWord::Flow(phase, self.flow.clone()),
            SearchWord::Thread(self.thread.clone()),
        ];
        words.extend(self.keys().into_iter().map(|key| SearchWord::Key(phase, key)));
        words.extend(self.attempted().map(SearchWord::Attempted));
        match ending {
            Some(ending) => words.push(SearchWord::Ended(ending)),
            None => {
                // Labels change only when the row is written, so the escalation counts from its event.
                let escalated = self.notices.escalation.as_ref().filter(|it| it.told_at.is_some());
                let asked = self.stages.iter().map(|it| &it.groups).chain(escalated.map(|it| &it.to)).flatten();
                words.extend(asked.cloned().map(SearchWord::Asked));
            }
        }
        words
    }

    /// Returns the touched protected keys and the keys above them, up to the limit.
    pub fn keys(&self) -> Vec<SearchKey> {
        let named = self.reasons.iter().filter_map(|it| SearchKey::read(it.pointer.as_deref()?));
        let mut keys: Vec<SearchKey> = Vec::new();
        for key in named.flat_map(|it| it.and_above().collect::<Vec<_>>()) {
            // Each label is a row in the database, so their number is limited.
            if keys.len() < KEYS_MAX && !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_in_every_notation() {
        for text in ["payment.amount", "$.payment.amount", "/payment/amount", " payment.amount "] {
            assert_eq!(SearchKey::read(text).unwrap().0, "payment.amount");
        }
        assert_eq!([SearchKey::read(""), SearchKey::read(" / "), SearchKey::read("a\0b")], [None, None, None]);
    }

    #[test]
    fn key_is_found_by_all_keys_above_it() {
        let key = SearchKey::read("payment.card.*").unwrap();
        let above: Vec<String> = key.and_above().map(|it| it.0).collect();
        assert_eq!(above, ["payment", "payment.card", "payment.card.*"]);
    }
}
