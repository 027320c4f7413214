//! Groups refused envelopes: which refusals are logged as events, and which are only counted.
//!
//! A caller may repeat a request without limit. Each kind of refusal is logged once an hour, with the number of
//! refusals since the last event, and the number of kinds per caller is bounded. So no caller can flood the audit log.

use std::collections::HashMap;
use std::time::Duration;

use super::envelope::EnvelopeCode;
use crate::primitives::id::{NodeId, PrincipalId, ThreadId};
use crate::primitives::time::Timestamp;

/// Each kind is logged once in this time.
const WINDOW: Duration = Duration::from_secs(3600);
/// Maximum number of kinds of one caller that are logged in a window.
const KINDS_MAX: usize = 64;
/// Maximum number of callers that are tracked. Callers are tokens, which only an administrator creates.
const CALLERS_MAX: usize = 10_000;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EnvelopeRefusalKind {
    pub code: EnvelopeCode,
    pub thread: Option<ThreadId>,
    /// Node of the view, if it is known.
    pub node: Option<NodeId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusalCounts {
    /// Refusals of this kind since its last event, including this one.
    pub times: u64,
    /// Refusals of the caller whose kinds exceeded the bound.
    pub others: u64,
}

/// Refusals of this process.
#[derive(Debug, Default)]
pub struct EnvelopeRefusalLog {
    callers: HashMap<PrincipalId, CallerRefusals>,
}

#[derive(Debug)]
struct CallerRefusals {
    since: Timestamp,
    told: usize,
    kinds: HashMap<EnvelopeRefusalKind, u64>,
    others: u64,
}

impl CallerRefusals {
    fn at(now: Timestamp) -> Self {
        Self { since: now, told: 0, kinds: HashMap::new(), others: 0 }
    }
}

impl EnvelopeRefusalLog {
    /// Counts a refusal. Returns the counts for the event that is due, or `None` if the refusal is only counted.
    pub fn note(&mut self, by: &PrincipalId, kind: EnvelopeRefusalKind, now: Timestamp) -> Option<RefusalCounts> {
        if self.callers.len() >= CALLERS_MAX && !self.callers.contains_key(by) {
            // Expired windows are removed only when the map is full, so the normal case needs no scan.
            self.callers.retain(|_, it| is_of_window(it.since, now));
            if self.callers.len() >= CALLERS_MAX {
                return None;
            }
        }
        let caller = self.callers.entry(by.clone()).or_insert_with(|| CallerRefusals::at(now));
        let carried = if is_of_window(caller.since, now) { HashMap::new() } else { std::mem::take(&mut caller.kinds) };
        if !carried.is_empty() {
            *caller = CallerRefusals { others: caller.others, ..CallerRefusals::at(now) };
        }
        if let Some(untold) = caller.kinds.get_mut(&kind) {
            *untold += 1;
            return None;
        }
        // An attacker can invent kinds, for example by naming many threads.
        if caller.told == KINDS_MAX {
            caller.others += 1;
            return None;
        }
        caller.told += 1;
        let before = carried.get(&kind).copied().unwrap_or(0);
        // This event also reports the rest of the last window for other kinds.
        let left: u64 = carried.iter().filter(|(it, _)| **it != kind).map(|(_, untold)| untold).sum();
        let others = std::mem::take(&mut caller.others) + left;
        // Zero means that no refusal of this kind is left to report.
        caller.kinds.insert(kind, 0);
        Some(RefusalCounts { times: before + 1, others })
    }

    /// Undoes a count whose event could not be written.
    pub fn untold(&mut self, by: &PrincipalId, kind: &EnvelopeRefusalKind) {
        if let Some(caller) = self.callers.get_mut(by)
            && caller.kinds.remove(kind).is_some()
        {
            caller.told = caller.told.saturating_sub(1);
        }
    }
}

/// Returns whether a moment is in the window. A clock that went back begins a window of its own.
fn is_of_window(since: Timestamp, now: Timestamp) -> bool {
    since <= now && now < since.plus(WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(name: &str) -> PrincipalId {
        PrincipalId::try_from(name.to_owned()).unwrap()
    }

    fn kind(thread: usize) -> EnvelopeRefusalKind {
        let thread = ThreadId::try_from(format!("t-{thread}")).unwrap();
        EnvelopeRefusalKind { code: EnvelopeCode::OverBudget, thread: Some(thread), node: None }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn each_kind_is_logged_once_an_hour_with_its_count() {
        let mut folded = EnvelopeRefusalLog::default();
        let once = Some(RefusalCounts { times: 1, others: 0 });
        assert_eq!(folded.note(&by("a"), kind(1), at(0)), once);
        for second in 1..3600 {
            assert_eq!(folded.note(&by("a"), kind(1), at(second)), None);
        }
        assert_eq!(folded.note(&by("a"), kind(2), at(9)), once, "another kind");
        assert_eq!(folded.note(&by("b"), kind(1), at(9)), once, "another caller");
        assert_eq!(folded.note(&by("a"), kind(1), at(3600)), Some(RefusalCounts { times: 3600, others: 0 }));
        assert_eq!(folded.note(&by("a"), kind(1), at(3600)), None);
        assert_eq!(
            folded.note(&by("a"), kind(1), at(10)),
            Some(RefusalCounts { times: 2, others: 0 }),
            "the clock went back"
        );
    }

    #[test]
    fn one_caller_has_a_bounded_number_of_events() {
        let mut folded = EnvelopeRefusalLog::default();
        let told = (0..10_000).filter(|it| folded.note(&by("a"), kind(*it), at(0)).is_some()).count();
        assert_eq!(told, KINDS_MAX);
        let next = folded.note(&by("a"), kind(20_000), at(3600));
        assert_eq!(next, Some(RefusalCounts { times: 1, others: 10_000 - KINDS_MAX as u64 }));
    }

    #[test]
    fn event_that_could_not_be_written_is_due_again() {
        let mut folded = EnvelopeRefusalLog::default();
        assert!(folded.note(&by("a"), kind(1), at(0)).is_some());
        folded.untold(&by("a"), &kind(1));
        assert!(folded.note(&by("a"), kind(1), at(1)).is_some());
    }
}
