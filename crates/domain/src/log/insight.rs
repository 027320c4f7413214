//! Counters over the audit log for Insight: reviews, decisions and their times, per hour and day.
//!
//! A page cannot read a million past reviews, so each event is counted once and the counts are stored. Counting is
//! pure: an audit counts the same events again and must get the same rows.

mod histogram;

pub use histogram::Histogram;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Event, EventType};
use crate::policy::current_wording;
use crate::primitives::id::{FlowId, ReviewId};
use crate::primitives::time::Timestamp;
use crate::reviews::{Hold, HoldOutcome};

/// The limit of flows that one hour or day counts by name, in the order of their first event. A page could not list
/// more. Further flows are counted together.
pub const FLOWS_MAX: usize = 50;

/// The limit of reasons per flow that one hour or day counts separately.
pub const REASONS_MAX: usize = 20;

/// The limit of flows whose open reviews are counted by name.
const OPEN_FLOWS_MAX: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketWidth {
    /// A minute. It has no stored rows, because a year would have half a million.
    Minute,
    Hour,
    /// A day, UTC.
    Day,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    pub step: BucketWidth,
    pub begins: Timestamp,
}

/// Counts of reviews and proposals.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counts {
    /// Proposals that the policy committed.
    #[serde(skip_serializing_if = "is_zero")]
    pub committed: u64,
    /// Proposals that were committed in observe mode and would otherwise have required approval.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed: u64,
    /// Proposals that the policy rejected.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Opened reviews.
    #[serde(skip_serializing_if = "is_zero")]
    pub opened: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub approved: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub expired: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// The times of reviews that reviewers decided.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub times: Histogram,
}

/// The counts of one flow.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowCounts {
    pub all: Counts,
    /// Reviews by reason. A review counts under each of its reasons.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, Counts>,
    /// Reviews with reasons beyond [`REASONS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_reasons: Option<Counts>,
}

/// The counts of one hour or day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodFigures {
    pub period: Period,
    pub flows: BTreeMap<FlowId, FlowCounts>,
    /// Flows beyond [`FLOWS_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_flows: Option<FlowCounts>,
}

/// The cursor of the counters in the audit log, and the open reviews there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountProgress {
    /// The last counted log position.
    pub index: u64,
    /// The time of the event at this position.
    pub at: Timestamp,
    /// Open reviews by flow. A flow stays in the map, so the end of a review is counted where its start was.
    pub open: BTreeMap<FlowId, u64>,
    /// Open reviews of flows beyond [`OPEN_FLOWS_MAX`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_elsewhere: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountedEvent {
    /// The policy committed a proposal.
    Committed,
    /// A proposal was committed in observe mode.
    Observed,
    /// The policy rejected a proposal.
    Rejected,
    Opened(ReviewId),
    Ended(ReviewId, HoldOutcome),
}

/// The rows that a batch of events changes. They are loaded before counting and written after it.
pub type InsightRows = BTreeMap<Period, PeriodFigures>;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl BucketWidth {
    pub const KEPT: [Self; 2] = [Self::Hour, Self::Day];

    pub const fn length(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(60),
            Self::Hour => Duration::from_secs(3_600),
            Self::Day => Duration::from_secs(24 * 3_600),
        }
    }
}

impl Period {
    /// Returns the period that contains a time.
    pub fn of(step: BucketWidth, at: Timestamp) -> Self {
        let length = i64::try_from(step.length().as_millis()).expect("a day is not that long");
        Self { step, begins: Timestamp::from_millis(at.millis().div_euclid(length) * length) }
    }

    #[must_use]
    pub fn previous(self) -> Self {
        Self { begins: self.begins.minus(self.step.length()), ..self }
    }

