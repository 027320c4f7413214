//! Checks policy change requests against their events, and every activation against the policy whose reviewers had to
//! approve it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::chain::hash::Digest;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::policy_changes::change_request::{PolicyChangeRequest, PolicyChangeState};
use countersign_domain::reviews::{VoteVerdict, stage_of};
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::identity::in_any_order;
use crate::policy_changes::requests::{end_data, proposal_data, vote_data};

#[derive(Default)]
struct PolicyChangeEvents<'a> {
    proposed: Option<&'a Event>,
    votes: Vec<&'a Event>,
    end: Option<&'a Event>,
}

fn text<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.data.get(name).and_then(Value::as_str)
}

impl AuditRun<'_> {
    pub(super) fn check_policy_changes(&mut self, outside: &[&Event]) {
        let mut story: BTreeMap<&str, PolicyChangeEvents<'_>> = BTreeMap::new();
        for event in outside {
            let Some(id) = text(event, "amendment") else { continue };
            match event.kind {
                EventType::PolicyProposed => story.entry(id).or_default().proposed = Some(event),
                EventType::PolicyVote => story.entry(id).or_default().votes.push(event),
                EventType::PolicyEnded => story.entry(id).or_default().end = Some(event),
                _ => {}
            }
        }
        for (id, stored) in &self.all.amendments {
            let told = story.remove(id.as_str()).unwrap_or_default();
            self.check_amendment(&stored.record, stored.revision, &told);
        }
        for id in story.into_keys() {
            self.note(Table::Amendments, id, "the row is missing, but an event records it");
        }
        self.check_activations(outside);
    }

    fn check_amendment(&mut self, amendment: &PolicyChangeRequest, revision: i64, told: &PolicyChangeEvents<'_>) {
        let id = &amendment.id;
        self.expect(amendment.is_whole(), Table::Amendments, id, "the digest does not match the content of the row");
        let as_told = told.proposed.is_some_and(|it| {
            it.data == proposal_data(amendment)
                && it.at == amendment.opened_at
                && it.flow.as_ref() == Some(&amendment.change.flow)
        });
        self.expect(
            as_told,
            Table::Amendments,
            id,
            "the policy change request differs from the event that proposed it",
        );
        let kept = amendment.votes.iter().map(|it| (it.at, vote_data(amendment, it)));
        let same = in_any_order(kept) == in_any_order(told.votes.iter().map(|it| (it.at, it.data.clone())));
        self.expect(same, Table::Amendments, id, "the votes differ from those that the events record");
        let ended = amendment.state.ended_at().map(|at| (end_data(amendment), at));
        let as_ended = told.end.map(|it| (it.data.clone(), it.at));
        self.expect(
            ended == as_ended,
            Table::Amendments,
            id,
            "the outcome differs from the one that the events record",
        );
        let by_a_vote =
            matches!(amendment.state, PolicyChangeState::Activated { .. } | PolicyChangeState::Denied { .. });
        // The last vote also ends the request, in the same revision.
        let ends = i64::from(ended.is_some() && !by_a_vote);
        let changes = i64::try_from(amendment.votes.len()).unwrap_or(i64::MAX).saturating_add(ends);
        let dense = revision == changes.saturating_add(1);
        self.expect(
            dense,
            Table::Amendments,
            id,
            "the revision of the row differs from the changes that its events record",
        );
        self.check_amendment_votes(amendment);
        self.check_proofs(amendment);
    }

    /// Checks that each person voted once, was not excluded and voted for this digest. An activated request must have
    /// its quorum.
    fn check_amendment_votes(&mut self, amendment: &PolicyChangeRequest) {
        let id = &amendment.id;
        let people: BTreeSet<_> = amendment.votes.iter().map(|it| &it.reviewer).collect();
        let proper = people.len() == amendment.votes.len()
            && amendment.votes.iter().all(|it| {
                it.transition == amendment.digest
                    && !amendment.excluded.contains(&it.name)
                    && !amendment.excluded.contains(it.reviewer.as_str())
            });
        self.expect(
            proper,
            Table::Amendments,
            id,
            "a vote breaks a voting rule: one vote for each person, no excluded person, and this exact digest",
        );
        // `check_policies` reports a policy that does not compile.
        if let Some(policy) = self.policies.get(&amendment.change.over.policy) {
            let asked = policy.approval().amending().map(|it| vec![stage_of(it.stage())]);
            let same = asked.as_ref() == Some(&amendment.stages);
            self.expect(same, Table::Amendments, id, "the required votes differ from the policy that it replaces");
        }
        if !matches!(amendment.state, PolicyChangeState::Activated { .. }) {
            return;
        }
        let count = |stage: u32| {
            amendment.votes.iter().filter(|it| it.stage == stage && it.verdict == VoteVerdict::Approve).count()
        };
        let full = (0u32..)
            .zip(&amendment.stages)
            .all(|(stage, asked)| u32::try_from(count(stage)).is_ok_and(|it| it >= asked.need));
        let refused = amendment.votes.iter().any(|it| it.verdict == VoteVerdict::Deny);
        self.expect(full && !refused, Table::Amendments, id, "it was activated without the required quorum");
    }

    /// Checks that an activation names its approved policy change request if the previous policy required approval.
    fn check_activations(&mut self, outside: &[&Event]) {
        let mut by_flow: BTreeMap<&str, BTreeMap<i64, &Event>> = BTreeMap::new();
        for event in outside.iter().filter(|it| it.kind == EventType::PolicyActivated) {
            let flow = event.flow.as_ref().map(|it| it.as_str()).unwrap_or_default();
            let revision = event.data.get("revision").and_then(Value::as_i64).unwrap_or_default();
            by_flow.entry(flow).or_default().insert(revision, event);
        }
        for (flow, activations) in by_flow {
            let activations: Vec<&Event> = activations.into_values().collect();
            // The policy before each activation decides which approval it required.
            for pair in activations.windows(2) {
                let [before, after] = pair else { continue };
                let fits = self.is_approved(before, after);
                self.expect(fits, Table::Flows, flow, "a policy was activated without the approval that it required");
            }
            // No policy existed that could require approval for the first one.
            let first = activations.first().is_none_or(|it| text(it, "amendment").is_none());
            self.expect(first, Table::Flows, flow, "the first policy of the flow names a policy change request");
        }
    }

    fn is_approved(&self, before: &Event, after: &Event) -> bool {
        let policy = |event: &Event| text(event, "policy").and_then(|it| Digest::try_from(it).ok());
        let asks =
            policy(before).and_then(|it| self.policies.get(&it)).is_some_and(|it| it.approval().amending().is_some());
        let Some(id) = text(after, "amendment") else { return !asks };
        self.all.amendments.get(id).is_some_and(|it| {
            let amendment = &it.record;
            let change = &amendment.change;
            amendment.state == PolicyChangeState::Activated { at: after.at }
                && Some(change.policy) == policy(after)
                && Some(change.over.policy) == policy(before)
                && change.over.since == before.at
                && after.data.get("accepts") == serde_json::to_value(&change.accepts).ok().as_ref()
                && text(after, "by") == Some(amendment.proposer.as_str())
                && Some(&change.flow) == after.flow.as_ref()
        })
    }
}
