use std::collections::BTreeSet;

use super::*;
use crate::identity::account::{AccountCredential, PersonRole};
use crate::reviews::{BrowserCheck, CheckboxState, Ineligible, VoteVerdict, VoterProof};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn digest(text: &str) -> Digest {
    Digest::of(Tag::Policy, &[text.as_bytes()])
}

fn amendment(need: u32) -> PolicyChangeRequest {
    let change = PolicyChange {
        flow: "payments".try_into().unwrap(),
        policy: digest("new"),
        accepts: BTreeSet::new(),
        over: ReplacedPolicy { policy: digest("old"), since: at(0) },
    };
    let groups = BTreeSet::from(["security".try_into().unwrap()]);
    let terms = PolicyChangeTerms {
        proposer: "token-1".try_into().unwrap(),
        excluded: BTreeSet::from(["carol".to_owned()]),
        stage: ApprovalStage {
            groups,
            need,
            comment_required: false,
            passkey: Default::default(),
            confirm: Default::default(),
        },
        opened_at: at(1),
        expires_at: at(100),
    };
    PolicyChangeRequest::new("a-1".try_into().unwrap(), change, terms)
}

fn person(name: &str) -> Account {
    Account {
        id: format!("id-{name}").as_str().try_into().unwrap(),
        name: name.to_owned(),
        role: PersonRole::Reviewer,
        groups: BTreeSet::from(["security".try_into().unwrap()]),
        sign_in: AccountCredential::Password { hash: String::new() },
        disabled: false,
        created_at: at(0),
        changed: None,
    }
}

fn ballot(of: &PolicyChangeRequest, verdict: VoteVerdict, nonce: &str) -> Ballot {
    Ballot {
        transition: of.digest,
        delegation: None,
        stage: 0,
        verdict,
        nonce: nonce.to_owned(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::default(),
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}

fn votes(
    of: PolicyChangeRequest,
    who: &Account,
    verdict: VoteVerdict,
    people: &[Account],
) -> Result<Tally<PolicyChangeRequest>, VoteRejected> {
    let ballot = ballot(&of, verdict, &who.name);
    of.vote(ballot, who, &VoterRoll::of(people.to_vec(), at(2)))
}

fn waiting(outcome: Result<Tally<PolicyChangeRequest>, VoteRejected>) -> PolicyChangeRequest {
    match outcome {
        Ok(Tally { record, result: QuorumResult::Waiting }) => record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn distinct_people_activate_it() {
    let (ann, ben) = (person("ann"), person("ben"));
    let people = [ann.clone(), ben.clone()];
    let one = waiting(votes(amendment(2), &ann, VoteVerdict::Approve, &people));
    assert_eq!(
        votes(one.clone(), &ann, VoteVerdict::Approve, &people),
        Err(VoteRejected::NonceUsed),
        "the same page counts once"
    );
    let again =
        one.clone().vote(ballot(&one, VoteVerdict::Approve, "fresh"), &ann, &VoterRoll::of(people.to_vec(), at(3)));
    assert_eq!(again, Err(VoteRejected::Ineligible(Ineligible::Voted)));
    assert!(matches!(
        votes(one, &ben, VoteVerdict::Approve, &people),
        Ok(Tally { result: QuorumResult::Approved(_), .. })
    ));
}

#[test]
fn who_may_not_approve_any_more_counts_no_more() {
    let (ann, ben) = (person("ann"), person("ben"));
    let one = waiting(votes(amendment(2), &ann, VoteVerdict::Approve, &[ann.clone(), ben.clone()]));
    let people = [Account { disabled: true, ..ann }, ben.clone()];
    waiting(votes(one, &ben, VoteVerdict::Approve, &people));
}

#[test]
fn one_denial_ends_it() {
    let ann = person("ann");
    let ended = votes(amendment(2), &ann, VoteVerdict::Deny, std::slice::from_ref(&ann));
    let Ok(Tally { record: ended, result: QuorumResult::Denied(_) }) = ended else { panic!("{ended:?}") };
    assert_eq!(ended.clone().ended(PolicyChangeState::Superseded { at: at(9) }), Err(VoteRejected::Ended));
    assert_eq!(votes(ended, &person("ben"), VoteVerdict::Approve, &[person("ben")]), Err(VoteRejected::Ended));
}

#[test]
fn who_answers_for_its_proposer_does_not_decide() {
    let carol = person("carol");
    let refused = votes(amendment(1), &carol, VoteVerdict::Approve, std::slice::from_ref(&carol));
    assert_eq!(refused, Err(VoteRejected::Ineligible(Ineligible::Author)));
}

#[test]
fn the_deadline_and_the_digest_count() {
    let (ann, open) = (person("ann"), amendment(1));
    let late =
        open.clone().vote(ballot(&open, VoteVerdict::Approve, "n"), &ann, &VoterRoll::of(vec![ann.clone()], at(100)));
    assert_eq!(late, Err(VoteRejected::Expired));
    let of_another = Ballot { transition: digest("other"), ..ballot(&open, VoteVerdict::Approve, "n") };
    assert_eq!(open.vote(of_another, &ann, &VoterRoll::of(vec![ann.clone()], at(2))), Err(VoteRejected::Digest));
}

#[test]
fn nobody_votes_on_a_policy_in_anothers_place() {
    let (ann, open) = (person("ann"), amendment(1));
    let delegation = Some("d-1".try_into().unwrap());
    let ballot = Ballot { delegation, ..ballot(&open, VoteVerdict::Approve, "n") };
    assert_eq!(open.vote(ballot, &ann, &VoterRoll::of(vec![ann.clone()], at(2))), Err(VoteRejected::Delegation));
}

#[test]
fn the_digest_binds_everything_that_is_asked() {
    let one = amendment(1);
    assert!(one.is_whole());
    let mut others = Vec::new();
    for change in [
        PolicyChange { flow: "other".try_into().unwrap(), ..one.change.clone() },
        PolicyChange { policy: digest("x"), ..one.change.clone() },
        PolicyChange { accepts: BTreeSet::from([digest("old")]), ..one.change.clone() },
        PolicyChange { over: ReplacedPolicy { policy: digest("x"), ..one.change.over }, ..one.change.clone() },
        PolicyChange { over: ReplacedPolicy { since: at(5), ..one.change.over }, ..one.change.clone() },
    ] {
        others.push(PolicyChangeRequest { change, ..one.clone() });
    }
    others.push(PolicyChangeRequest { id: "a-2".try_into().unwrap(), ..one.clone() });
    others.push(PolicyChangeRequest { proposer: "token-2".try_into().unwrap(), ..one.clone() });
    others.push(PolicyChangeRequest { opened_at: at(2), ..one.clone() });
    assert!(others.iter().all(|it| !it.is_whole()));
}