    /// Returns a name such as `hour/2026-11-21T14` or `day/2026-11-21`. Names sort by time.
    pub fn name(&self) -> String {
        let text = self.begins.to_string();
        match self.step {
            BucketWidth::Minute => format!("minute/{}", text.get(..16).unwrap_or(&text)),
            BucketWidth::Hour => format!("hour/{}", text.get(..13).unwrap_or(&text)),
            BucketWidth::Day => format!("day/{}", text.get(..10).unwrap_or(&text)),
        }
    }
}

impl Counts {
    /// Adds all counts of another value.
    pub fn merge(&mut self, other: &Self) {
        self.committed += other.committed;
        self.observed += other.observed;
        self.rejected += other.rejected;
        self.opened += other.opened;
        for ending in HoldOutcome::ALL {
            *self.ended_mut(ending) += other.ended_so(ending);
        }
        self.times.merge(&other.times);
    }

    pub const fn ended_so(&self, ending: HoldOutcome) -> u64 {
        match ending {
            HoldOutcome::Approved => self.approved,
            HoldOutcome::Denied => self.denied,
            HoldOutcome::Expired => self.expired,
            HoldOutcome::Cancelled => self.cancelled,
            HoldOutcome::Superseded => self.superseded,
        }
    }

    const fn ended_mut(&mut self, ending: HoldOutcome) -> &mut u64 {
        match ending {
            HoldOutcome::Approved => &mut self.approved,
            HoldOutcome::Denied => &mut self.denied,
            HoldOutcome::Expired => &mut self.expired,
            HoldOutcome::Cancelled => &mut self.cancelled,
            HoldOutcome::Superseded => &mut self.superseded,
        }
    }

    /// Returns the number of ended reviews.
    pub fn ended(&self) -> u64 {
        HoldOutcome::ALL.into_iter().map(|it| self.ended_so(it)).sum()
    }

    fn add(&mut self, fact: &CountedEvent, took: Duration) {
        match fact {
            CountedEvent::Committed => self.committed += 1,
            CountedEvent::Observed => self.observed += 1,
            CountedEvent::Rejected => self.rejected += 1,
            CountedEvent::Opened(_) => self.opened += 1,
            CountedEvent::Ended(_, ending) => {
                *self.ended_mut(*ending) += 1;
                // A review without a decision is excluded, because its time does not show how long reviewers take.
                if matches!(ending, HoldOutcome::Approved | HoldOutcome::Denied) {
                    self.times.add(took);
                }
            }
        }
    }
}

impl FlowCounts {
    fn add(&mut self, fact: &CountedEvent, hold: Option<(&Hold, Duration)>) {
        let took = hold.map_or(Duration::ZERO, |it| it.1);
        self.all.add(fact, took);
        // The key is the stored text: an audit counts again from the same reviews and compares the rows.
        let mut said: Vec<&str> = hold.iter().flat_map(|it| &it.0.reasons).map(|it| it.text.as_str()).collect();
        said.sort_unstable();
        // A reason that occurs twice counts once per review.
        said.dedup();
        for reason in said {
            let room = self.reasons.len() < REASONS_MAX;
            match self.reasons.get_mut(reason) {
                Some(counts) => counts.add(fact, took),
                // The first reasons are counted by name. The number of names in a row is limited.
                None if room => self.reasons.entry(reason.to_owned()).or_default().add(fact, took),
                None => self.other_reasons.get_or_insert_default().add(fact, took),
            }
        }
    }

    /// Adds other counts. Reasons with the same cause are one group, whichever release worded them.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for (reason, counts) in &other.reasons {
            self.reasons.entry(current_wording(reason).into_owned()).or_default().merge(counts);
        }
        if let Some(counts) = &other.other_reasons {
            self.other_reasons.get_or_insert_default().merge(counts);
        }
    }
}

impl PeriodFigures {
    /// Returns empty counts for a period.
    pub fn none_of(period: Period) -> Self {
        Self { period, flows: BTreeMap::new(), other_flows: None }
    }

