use serde_json::json;

use super::*;
use crate::chain::entry::Entry;
use crate::chain::jws::{self, JwsError, TokenClaims, TokenType};
use crate::chain::receipt::{ApprovalClaim, Denial, DenialClaim, Receipt, Verification};
use crate::context::EnvelopeClaims;
use crate::episode::manifest;
use crate::identity::account::AccountCredential;
use crate::identity::account::PersonRole;
use crate::keys::{KeyUse, Keys};
use crate::primitives::id::{AccountId, Jti};
use crate::reviews::{BrowserCheck, CheckboxState, ConfirmationMethod, PasskeyRequirement, QuorumResult, VoterProof};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn asserted() -> HostAssertion {
    serde_json::from_value(json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "changed_keys": ["a"],
        "redacted_diff": {"a": 1}, "interrupt_id": "i-1", "attempt": 1,
    }))
    .unwrap()
}

fn interrupt(asserted: HostAssertion) -> Interrupt {
    let stage = ApprovalStage {
        groups: BTreeSet::from(["reviewers".try_into().unwrap()]),
        need: 1,
        comment_required: false,
        passkey: PasskeyRequirement::Nothing {},
        confirm: ConfirmationMethod::Pressing,
    };
    let terms = InterruptTerms {
        source: InterruptSource { token: "t-1".try_into().unwrap(), name: "host".to_owned() },
        flow: "payments".try_into().unwrap(),
        policy: Digest::of(Tag::Policy, &[b"p"]),
        excluded: BTreeSet::from(["platform".to_owned()]),
        asking: ApprovalRequirements { stages: vec![stage], denials_needed: 1 },
        received_at: at(1_000),
        expires_at: at(61_000),
    };
    Interrupt::new("i".try_into().unwrap(), asserted, terms)
}

fn reviewer() -> Account {
    Account {
        id: "a-1".try_into().unwrap(),
        name: "ada".to_owned(),
        role: PersonRole::Reviewer,
        groups: BTreeSet::from(["reviewers".try_into().unwrap()]),
        sign_in: AccountCredential::Password { hash: "x".to_owned() },
        disabled: false,
        created_at: at(0),
        changed: None,
    }
}

