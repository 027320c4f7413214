//! The status of a review: its stages and votes, its outcome, and the write after it.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{HoldState, Vote, VoteVerdict, VotingSeat};
use countersign_domain::writes::write::{Write, WriteResolution, WriteState};
use countersign_service::proposals::denied_attempts::EarlierDenials;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::writes::verify::peek_receipt;

use crate::pages::reviews::review_view as view;
use crate::pages::reviews::review_view::{ReviewStatusView, StageProgress, StageView};
use crate::pages::shared::call_outcome;
use crate::pages::shared::call_outcome::UnusedApproval;
use crate::pages::shared::format::{deciders, ending, lines, listed, moment, span, urgency, voted_by};
use crate::pages::shared::safe_text::{SafeLine, SafeText};

pub fn standing(facts: &ReviewFacts, next_url: Option<String>) -> ReviewStatusView {
    match ending(&facts.hold.state) {
        None => ReviewStatusView::Waiting {
            needs: needs(facts),
            deadline: moment(facts.hold.expires_at, facts.now),
            urgency: urgency(facts.hold.expires_at, facts.now),
        },
        Some((outcome, at)) => ReviewStatusView::Ended {
            outcome,
            by: deciders(&facts.hold),
            at: moment(at, facts.now),
            followed: followed(facts),
            next_url,
        },
    }
}

pub fn needs(facts: &ReviewFacts) -> String {
    let lacking = (0u32..).zip(&facts.hold.stages).filter_map(|(index, stage)| {
        let missing = stage.need.saturating_sub(facts.hold.approvals(index, &facts.roll));
        let asked = facts.hold.groups_for_stage(index as usize, facts.now);
        (missing > 0).then(|| format!("{missing} more from {}", listed(&groups(&asked), "or")))
    });
    listed(&lacking.collect::<Vec<_>>(), "and")
}

/// Returns the earlier denials of the same change, with the comment of the last one.
pub fn denied_before(facts: &ReviewFacts, denied: &EarlierDenials) -> view::EarlierDenialsView {
    let times = match denied.times {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    };
    view::EarlierDenialsView {
        often: format!("{times} in the {} before this review", span(denied.within.as_secs())),
        by: SafeLine::new(denied.name.as_str()),
        comment: denied.comment.as_deref().map(|it| SafeText::new(facts.said(&denied.by, it))),
        url: format!("/reviews/{}", denied.last.id),
    }
}

pub fn groups(groups: &std::collections::BTreeSet<countersign_domain::primitives::id::GroupName>) -> Vec<String> {
    groups.iter().map(ToString::to_string).collect()
}

/// Returns the stages with the votes that count under the current roles and groups.
pub fn stages(facts: &ReviewFacts) -> Vec<StageView> {
    let stage = |(index, stage): (u32, &countersign_domain::reviews::ApprovalStage)| {
        let counts = |vote: &&Vote| {
            vote.stage == index && vote.verdict == VoteVerdict::Approve && facts.hold.may_still(vote, &facts.roll)
        };
        let approved_by = facts.hold.counted_votes().filter(counts).map(|it| SafeLine::new(voted_by(it))).collect();
        let done = facts.hold.approvals(index, &facts.roll) >= stage.need;
        StageView {
            groups: lines(facts.hold.groups_for_stage(index as usize, facts.now).iter().map(|it| it.as_str())),
            approved_by,
            need: stage.need,
            progress: match (done, facts.hold.is_open(facts.now)) {
                (true, _) => StageProgress::Done,
                (false, true) => StageProgress::Open,
                (false, false) => StageProgress::Over,
            },
        }
    };
    (0u32..).zip(&facts.hold.stages).map(stage).collect()
}

/// Returns the first seat whose stage lacks votes, or else the first seat.
pub fn place_to_vote_in<'a>(facts: &ReviewFacts, may: &[&'a VotingSeat]) -> Option<&'a VotingSeat> {
    let lacks = |place: &&&VotingSeat| {
        let stage = facts.hold.stages.get(place.stage as usize);
        stage.is_some_and(|it| facts.hold.approvals(place.stage, &facts.roll) < it.need)
    };
    // A stage that still lacks approvals is the better place, because the vote brings the review forward there.
    may.iter().find(lacks).or(may.first()).copied()
}

/// Returns the expiry of the receipt of this review.
pub fn receipt_expires_at(facts: &ReviewFacts) -> Option<Timestamp> {
    let claims = peek_receipt(&facts.receipt.as_ref()?.token)?;
    Some(Timestamp::from_millis(claims.exp.saturating_mul(1000)))
}

