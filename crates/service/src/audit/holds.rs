//! Checks reviews with their votes, receipts and rejections against their events and the signed tokens.

use std::collections::BTreeMap;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenClaims, TokenType};
use countersign_domain::chain::receipt::{ApprovalMethod, Denial, Receipt};
use countersign_domain::chain::statement::Statement;
use countersign_domain::keys::{KeyState, KeyUse, Keys};
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::reviews::{Hold, HoldState, VoteVerdict, stages_of};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{HoldEndReason, Rejection, TransitionOutcome};
use countersign_store::row::Table;

use super::AuditRun;
use super::event_replay::{HoldEvents, ThreadEvents, said};
use super::load::ThreadRows;
use crate::proposals::hold::{is_held_data, notices_of};
use crate::proposals::reject::{count, event_data};
use crate::reviews::comment::comment_data;
use crate::reviews::reveal::look_data;
use crate::threads::hold::end_data;

impl AuditRun<'_> {
    pub(super) fn check_holds(&mut self, thread: &Thread, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        let mut opened: BTreeMap<_, u32> = BTreeMap::new();
        for hold in &own.holds {
            match story.holds.get(hold.id.as_str()) {
                Some(told) => self.check_hold(hold, told),
                None => self.note(Table::Holds, &hold.id, "no event opened the review"),
            }
            let transition = self.all.transitions.get(&hold.transition.to_string()).map(|it| &it.record);
            let Some(transition) = transition else {
                self.note(Table::Transitions, hold.transition, "the transition is missing, but a review holds it");
                continue;
            };
            self.expect(
                outcome_fits(hold, &transition.outcome),
                Table::Transitions,
                hold.transition,
                "the outcome of the transition differs from the state of its review",
            );
            self.check_terms(hold, &transition.statement);
            self.check_attempts(hold, transition, thread, own);
            if hold.counts() && transition.statement.parent == Some(thread.head.transition) {
                *opened.entry(hold.node.clone()).or_insert(0) += 1;
            }
        }
        self.expect(
            opened == thread.holds_opened,
            Table::Threads,
            &thread.id,
            "the review counts of the thread differ from the reviews on its head",
        );
        for review in story.holds.keys().filter(|it| !self.all.holds.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Holds, review, "the row is missing, but an event records it");
        }
        self.check_rejections(thread, own, story);
    }

    fn check_hold(&mut self, hold: &Hold, told: &HoldEvents<'_>) {
        let transition = self.all.transitions.get(&hold.transition.to_string());
        let opened = |it: &Event| transition.is_some_and(|of| is_held_data(&it.data, hold, &of.record));
        let same = told.held.is_some_and(|it| opened(it) && it.at == hold.opened_at);
        self.expect(same, Table::Holds, &hold.id, "the review differs from the event that opened it");
        self.check_votes(hold, told);
        let same = match (end_of(&hold.state), told.end) {
            (None, None) => true,
            (Some(kind), Some(end)) => end.kind == kind && end.data == end_data(hold),
            _ => false,
        };
        self.expect(same, Table::Holds, &hold.id, "the outcome differs from the one that the events record");
        let looks = hold.reveals.iter().map(|it| (look_data(hold, it), it.at));
        let same = looks.eq(told.reveals.iter().map(|it| (it.data.clone(), it.at)));
        self.expect(same, Table::Holds, &hold.id, "the reveals of redacted values differ from the events");
        let words = hold.comments.iter().map(|it| (comment_data(hold, it), it.at));
        let same = words.eq(told.comments.iter().map(|it| (it.data.clone(), it.at)));
        self.expect(same, Table::Holds, &hold.id, "the comments differ from the events");
        self.check_deadline(hold, told);
        self.check_notices(hold, told);
        self.check_quorum(hold);
        self.check_proofs(hold);
        self.check_places(hold);
        if let HoldState::Denied { denial, .. } = &hold.state {
            let claims = self.believed::<Denial>(denial, TokenType::Denial);
            let same = claims
                .is_some_and(|it| it.transition == hold.transition && it.review == hold.id && it.sub == hold.thread);
            self.expect(same, Table::Holds, &hold.id, "the denial is not signed for this review");
        }
    }

    /// Checks that a review belongs to its transition and requires the votes that its policy requires.
    fn check_terms(&mut self, hold: &Hold, statement: &Statement) {
        let same = hold.thread == statement.thread
            && hold.flow == statement.flow
            && hold.policy == statement.policy
            && Some(&hold.node) == statement.node.as_ref();
        self.expect(same, Table::Holds, &hold.id, "the review does not match the transition that it holds");
        // `check_policies` reports a policy that does not compile.
        let Some(policy) = self.policies.get(&statement.policy) else { return };
        let notices = notices_of(policy.approval(), hold.opened_at);
        let asked = hold.stages == stages_of(policy) && hold.denials_needed == policy.approval().denials();
        self.expect(asked, Table::Holds, &hold.id, "the required votes differ from the policy");
        self.check_notice_terms(hold, &notices);
    }

    pub(super) fn check_receipts(&mut self, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        for stored in &own.receipts {
            let row = &stored.record;
            let id = row.jti.as_str();
            let told = story.receipts.get(id);
            let issued = told.and_then(|it| it.issued);
            let same = issued.is_some_and(|it| said(it, "transition") == row.transition.to_string());
            self.expect(same, Table::Receipts, id, "no event issued the receipt");
            let revoked = told.and_then(|it| it.revoked);
            let as_told = revoked.map(|it| (it.at, said(it, "by").to_owned(), said(it, "reason").to_owned()));
            let as_kept = row.revoked.as_ref().map(|it| (it.at, it.by.to_string(), it.reason.clone()));
            self.expect(
                as_told == as_kept,
                Table::Receipts,
                id,
                "the row and its events disagree on whether the receipt was revoked",
            );
            // A receipt changes only once, when it is revoked.
            let expected = 1 + i64::from(revoked.is_some());
            self.expect(
                stored.revision == expected,
                Table::Receipts,
                id,
                "the revision of the row differs from the changes that its events record",
            );
            self.check_receipt_token(row);
        }
        for jti in story.receipts.keys().filter(|it| !self.all.receipts.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Receipts, jti, "the row is missing, but an event records it");
        }
    }

    /// Checks that the token is signed, matches the transition, and names people whose votes are valid.
    fn check_receipt_token(&mut self, row: &ReceiptRow) {
        let Some(claims) = self.believed::<Receipt>(&row.token, TokenType::Receipt) else {
            self.note(Table::Receipts, &row.jti, "the token is not signed by a valid key of this gateway");
            return;
        };
        let transition = self.all.transitions.get(&row.transition.to_string()).map(|it| &it.record);
        let stated = transition.is_some_and(|it| {
            let statement = &it.statement;
            claims.jti == row.jti
                && claims.transition == row.transition
                && claims.sub == row.thread
                && claims.flow == statement.flow
                && claims.policy == statement.policy
                && claims.version == statement.version
                && claims.parent == statement.parent
                && claims.to == statement.to
                && claims.iss == self.keys.issuer()
        });
        self.expect(stated, Table::Receipts, &row.jti, "the token of the receipt does not match its transition");
        let hold = transition.and_then(|it| match &it.outcome {
            TransitionOutcome::Approved { review, receipt, .. } if *receipt == row.jti => {
                self.all.holds.get(review.as_str())
            }
            _ => None,
        });
        let voted = hold.is_some_and(|it| {
            let hold = &it.record;
            let counted = |stage: u32| claims.approvals.iter().filter(|it| it.stage == stage).count();
            let by_votes = claims.approvals.iter().all(|approval| {
                hold.counted_votes().any(|vote| {
                    vote.reviewer == approval.reviewer
                        && vote.absent.as_ref().map(|it| &it.person) == approval.absent.as_ref()
                        && vote.stage == approval.stage
                        && vote.at == approval.at
                        && by_passkey(approval.method) == vote.proof.method()
                        && vote.proof.evidence() == approval.evidence
                        && vote.verdict == VoteVerdict::Approve
                })
            });
            let enough = (0u32..)
                .zip(&hold.stages)
                .all(|(stage, asked)| u32::try_from(counted(stage)).is_ok_and(|it| it >= asked.need));
            by_votes && enough
        });
        self.expect(
            voted,
            Table::Receipts,
            &row.jti,
            "the approvals in the receipt are not votes of an approved review",
        );
        // The row has the names for searches, and the token is what a verifier trusts.
        let named: Vec<_> = claims.approvals.iter().map(|it| it.reviewer.clone()).collect();
        self.expect(
            named == row.reviewers,
            Table::Receipts,
            &row.jti,
            "the row names other reviewers than the token of the receipt",
        );
    }

    /// Returns the claims of a token that a published key signed. Tokens of a retired key stay valid, and tokens of a
    /// revoked key do not.
    pub(super) fn believed<C: TokenClaims>(&self, token: &str, typ: TokenType) -> Option<C> {
        let unverified = jws::read::<C>(token, typ).ok()?;
        let key = self.keys.public(KeyUse::Chain, unverified.kid())?;
        match key.state() {
            KeyState::Signing | KeyState::Retired => unverified.verify(key),
            // A key that never signed, or a revoked one, proves nothing.
            KeyState::Next | KeyState::Revoked => None,
        }
    }

    fn check_rejections(&mut self, thread: &Thread, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        let mut violations = BTreeMap::new();
        for stored in &own.rejections {
            let row = &stored.record;
            let id = row.identity.to_string();
            let as_told = event_data(row);
            let same = story.rejections.get(id.as_str()).is_some_and(|it| it.data == as_told && it.at == row.at);
            // Only rejections on the current head count as violations.
            if row.counted && row.parent == Some(thread.head.transition) {
                count(&mut violations, &row.node);
            }
            self.expect(
                same && stored.revision == 1,
                Table::Rejections,
                &id,
                "the rejection differs from the event that records it",
            );
            // Requests that are long or contain redacted values are not stored.
            let kept = row.request.as_deref().is_none_or(|text| is_kept(self.keys, row, text));
            self.expect(kept, Table::Rejections, &id, "the stored request differs from the one that was rejected");
            // A rejected join stores what it would have carried over.
            let joins = self.is_of_its_branches(row);
            self.expect(joins, Table::Rejections, id, "the join in the stored request differs from its branches");
        }
        let same = violations == thread.violations;
        self.expect(
            same,
            Table::Threads,
            &thread.id,
            "the violation counts of the thread differ from the rejections on its head",
        );
        for id in story.rejections.keys().filter(|it| !self.all.rejections.contains_key(**it)).collect::<Vec<_>>() {
            self.note(Table::Rejections, id, "the row is missing, but an event records it");
        }
    }
}