fn ballot(digest: Digest) -> Ballot {
    Ballot {
        transition: digest,
        stage: 0,
        delegation: None,
        verdict: VoteVerdict::Approve,
        nonce: "n".to_owned(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::Session {},
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}

fn ending(decision: InterruptDecision) -> InterruptDecisionInput {
    let expires_at = (decision == InterruptDecision::Approved).then(|| at(600_000));
    let approval = ApprovalClaim {
        at: at(2_000),
        evidence: None,
        absent: None,
        method: crate::chain::receipt::ApprovalMethod::Password,
        reviewer: AccountId::try_from("a-1").unwrap(),
        stage: 0,
    };
    let approvals = if decision == InterruptDecision::Approved { vec![approval] } else { Vec::new() };
    let refusal = DenialClaim { at: at(2_000), absent: None, reviewer: "a-1".try_into().unwrap(), stage: 0 };
    let refusals = if decision == InterruptDecision::Denied { vec![refusal] } else { Vec::new() };
    InterruptDecisionInput { decision, at: at(2_000), expires_at, approvals, refusals }
}

#[test]
fn digest_covers_everything_that_reviewers_see() {
    let known = interrupt(asserted());
    assert!(known.is_whole());
    let others = [
        Interrupt { asserted: HostAssertion { redacted_diff: json!({"a": 2}), ..asserted() }, ..known.clone() },
        Interrupt { asserted: HostAssertion { title: Some("t".to_owned()), ..asserted() }, ..known.clone() },
        Interrupt { source: InterruptSource { name: "other".to_owned(), ..known.source.clone() }, ..known.clone() },
        Interrupt { flow: "refunds".try_into().unwrap(), ..known.clone() },
        Interrupt { expires_at: at(62_000), ..known.clone() },
        Interrupt { received_at: at(1_001), ..known.clone() },
    ];
    for other in others {
        assert!(!other.is_whole(), "{other:?}");
    }
}

#[test]
fn no_delegated_and_no_late_vote_on_an_interrupt() {
    let (open, now) = (interrupt(asserted()), at(2_000));
    let roll = VoterRoll::of(vec![reviewer()], now);
    let delegated = Ballot { delegation: Some("d-1".try_into().unwrap()), ..ballot(open.digest) };
    assert_eq!(open.clone().vote(delegated, &reviewer(), &roll), Err(VoteRejected::Delegation));
    let Ok(Tally { record: counted, result: QuorumResult::Approved(approvals) }) =
        open.vote(ballot(interrupt(asserted()).digest), &reviewer(), &roll)
    else {
        panic!("not approved");
    };
    assert_eq!(approvals.len(), 1);
    let answer = StoredInterruptDecision {
        nonce: Jti::try_from("AAAAAAAAAAAAAAAAAAAAAA").unwrap(),
        expires_at: Some(at(600_000)),
        comment: None,
        token: "x".to_owned(),
    };
    let ended = counted.ended(InterruptDecision::Approved, now, answer.clone()).unwrap();
    assert!(matches!(ended.clone().ended(InterruptDecision::Expired, now, answer), Err(VoteRejected::Ended)));
    assert_eq!(ended.clone().vote(ballot(ended.digest), &reviewer(), &roll), Err(VoteRejected::Ended));
}

#[test]
fn an_answer_is_no_other_document_and_no_other_document_is_an_answer() {
    let mut byte = 0_u8;
    let mut random = |into: &mut [u8]| {
        into.iter_mut().for_each(|it| {
            byte = byte.wrapping_add(1);
            *it = byte;
        });
    };
    let keys = Keys::generate("urn:test:gateway", at(0), &mut random).unwrap();
    let key = keys.signing(KeyUse::Chain);
    let nonce = Jti::try_from("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    for decision in [
        InterruptDecision::Approved,
        InterruptDecision::Denied,
        InterruptDecision::Expired,
        InterruptDecision::Superseded,
    ] {
        let claims = interrupt(asserted()).claims("urn:test:gateway", &nonce, ending(decision));
        assert!(claims.is_whole(), "{decision:?}");
        let token = claims.sign(key);
        let read = jws::read::<InterruptAnswer>(&token, TokenType::InterruptAnswer).unwrap();
        assert_eq!(read.claims_unverified(), &claims);
        assert_eq!(jws::read::<Receipt>(&token, TokenType::Receipt).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Denial>(&token, TokenType::Denial).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Entry>(&token, TokenType::Entry).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Verification>(&token, TokenType::Verification).unwrap_err(), JwsError::Typ);
        for typ in [
            TokenType::Receipt,
            TokenType::Denial,
            TokenType::Entry,
            TokenType::Verification,
            TokenType::Episode,
            TokenType::Envelope,
        ] {
            let disguised = jws::sign(key, typ, &claims);
            assert_eq!(
                jws::read::<InterruptAnswer>(&disguised, TokenType::InterruptAnswer).unwrap_err(),
                JwsError::Typ
            );
            // The claims do not fit any other document either.
            let fits = match typ {
                TokenType::Receipt => jws::read::<Receipt>(&disguised, typ).is_ok(),
                TokenType::Denial => jws::read::<Denial>(&disguised, typ).is_ok(),
                TokenType::Entry => jws::read::<Entry>(&disguised, typ).is_ok(),
                TokenType::Verification => jws::read::<Verification>(&disguised, typ).is_ok(),
                TokenType::InterruptAnswer => true,
                TokenType::Episode => jws::read::<manifest::ManifestClaims>(&disguised, typ).is_ok(),
                TokenType::Envelope => jws::read::<EnvelopeClaims>(&disguised, typ).is_ok(),
            };
            assert!(!fits, "{typ:?}");
        }
    }
}

#[test]
fn answer_has_exactly_the_claims_of_its_decision() {
    let nonce = Jti::try_from("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let claims = |ending| interrupt(asserted()).claims("urn:test:gateway", &nonce, ending);
    for (decision, other) in [
        (InterruptDecision::Approved, InterruptDecision::Denied),
        (InterruptDecision::Denied, InterruptDecision::Expired),
        (InterruptDecision::Expired, InterruptDecision::Approved),
    ] {
        assert!(!claims(InterruptDecisionInput { decision, ..ending(other) }).is_whole(), "{decision:?} as {other:?}");
    }
    assert!(
        !claims(InterruptDecisionInput { expires_at: Some(at(0)), ..ending(InterruptDecision::Approved) }).is_whole(),
        "it ended before it began"
    );
    assert!(!InterruptAnswer { approved: true, ..claims(ending(InterruptDecision::Denied)) }.is_whole());
}