fn followed(facts: &ReviewFacts) -> String {
    let call_only = call_outcome::is_call_only(facts);
    match &facts.hold.state {
        HoldState::Approved { .. } if call_only => after_call_approval(facts),
        ended if call_only => call_outcome::without_approval(ended, facts.hold.node.as_str()),
        HoldState::Open {} => String::new(),
        HoldState::Approved { version, .. } => after_approval(facts, *version),
        HoldState::Denied { .. } => "Nothing was committed or written.".to_owned(),
        HoldState::Expired { .. } => {
            "No decision was made before the deadline. Nothing was committed. The agent can propose the change \
             again."
                .to_owned()
        }
        HoldState::Cancelled { .. } => "Its proposer cancelled it. Nothing was committed.".to_owned(),
        HoldState::Superseded { by: Some(_), policy: Some(_), .. } => {
            "Another policy was activated for the flow. A new review under that policy replaces this one, and \
             reviewers vote again."
                .to_owned()
        }
        HoldState::Superseded { by: None, policy: Some(_), .. } => {
            "Another policy was activated for the flow, and it does not require this approval. Nothing was committed. \
             The agent can propose the change again."
                .to_owned()
        }
        HoldState::Superseded { by: Some(_), .. } => {
            "Another transition replaced it. Nothing was committed.".to_owned()
        }
        HoldState::Superseded { by: None, .. } => {
            "The thread was closed, or a confirmed write changed it. Nothing was committed.".to_owned()
        }
    }
}

fn after_call_approval(facts: &ReviewFacts) -> String {
    let node = facts.hold.node.as_str();
    match (&facts.thread.request, &facts.write) {
        (Some(_), Some(write)) => call_outcome::outcome(write, facts.now),
        (Some(_), None) => {
            let revoked = facts.receipt.as_ref().is_some_and(|it| it.revoked.is_some());
            UnusedApproval { revoked, expires_at: receipt_expires_at(facts) }.words(node, facts.now)
        }
        // The host application runs the call itself, and a writer can use the receipt for the state.
        (None, write) => {
            let has_writer = facts.policy.writers().next().is_some();
            let became = write.as_ref().map(|it| written(it, facts.now));
            let became = became.or_else(|| has_writer.then(|| unused_receipt(facts))).unwrap_or_default();
            format!("{node} may run this call. {became}").trim_end().to_owned()
        }
    }
}

fn after_approval(facts: &ReviewFacts, version: u64) -> String {
    let committed = format!("It was committed as version {version}.");
    let Some(write) = &facts.write else {
        return format!("{committed} {}", unused_receipt(facts));
    };
    format!("{committed} {}", written(write, facts.now))
}

fn written(write: &Write, now: Timestamp) -> String {
    let node = &write.node;
    match &write.state {
        // A reservation whose lease has passed says nothing about the write, so only a live one counts as writing.
        WriteState::Reserved {} if write.is_live(now) => format!("{node} is writing now."),
        WriteState::Reserved {} => format!("{node} started to write and never reported the outcome."),
        WriteState::Confirmed { .. } => format!("The receipt was used: {node} has written."),
        WriteState::Aborted { .. } => {
            format!("{node} reported that it wrote nothing. The receipt cannot be used again.")
        }
        WriteState::Failed { .. } => {
            format!("{node} ran the call, which failed. It may have had a part of its effect.")
        }
        WriteState::Late { .. } => format!("{node} confirmed its write too late to be recorded in the thread."),
        WriteState::Resolved { outcome: WriteResolution::Written, .. } => {
            format!("{node} never reported the outcome. An administrator confirmed that it has written.")
        }
        WriteState::Resolved { outcome: WriteResolution::NotWritten, .. } => {
            format!("{node} never reported the outcome. An administrator confirmed that it wrote nothing.")
        }
    }
}

fn unused_receipt(facts: &ReviewFacts) -> String {
    if facts.receipt.as_ref().is_some_and(|it| it.revoked.is_some()) {
        return "The receipt was revoked before a writer used it.".to_owned();
    }
    match receipt_expires_at(facts) {
        Some(at) if at > facts.now => {
            format!("The receipt waits for its writer and expires in {}.", span(facts.now.until(at).as_secs()))
        }
        Some(_) => "The receipt expired without being used.".to_owned(),
        None => "The receipt cannot be read.".to_owned(),
    }
}
