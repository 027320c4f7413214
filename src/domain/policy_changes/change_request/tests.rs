use std::collections::BTreeSet;

use super::*;
use crate::domain::identity::account::{PersonRole, SignIn};
use crate::domain::reviews::{BrowserCheck, Ineligible, Proof, Ticked, Verdict};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn digest(text: &str) -> Digest {
    Digest::of(Tag::Policy, &[text.as_bytes()])
}

fn amendment(need: u32) -> Amendment {
    let change = Change {
        flow: "payments".try_into().unwrap(),
        policy: digest("new"),
        accepts: BTreeSet::new(),
        over: Over { policy: digest("old"), since: at(0) },
    };
    let groups = BTreeSet::from(["security".try_into().unwrap()]);
    let terms = Terms {
        proposer: "token-1".try_into().unwrap(),
        excluded: BTreeSet::from(["carol".to_owned()]),
        stage: Stage {
            groups,
            need,
            comment_required: false,
            passkey: Default::default(),
            confirm: Default::default(),
        },
        opened_at: at(1),
        expires_at: at(100),
    };
    Amendment::new("a-1".try_into().unwrap(), change, terms)
}

fn person(name: &str) -> Account {
    Account {
        id: format!("id-{name}").as_str().try_into().unwrap(),
        name: name.to_owned(),
        role: PersonRole::Reviewer,
        groups: BTreeSet::from(["security".try_into().unwrap()]),
        sign_in: SignIn::Password { hash: String::new() },
        disabled: false,
        created_at: at(0),
        changed: None,
    }
}

fn ballot(of: &Amendment, verdict: Verdict, nonce: &str) -> Ballot {
    Ballot {
        transition: of.digest,
        delegation: None,
        stage: 0,
        verdict,
        nonce: nonce.to_owned(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: Proof::default(),
        typed: None,
        outcome_unknown_accepted: Ticked::No,
        told: None,
    }
}

fn votes(of: Amendment, who: &Account, verdict: Verdict, people: &[Account]) -> Result<Outcome, VoteRefused> {
    let ballot = ballot(&of, verdict, &who.name);
    of.vote(ballot, who, &Roll::of(people.to_vec(), at(2)))
}

fn waiting(outcome: Result<Outcome, VoteRefused>) -> Amendment {
    match outcome {
        Ok(Outcome::Waiting(amendment)) => amendment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn distinct_people_activate_it() {
    let (ann, ben) = (person("ann"), person("ben"));
    let people = [ann.clone(), ben.clone()];
    let one = waiting(votes(amendment(2), &ann, Verdict::Approve, &people));
    assert_eq!(
        votes(one.clone(), &ann, Verdict::Approve, &people),
        Err(VoteRefused::NonceUsed),
        "the same page counts once"
    );
    let again = one.clone().vote(ballot(&one, Verdict::Approve, "fresh"), &ann, &Roll::of(people.to_vec(), at(3)));
    assert_eq!(again, Err(VoteRefused::Ineligible(Ineligible::Voted)));
    assert!(matches!(votes(one, &ben, Verdict::Approve, &people), Ok(Outcome::Approved(_))));
}

#[test]
fn who_may_not_approve_any_more_counts_no_more() {
    let (ann, ben) = (person("ann"), person("ben"));
    let one = waiting(votes(amendment(2), &ann, Verdict::Approve, &[ann.clone(), ben.clone()]));
    let people = [Account { disabled: true, ..ann }, ben.clone()];
    waiting(votes(one, &ben, Verdict::Approve, &people));
}

#[test]
fn one_denial_ends_it() {
    let ann = person("ann");
    let ended = votes(amendment(2), &ann, Verdict::Deny, std::slice::from_ref(&ann));
    let Ok(Outcome::Denied(ended)) = ended else { panic!("{ended:?}") };
    assert_eq!(ended.clone().ended(AmendmentState::Superseded { at: at(9) }), Err(VoteRefused::Ended));
    assert_eq!(votes(ended, &person("ben"), Verdict::Approve, &[person("ben")]), Err(VoteRefused::Ended));
}

#[test]
fn who_answers_for_its_proposer_does_not_decide() {
    let carol = person("carol");
    let refused = votes(amendment(1), &carol, Verdict::Approve, std::slice::from_ref(&carol));
    assert_eq!(refused, Err(VoteRefused::Ineligible(Ineligible::Author)));
}

#[test]
fn the_deadline_and_the_digest_count() {
    let (ann, open) = (person("ann"), amendment(1));
    let late = open.clone().vote(ballot(&open, Verdict::Approve, "n"), &ann, &Roll::of(vec![ann.clone()], at(100)));
    assert_eq!(late, Err(VoteRefused::Expired));
    let of_another = Ballot { transition: digest("other"), ..ballot(&open, Verdict::Approve, "n") };
    assert_eq!(open.vote(of_another, &ann, &Roll::of(vec![ann.clone()], at(2))), Err(VoteRefused::Digest));
}

#[test]
fn nobody_votes_on_a_policy_in_anothers_place() {
    let (ann, open) = (person("ann"), amendment(1));
    let delegation = Some("d-1".try_into().unwrap());
    let ballot = Ballot { delegation, ..ballot(&open, Verdict::Approve, "n") };
    assert_eq!(open.vote(ballot, &ann, &Roll::of(vec![ann.clone()], at(2))), Err(VoteRefused::Delegation));
}

#[test]
fn the_digest_binds_everything_that_is_asked() {
    let one = amendment(1);
    assert!(one.is_whole());
    let mut others = Vec::new();
    for change in [
        Change { flow: "other".try_into().unwrap(), ..one.change.clone() },
        Change { policy: digest("x"), ..one.change.clone() },
        Change { accepts: BTreeSet::from([digest("old")]), ..one.change.clone() },
        Change { over: Over { policy: digest("x"), ..one.change.over }, ..one.change.clone() },
        Change { over: Over { since: at(5), ..one.change.over }, ..one.change.clone() },
    ] {
        others.push(Amendment { change, ..one.clone() });
    }
    others.push(Amendment { id: "a-2".try_into().unwrap(), ..one.clone() });
    others.push(Amendment { proposer: "token-2".try_into().unwrap(), ..one.clone() });
    others.push(Amendment { opened_at: at(2), ..one.clone() });
    assert!(others.iter().all(|it| !it.is_whole()));
}
