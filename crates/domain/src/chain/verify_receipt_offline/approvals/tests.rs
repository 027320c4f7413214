//! Uses the vote of the published vectors as an approval of a receipt.

use serde_json::{Value, json};

use super::*;

const VOTES: &str = include_str!("../../../../../../tests/vectors/votes.json");

fn vectors() -> Value {
    serde_json::from_str(VOTES).unwrap()
}

fn vote(list: &str, name: &str) -> VoteEvidence {
    let all = vectors();
    let case = all[list].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
    serde_json::from_value(case["evidence"].clone()).unwrap()
}

fn pinned() -> PinnedPasskey {
    serde_json::from_value(vectors()["passkey"].clone()).unwrap()
}

/// Returns a moment one minute before the signature expires.
fn counted(vote: &VoteEvidence) -> Timestamp {
    Timestamp::from_millis(vote.statement.expires_at.millis() - 60_000)
}

/// Builds a receipt with that vote as its only approval.
fn receipt(vote: &VoteEvidence, approval: Value) -> Receipt {
    let said = &vote.statement;
    let mut whole = json!({
        "reviewer": said.reviewer, "stage": said.stage, "at": counted(vote), "method": "passkey",
        "evidence": vote.digest(),
    });
    whole.as_object_mut().unwrap().extend(approval.as_object().unwrap().clone());
    whole.as_object_mut().unwrap().retain(|_, it| !it.is_null());
    let hash = said.transition;
    serde_json::from_value(json!({
        "iss": said.iss, "sub": "t-1", "aud": ["database_writer"], "jti": "AAECAwQFBgcICQoLDA0ODw", "iat": 1, "nbf": 1,
        "exp": 2, "flow": "payments", "policy": hash, "transition": hash, "parent": hash, "version": 1, "to": hash,
        "approvals": [whole],
    }))
    .unwrap()
}

fn code(outcome: CheckOutcome) -> Option<DenialCode> {
    match outcome {
        CheckOutcome::Failed { code, .. } => Some(code),
        _ => None,
    }
}

#[test]
fn an_approval_that_a_pinned_passkey_signed_passes() {
    let vote = vote("cases", "an approval");
    let votes = [vote.clone()];
    assert_eq!(approvals(&receipt(&vote, json!({})), &votes, Some(&[pinned()])), CheckOutcome::Passed);
}

#[test]
fn missing_evidence_is_not_reported_as_passed() {
    let vote = vote("cases", "an approval");
    let (votes, receipt_) = ([vote.clone()], receipt(&vote, json!({})));
    assert!(matches!(approvals(&receipt_, &votes, None), CheckOutcome::NotChecked { .. }));
    assert!(matches!(approvals(&receipt_, &[], Some(&[pinned()])), CheckOutcome::CouldNotTell { .. }));
    let by_password = receipt(&vote, json!({"method": "password", "evidence": null}));
    assert!(matches!(approvals(&by_password, &votes, Some(&[pinned()])), CheckOutcome::NotChecked { .. }));
}

#[test]
fn approval_with_any_wrong_claim_is_refused() {
    let good = vote("cases", "an approval");
    let (votes, pins) = ([good.clone()], [pinned()]);
    let with = |approval: Value| code(approvals(&receipt(&good, approval), &votes, Some(&pins)));
    let other = DenialCode::DigestMismatch;
    assert_eq!(with(json!({"evidence": null})), Some(DenialCode::SignatureInvalid), "no evidence is named");
    assert_eq!(with(json!({"stage": 1})), Some(other));
    assert_eq!(with(json!({"reviewer": "somebody-else"})), Some(other));
    let late = json!({"at": good.statement.expires_at});
    assert_eq!(with(late), Some(DenialCode::Expired));
    let early = Timestamp::from_millis(good.statement.expires_at.millis() - 300_001);
    assert_eq!(with(json!({"at": early})), Some(DenialCode::Expired), "signed for longer than five minutes");
    for (name, value) in [("iss", json!("urn:other")), ("transition", json!(good.digest()))] {
        let mut moved = serde_json::to_value(receipt(&good, json!({}))).unwrap();
        moved[name] = value;
        let moved = serde_json::from_value(moved).unwrap();
        assert_eq!(code(approvals(&moved, &votes, Some(&pins))), Some(other), "{name}");
    }
    let refused = vote("cases", "a refusal with a comment");
    let as_approval = approvals(&receipt(&refused, json!({})), std::slice::from_ref(&refused), Some(&pins));
    assert_eq!(code(as_approval), Some(other), "a signed refusal is no approval");
    let spoiled = vote("spoiled", "another site");
    let elsewhere = approvals(&receipt(&spoiled, json!({})), std::slice::from_ref(&spoiled), Some(&pins));
    assert_eq!(code(elsewhere), Some(DenialCode::SignatureInvalid));
}

#[test]
fn only_a_pinned_passkey_of_the_reviewer_is_accepted_and_only_while_it_was_valid() {
    let vote = vote("cases", "an approval");
    let votes = [vote.clone()];
    let receipt = receipt(&vote, json!({}));
    let under = |pins: &[PinnedPasskey]| code(approvals(&receipt, &votes, Some(pins)));
    assert_eq!(under(&[]), Some(DenialCode::UnknownKey));
    let at = counted(&vote);
    let later = Timestamp::from_millis(at.millis() + 1);
    assert_eq!(
        under(&[PinnedPasskey { added_at: later, ..pinned() }]),
        Some(DenialCode::UnknownKey),
        "added afterwards"
    );
    assert_eq!(
        under(&[PinnedPasskey { removed_at: Some(at), ..pinned() }]),
        Some(DenialCode::UnknownKey),
        "removed before"
    );
    assert_eq!(under(&[PinnedPasskey { removed_at: Some(later), ..pinned() }]), None, "removed since");
    let theirs = PinnedPasskey { account: "somebody-else".try_into().unwrap(), ..pinned() };
    assert_eq!(under(&[theirs]), Some(DenialCode::SignatureInvalid), "somebody else's");
    let elsewhere = PinnedPasskey { origin: "https://evil.example".to_owned(), ..pinned() };
    assert_eq!(under(&[elsewhere]), Some(DenialCode::SignatureInvalid), "of another site");
}
