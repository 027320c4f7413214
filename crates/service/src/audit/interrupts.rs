//! Checks interrupts against their events and their policy, and their signed answers against the key.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::chain::jws::TokenType;
use countersign_domain::chain::receipt::{ApprovalClaim, DenialClaim};
use countersign_domain::interrupts::{Interrupt, InterruptAnswer, InterruptDecision, InterruptDecisionInput};
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::reviews::{Vote, VoteVerdict};
use countersign_store::row::Table;

use super::AuditRun;
use super::identity::{in_any_order, text};
use crate::interrupts::lifecycle::approval_requirements;
use crate::interrupts::{end_data, end_event, posted_data, received_data, vote_data};

#[derive(Default)]
struct InterruptEvents<'a> {
    received: Option<&'a Event>,
    votes: Vec<&'a Event>,
    ends: Vec<&'a Event>,
}

impl AuditRun<'_> {
    pub(super) fn check_interrupts(&mut self, outside: &[&Event]) {
        let mut story: BTreeMap<&str, InterruptEvents<'_>> = BTreeMap::new();
        for event in outside {
            let Some(id) = text(event, "interrupt") else { continue };
            let told = story.entry(id).or_default();
            match event.kind {
                EventType::InterruptReceived => told.received = Some(event),
                EventType::InterruptVote => told.votes.push(event),
                // `check_posts` reads these events.
                EventType::InterruptPosted => {}
                _ => told.ends.push(event),
            }
        }
        for (id, stored) in &self.all.interrupts {
            let told = story.remove(id.as_str()).unwrap_or_default();
            self.check_interrupt(&stored.record, stored.revision, &told);
        }
        for id in story.into_keys() {
            self.note(Table::Interrupts, id, "the row is missing, but an event records it");
        }
        self.check_posts(outside);
    }

    /// Checks signed posts against their events. Each post is recorded once.
    fn check_posts(&mut self, outside: &[&Event]) {
        let mut told: BTreeMap<String, &Event> = BTreeMap::new();
        for event in outside.iter().filter(|it| it.kind == EventType::InterruptPosted) {
            let id = [text(event, "token"), text(event, "webhook_id")].map(Option::unwrap_or_default).join("/");
            told.insert(id, event);
        }
        for (id, stored) in &self.all.posts {
            let post = &stored.record;
            let interrupt = self.all.interrupts.get(post.interrupt.as_str()).map(|it| &it.record);
            // The post must also come from the sender of the interrupt.
            let same = told.remove(id).is_some_and(|it| it.data == posted_data(post) && it.at == post.at)
                && interrupt.is_some_and(|it| it.source.token == post.source);
            self.expect(same, Table::Posts, id, "the signed post differs from the event that records it");
            self.expect(
                stored.revision == 1,
                Table::Posts,
                id,
                "the signed post was replaced, which the gateway never does",
            );
        }
        for id in told.into_keys() {
            self.note(Table::Posts, id, "the row is missing, but an event records it");
        }
    }

    fn check_interrupt(&mut self, interrupt: &Interrupt, revision: i64, told: &InterruptEvents<'_>) {
        let id = &interrupt.id;
        self.expect(interrupt.is_whole(), Table::Interrupts, id, "the digest does not match the content of the row");
        // `check_policies` reports a policy that does not compile.
        let policy = self.policies.get(&interrupt.policy);
        let as_told = told.received.zip(policy).is_some_and(|(it, policy)| {
            it.data == received_data(interrupt, policy)
                && it.at == interrupt.received_at
                && it.flow.as_ref() == Some(&interrupt.flow)
        });
        let as_asked = policy.is_none_or(|it| approval_requirements(it) == interrupt.asking);
        self.expect(as_told, Table::Interrupts, id, "the interrupt differs from the event that records it");
        self.expect(as_asked, Table::Interrupts, id, "the required votes differ from the policy");
        let kept = interrupt.votes.iter().map(|it| (it.at, vote_data(interrupt, it)));
        let same = in_any_order(kept) == in_any_order(told.votes.iter().map(|it| (it.at, it.data.clone())));
        self.expect(same, Table::Interrupts, id, "the votes differ from those that the events record");
        let ended = interrupt.ending().map(|(decision, at, _)| (end_event(decision), end_data(interrupt), at));
        let same = told.ends.iter().map(|it| (it.kind, it.data.clone(), it.at)).eq(ended.clone());
        self.expect(same, Table::Interrupts, id, "the outcome differs from the one that the events record");
        // The last vote also ends the interrupt, in the same revision.
        let by_a_vote = interrupt.ending().is_some_and(|it| it.0.verdict().is_some());
        let ends = i64::from(ended.is_some() && !by_a_vote);
        let changes = i64::try_from(interrupt.votes.len()).unwrap_or(i64::MAX).saturating_add(ends);
        let dense = revision == changes.saturating_add(1);
        self.expect(
            dense,
            Table::Interrupts,
            id,
            "the revision of the row differs from the changes that its events record",
        );
        self.check_interrupt_votes(interrupt);
        self.check_proofs(interrupt);
        self.check_interrupt_answer(interrupt);
    }

    /// Checks that each person voted once, on their own behalf, and was not excluded. Each vote must name this digest
    /// and be confirmed as its stage requires.
    fn check_interrupt_votes(&mut self, interrupt: &Interrupt) {
        let people: BTreeSet<_> = interrupt.votes.iter().map(|it| &it.reviewer).collect();
        let counts = |it: &Vote| {
            it.transition == interrupt.digest
                && it.stands()
                // Interrupts have no delegated votes.
                && it.absent.is_none()
                && !interrupt.excluded.contains(&it.name)
                && !interrupt.excluded.contains(it.reviewer.as_str())
                && it.typed == interrupt.asks_to_type(it.stage, it.verdict)
        };
        let proper = people.len() == interrupt.votes.len() && interrupt.votes.iter().all(counts);
        self.expect(
            proper,
            Table::Interrupts,
            &interrupt.id,
            "a vote breaks a voting rule: one vote for each person, no excluded person, and this exact digest",
        );
        let ended = interrupt.ending().map(|it| it.0);
        let count = |stage: Option<u32>, verdict: VoteVerdict| {
            let of = |it: &&Vote| stage.is_none_or(|stage| it.stage == stage) && it.verdict == verdict;
            u32::try_from(interrupt.votes.iter().filter(of).count()).unwrap_or(u32::MAX)
        };
        let mut stages = (0u32..).zip(&interrupt.asking.stages);
        let full = stages.all(|(stage, asked)| count(Some(stage), VoteVerdict::Approve) >= asked.need);
        let refused = count(None, VoteVerdict::Deny) >= interrupt.asking.denials_needed;
        let lawful = match ended {
            Some(InterruptDecision::Approved) => full && !refused,
            Some(InterruptDecision::Denied) => refused,
            None | Some(InterruptDecision::Expired | InterruptDecision::Superseded) => !refused,
        };
        self.expect(lawful, Table::Interrupts, &interrupt.id, "it was approved without the required quorum");
    }

    /// Checks that the answer is signed by the chain key for this interrupt, and names only people whose votes match.
    fn check_interrupt_answer(&mut self, interrupt: &Interrupt) {
        let Some((decision, at, answer)) = interrupt.ending() else { return };
        let approves = |it: &ApprovalClaim| {
            let vote = |vote: &Vote| {
                (&vote.reviewer, vote.stage, vote.at, vote.verdict)
                    == (&it.reviewer, it.stage, it.at, VoteVerdict::Approve)
                    && vote.proof.evidence() == it.evidence
                    && vote.proof.method().is_none_or(|method| method == it.method)
            };
            it.absent.is_none() && interrupt.votes.iter().any(vote)
        };
        let refuses = |it: &DenialClaim| {
            let vote = |vote: &Vote| {
                (&vote.reviewer, vote.stage, vote.at, vote.verdict)
                    == (&it.reviewer, it.stage, it.at, VoteVerdict::Deny)
            };
            it.absent.is_none() && interrupt.votes.iter().any(vote)
        };
        let claims = self.believed::<InterruptAnswer>(&answer.token, TokenType::InterruptAnswer);
        let same = claims.is_some_and(|it| {
            let (approvals, refusals) = (it.approvals.clone(), it.refusals.clone());
            let ending = InterruptDecisionInput { decision, at, expires_at: answer.expires_at, approvals, refusals };
            it == interrupt.claims(self.keys.issuer(), &answer.nonce, ending)
                && it.approvals.iter().all(approves)
                && it.refusals.iter().all(refuses)
        });
        self.expect(same, Table::Interrupts, &interrupt.id, "the answer is not signed for this interrupt");
    }
}