/// Returns the method of an approval if it used a passkey.
fn by_passkey(method: ApprovalMethod) -> Option<ApprovalMethod> {
    Some(method).filter(|it| matches!(it, ApprovalMethod::Passkey | ApprovalMethod::PasskeySession))
}

/// Returns true if the stored request is the rejected one.
fn is_kept(keys: &Keys, row: &Rejection, text: &str) -> bool {
    let kept = RejectedRequest::read(text).zip(row.parent);
    let same = |(it, parent): (RejectedRequest, Digest)| {
        let secret = keys.salt().thread_secret(row.thread.as_str());
        it.identity(&secret, &row.thread, parent, &row.node, &row.principal) == row.identity
    };
    kept.is_some_and(same)
}

const fn end_of(state: &HoldState) -> Option<EventType> {
    match state {
        HoldState::Open {} => None,
        HoldState::Approved { .. } => Some(EventType::TransitionApproved),
        HoldState::Denied { .. } => Some(EventType::TransitionDenied),
        HoldState::Expired { .. } => Some(EventType::TransitionExpired),
        HoldState::Cancelled { .. } => Some(EventType::TransitionCancelled),
        HoldState::Superseded { .. } => Some(EventType::TransitionSuperseded),
    }
}

fn outcome_fits(hold: &Hold, outcome: &TransitionOutcome) -> bool {
    let ended = |word: HoldEndReason| matches!(outcome, TransitionOutcome::Ended { review, decision } if *review == hold.id && *decision == word);
    match &hold.state {
        HoldState::Open {} => matches!(outcome, TransitionOutcome::Held { review } if *review == hold.id),
        HoldState::Approved { receipt, .. } => {
            matches!(outcome, TransitionOutcome::Approved { review, receipt: jti, .. } if *review == hold.id && jti == receipt)
        }
        HoldState::Denied { .. } => ended(HoldEndReason::Denied),
        HoldState::Expired { .. } => ended(HoldEndReason::Expired),
        HoldState::Cancelled { .. } => ended(HoldEndReason::Cancelled),
        HoldState::Superseded { .. } => ended(HoldEndReason::Superseded),
    }
}