    fn flow(&mut self, flow: &FlowId) -> &mut FlowCounts {
        // A flow that is counted by name stays so, even after the limit is reached.
        if self.flows.contains_key(flow) || self.flows.len() < FLOWS_MAX {
            self.flows.entry(flow.clone()).or_default()
        } else {
            self.other_flows.get_or_insert_default()
        }
    }
}

impl CountProgress {
    fn open_of(&mut self, flow: &FlowId) -> &mut u64 {
        if self.open.contains_key(flow) || self.open.len() < OPEN_FLOWS_MAX {
            self.open.entry(flow.clone()).or_insert(0)
        } else {
            &mut self.open_elsewhere
        }
    }

    /// Returns the number of open reviews of one flow or of all flows.
    pub fn open_reviews(&self, flow: Option<&FlowId>) -> u64 {
        match flow {
            Some(flow) => self.open.get(flow).copied().unwrap_or_default(),
            None => self.open.values().sum::<u64>() + self.open_elsewhere,
        }
    }

    /// Counts the event at the next log position. `hold` is the review that the event names.
    pub fn count(&mut self, sheet: &mut InsightRows, index: u64, event: &Event, hold: Option<&Hold>) {
        // Events that are not counted advance the cursor too, so they are not read again.
        (self.index, self.at) = (index, event.at);
        let (Some(fact), Some(flow)) = (CountedEvent::of(event), &event.flow) else { return };
        match &fact {
            CountedEvent::Opened(_) => *self.open_of(flow) += 1,
            CountedEvent::Ended(..) => {
                let open = self.open_of(flow);
                // Saturation keeps the counter valid if the start of a review was not counted.
                *open = open.saturating_sub(1);
            }
            CountedEvent::Committed | CountedEvent::Observed | CountedEvent::Rejected => {}
        }
        for step in BucketWidth::KEPT {
            add(sheet, step, event, hold);
        }
    }
}

/// Adds an event to the counts of its period.
pub fn add(sheet: &mut InsightRows, step: BucketWidth, event: &Event, hold: Option<&Hold>) {
    let (Some(fact), Some(flow)) = (CountedEvent::of(event), &event.flow) else { return };
    let hold = hold.map(|it| (it, it.opened_at.until(event.at)));
    let period = Period::of(step, event.at);
    sheet.entry(period).or_insert_with(|| PeriodFigures::none_of(period)).flow(flow).add(&fact, hold);
}

impl CountedEvent {
    /// Returns the counted fact of an event, if it has one.
    pub fn of(event: &Event) -> Option<Self> {
        let text = |name: &str| event.data.get(name)?.as_str();
        let review = || ReviewId::try_from(text("review")?).ok();
        let ended = |ending| Some(Self::Ended(review()?, ending));
        match event.kind {
            EventType::TransitionRejected => Some(Self::Rejected),
            EventType::TransitionHeld => review().map(Self::Opened),
            EventType::TransitionApproved => ended(HoldOutcome::Approved),
            EventType::TransitionDenied => ended(HoldOutcome::Denied),
            EventType::TransitionExpired => ended(HoldOutcome::Expired),
            EventType::TransitionCancelled => ended(HoldOutcome::Cancelled),
            EventType::TransitionSuperseded => ended(HoldOutcome::Superseded),
            EventType::TransitionCommitted => {
                // The start of a thread is no proposal. An approved proposal is counted by its approval, and a writer's
                // report never needed a decision.
                let began = event.data.get("version")?.as_u64()? == 0;
                match event.data.get("gate")?.get("kind")?.as_str()? {
                    _ if began => None,
                    "auto" => Some(Self::Committed),
                    "observed" => Some(Self::Observed),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the review of the fact, if it has one.
    pub const fn review(&self) -> Option<&ReviewId> {
        match self {
            Self::Opened(review) | Self::Ended(review, _) => Some(review),
            Self::Committed | Self::Observed | Self::Rejected => None,
        }
    }
}

#[cfg(test)]
mod tests;
