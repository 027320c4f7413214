use serde_json::json;

use super::*;
use crate::domain::chain::entry::Entry;
use crate::domain::chain::jws::{self, JwsError, Typ};
use crate::domain::chain::receipt::{Denial, Receipt, Verification};
use crate::domain::context::EnvelopeClaims;
use crate::domain::episode::manifest;
use crate::domain::identity::account::PersonRole;
use crate::domain::identity::account::SignIn;
use crate::domain::keys::{KeyUse, Keys};
use crate::domain::primitives::id::{AccountId, Jti};
use crate::domain::reviews::{BrowserCheck, Confirming, PasskeyNeed, Proof, Ticked};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn asserted() -> Asserted {
    serde_json::from_value(json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "changed_keys": ["a"],
        "redacted_diff": {"a": 1}, "interrupt_id": "i-1", "attempt": 1,
    }))
    .unwrap()
}

fn interrupt(asserted: Asserted) -> Interrupt {
    let stage = Stage {
        groups: BTreeSet::from(["reviewers".try_into().unwrap()]),
        need: 1,
        comment_required: false,
        passkey: PasskeyNeed::Nothing {},
        confirm: Confirming::Pressing,
    };
    let terms = Terms {
        source: Source { token: "t-1".try_into().unwrap(), name: "host".to_owned() },
        flow: "payments".try_into().unwrap(),
        policy: Digest::of(Tag::Policy, &[b"p"]),
        excluded: BTreeSet::from(["platform".to_owned()]),
        asking: Asking { stages: vec![stage], denials_needed: 1 },
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
        sign_in: SignIn::Password { hash: "x".to_owned() },
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
        verdict: Verdict::Approve,
        nonce: "n".to_owned(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: Proof::Session {},
        typed: None,
        outcome_unknown_accepted: Ticked::No,
        told: None,
    }
}

fn ending(decision: Decision) -> Ending {
    let expires_at = (decision == Decision::Approved).then(|| at(600_000));
    let approval = Approval {
        at: at(2_000),
        evidence: None,
        absent: None,
        method: crate::domain::chain::receipt::Method::Password,
        reviewer: AccountId::try_from("a-1").unwrap(),
        stage: 0,
    };
    let approvals = if decision == Decision::Approved { vec![approval] } else { Vec::new() };
    let refusal = Refusal { at: at(2_000), absent: None, reviewer: "a-1".try_into().unwrap(), stage: 0 };
    let refusals = if decision == Decision::Denied { vec![refusal] } else { Vec::new() };
    Ending { decision, at: at(2_000), expires_at, approvals, refusals }
}

#[test]
fn the_digest_is_over_everything_that_people_are_shown() {
    let known = interrupt(asserted());
    assert!(known.is_whole());
    let others = [
        Interrupt { asserted: Asserted { redacted_diff: json!({"a": 2}), ..asserted() }, ..known.clone() },
        Interrupt { asserted: Asserted { title: Some("t".to_owned()), ..asserted() }, ..known.clone() },
        Interrupt { source: Source { name: "other".to_owned(), ..known.source.clone() }, ..known.clone() },
        Interrupt { flow: "refunds".try_into().unwrap(), ..known.clone() },
        Interrupt { expires_at: at(62_000), ..known.clone() },
        Interrupt { received_at: at(1_001), ..known.clone() },
    ];
    for other in others {
        assert!(!other.is_whole(), "{other:?}");
    }
}

#[test]
fn nobody_votes_in_anothers_place_nor_after_the_end() {
    let (open, now) = (interrupt(asserted()), at(2_000));
    let roll = Roll::of(vec![reviewer()], now);
    let delegated = Ballot { delegation: Some("d-1".try_into().unwrap()), ..ballot(open.digest) };
    assert_eq!(open.clone().vote(delegated, &reviewer(), &roll), Err(VoteRefused::Delegation));
    let Ok(Tally::Approved(counted, approvals)) = open.vote(ballot(interrupt(asserted()).digest), &reviewer(), &roll)
    else {
        panic!("not approved");
    };
    assert_eq!(approvals.len(), 1);
    let answer = Answer {
        nonce: Jti::try_from("AAAAAAAAAAAAAAAAAAAAAA").unwrap(),
        expires_at: Some(at(600_000)),
        comment: None,
        token: "x".to_owned(),
    };
    let ended = counted.ended(Decision::Approved, now, answer.clone()).unwrap();
    assert!(matches!(ended.clone().ended(Decision::Expired, now, answer), Err(VoteRefused::Ended)));
    assert_eq!(ended.clone().vote(ballot(ended.digest), &reviewer(), &roll), Err(VoteRefused::Ended));
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
    for decision in [Decision::Approved, Decision::Denied, Decision::Expired, Decision::Superseded] {
        let claims = interrupt(asserted()).claims("urn:test:gateway", &nonce, ending(decision));
        assert!(claims.is_whole(), "{decision:?}");
        let token = claims.sign(key);
        let read = jws::read::<InterruptAnswer>(&token, Typ::InterruptAnswer).unwrap();
        assert_eq!(read.claims_unverified(), &claims);
        assert_eq!(jws::read::<Receipt>(&token, Typ::Receipt).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Denial>(&token, Typ::Denial).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Entry>(&token, Typ::Entry).unwrap_err(), JwsError::Typ);
        assert_eq!(jws::read::<Verification>(&token, Typ::Verification).unwrap_err(), JwsError::Typ);
        for typ in [Typ::Receipt, Typ::Denial, Typ::Entry, Typ::Verification, Typ::Episode, Typ::Envelope] {
            let disguised = jws::sign(key, typ, &claims);
            assert_eq!(jws::read::<InterruptAnswer>(&disguised, Typ::InterruptAnswer).unwrap_err(), JwsError::Typ);
            // Nor are its claims those of any other document.
            let fits = match typ {
                Typ::Receipt => jws::read::<Receipt>(&disguised, typ).is_ok(),
                Typ::Denial => jws::read::<Denial>(&disguised, typ).is_ok(),
                Typ::Entry => jws::read::<Entry>(&disguised, typ).is_ok(),
                Typ::Verification => jws::read::<Verification>(&disguised, typ).is_ok(),
                Typ::InterruptAnswer => true,
                Typ::Episode => jws::read::<manifest::Claims>(&disguised, typ).is_ok(),
                Typ::Envelope => jws::read::<EnvelopeClaims>(&disguised, typ).is_ok(),
            };
            assert!(!fits, "{typ:?}");
        }
    }
}

#[test]
fn an_answer_says_all_that_its_decision_needs_and_nothing_of_another() {
    let nonce = Jti::try_from("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let claims = |ending| interrupt(asserted()).claims("urn:test:gateway", &nonce, ending);
    for (decision, other) in [
        (Decision::Approved, Decision::Denied),
        (Decision::Denied, Decision::Expired),
        (Decision::Expired, Decision::Approved),
    ] {
        assert!(!claims(Ending { decision, ..ending(other) }).is_whole(), "{decision:?} as {other:?}");
    }
    assert!(
        !claims(Ending { expires_at: Some(at(0)), ..ending(Decision::Approved) }).is_whole(),
        "it ended before it began"
    );
    assert!(!InterruptAnswer { approved: true, ..claims(ending(Decision::Denied)) }.is_whole());
}
