//! Compares the votes in the row of a review with its vote and withdrawal events.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState, Vote, VoteVerdict};
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::event_replay::{HoldEvents, number, said};
use super::identity::text;
use crate::reviews::vote::vote_data;
use crate::reviews::withdraw::withdrawal_data;

/// Data and time of a vote, and of its withdrawal.
type VoteEvents = (Value, Timestamp, Option<(Value, Timestamp)>);

/// Returns the votes of a review in order, rebuilt from its events, or `None` if the events contradict each other.
///
/// Events contradict each other if a second active vote takes a seat, or if a vote follows the end of the review. A
/// withdrawal without an active vote of that person is also a contradiction.
fn replayed(told: &HoldEvents<'_>) -> Option<Vec<VoteEvents>> {
    let mut votes: Vec<VoteEvents> = Vec::new();
    let mut standing: BTreeMap<&str, usize> = BTreeMap::new();
    let ended = told.end.and_then(|it| it.seq);
    for ballot in &told.ballots {
        let places = || [Some(said(ballot, "reviewer")), text(ballot, "for")].into_iter().flatten();
        // No vote may follow the end of the review.
        if ended.is_some_and(|end| ballot.seq > Some(end)) {
            return None;
        }
        if ballot.kind == EventType::ReviewWithdrawn {
            let by = text(ballot, "by").unwrap_or_else(|| said(ballot, "reviewer"));
            let vote = standing.get(by).copied().filter(|it| index_of(ballot) == Some(*it))?;
            standing.retain(|_, it| *it != vote);
            votes.get_mut(vote)?.2 = Some((ballot.data.clone(), ballot.at));
        } else if places().any(|it| standing.contains_key(it)) {
            return None;
        } else {
            standing.extend(places().map(|it| (it, votes.len())));
            votes.push((ballot.data.clone(), ballot.at, None));
        }
    }
    Some(votes)
}

/// Returns the people whose seats a vote takes.
fn places_of(vote: &Vote) -> impl Iterator<Item = &AccountId> {
    [Some(&vote.reviewer), vote.absent.as_ref().map(|it| &it.person)].into_iter().flatten()
}

fn index_of(event: &Event) -> Option<usize> {
    usize::try_from(number(event, "vote")?).ok()
}

fn as_kept(hold: &Hold, index: usize, vote: &Vote) -> VoteEvents {
    let withdrawn = vote.withdrawn.as_ref().map(|it| (withdrawal_data(hold, index, vote), it.at));
    (vote_data(hold, vote), vote.at, withdrawn)
}

impl AuditRun<'_> {
    /// Checks that the votes in the row match the events.
    pub(super) fn check_votes(&mut self, hold: &Hold, told: &HoldEvents<'_>) {
        let kept: Vec<VoteEvents> = hold.votes.iter().enumerate().map(|(at, it)| as_kept(hold, at, it)).collect();
        let same = replayed(told).is_some_and(|it| it == kept);
        self.expect(same, Table::Holds, &hold.id, "the votes differ from those that the events record");
    }

    /// Checks that each person voted once and was not excluded. An approved review must have the quorum of every stage
    /// in its stored votes.
    pub(super) fn check_quorum(&mut self, hold: &Hold) {
        let places: Vec<_> = hold.counted_votes().flat_map(places_of).collect();
        let once = places.iter().collect::<BTreeSet<_>>().len() == places.len();
        self.expect(once, Table::Holds, &hold.id, "one person has two votes on the review");
        let excluded =
            |id: &AccountId, name: &String| hold.excluded.contains(name) || hold.excluded.contains(id.as_str());
        let author = |it: &Vote| {
            excluded(&it.reviewer, &it.name) || it.absent.as_ref().is_some_and(|it| excluded(&it.person, &it.name))
        };
        self.expect(
            !hold.votes.iter().any(author),
            Table::Holds,
            &hold.id,
            "an author of the change has a vote on the review",
        );
        let exact = hold.votes.iter().all(|it| it.transition == hold.transition);
        self.expect(exact, Table::Holds, &hold.id, "a vote is for another transition than the review");
        let confirmed = hold.votes.iter().all(|it| it.typed == hold.asks_to_type(it.stage, it.verdict));
        self.expect(confirmed, Table::Holds, &hold.id, "a vote was not confirmed as its stage requires");
        if !matches!(hold.state, HoldState::Approved { .. }) {
            return;
        }
        let count = |stage: u32| {
            hold.counted_votes().filter(|it| it.stage == stage && it.verdict == VoteVerdict::Approve).count()
        };
        let full = (0u32..)
            .zip(&hold.stages)
            .all(|(stage, asked)| u32::try_from(count(stage)).is_ok_and(|it| it >= asked.need));
        // A review without stages would otherwise pass without any vote.
        self.expect(
            full && !hold.stages.is_empty(),
            Table::Holds,
            &hold.id,
            "it was approved without the required quorum",
        );
        let denied = hold.counted_votes().filter(|it| it.verdict == VoteVerdict::Deny).count();
        // Enough denials reject a change, whatever the number of approvals.
        let outvoted = u32::try_from(denied).is_ok_and(|it| it < hold.denials_needed);
        self.expect(outvoted, Table::Holds, &hold.id, "it was approved, although enough reviewers denied it");
    }
}
