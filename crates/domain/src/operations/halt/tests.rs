use std::collections::BTreeSet;

use super::*;
use crate::identity::account::{AccountCredential, PersonRole};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn halt(proposing: bool, verifying: bool) -> Halt {
    Halt { proposing, verifying, reason: "drill".to_owned() }
}

fn stop(name: &str, secs: i64) -> HaltRecord {
    HaltRecord { by: name.try_into().unwrap(), name: name.to_owned(), at: at(secs), reason: format!("{name} said so") }
}

fn person(name: &str) -> Account {
    Account {
        id: name.try_into().unwrap(),
        name: name.to_owned(),
        role: PersonRole::Admin,
        groups: BTreeSet::new(),
        sign_in: AccountCredential::Password { hash: String::new() },
        disabled: false,
        created_at: at(0),
        changed: None,
    }
}

fn wish(who: &Account, proposing: bool, verifying: bool) -> LiftRequest {
    LiftRequest {
        by: PrincipalId::from(&who.id),
        person: who.id.clone(),
        name: who.name.clone(),
        at: at(20),
        reason: "found it".to_owned(),
        proposing,
        verifying,
    }
}

fn early(account: &Account) -> LiftRequester<'_> {
    LiftRequester { account, since: at(0) }
}

#[test]
fn existing_halt_keeps_its_actor_and_quorum() {
    let first = ActiveHalts::after(None, &halt(true, false), &stop("ana", 1), LiftQuorum::Two).unwrap();
    assert_eq!((first.proposing.clone(), first.verifying.clone()), (Some(stop("ana", 1)), None));
    let both = ActiveHalts::after(Some(&first), &halt(true, true), &stop("ben", 2), LiftQuorum::One).unwrap();
    assert_eq!((both.proposing, both.verifying), (Some(stop("ana", 1)), Some(stop("ben", 2))));
    assert_eq!(both.lift_needs, LiftQuorum::Two, "configuring one while it stands changes nothing");
    assert_eq!(ActiveHalts::after(Some(&first), &halt(false, false), &stop("ben", 2), LiftQuorum::Two), None);
}

#[test]
fn halting_again_drops_the_request_to_lift() {
    let mut stops = ActiveHalts::after(None, &halt(true, true), &stop("ana", 1), LiftQuorum::Two).unwrap();
    stops.lifting = Some(wish(&person("ben"), false, false));
    let again = ActiveHalts::after(Some(&stops), &halt(true, true), &stop("eve", 3), LiftQuorum::Two).unwrap();
    assert_eq!(again.lifting, None);
}

#[test]
fn two_different_people_lift_the_same_thing() {
    let (ana, ben) = (person("ana"), person("ben"));
    let mut stops = ActiveHalts::after(None, &halt(true, true), &stop("eve", 10), LiftQuorum::Two).unwrap();
    let first = wish(&ana, false, false);
    let asked = lift(Some(&stops), first.clone(), early(&ana), None);
    assert_eq!(asked, Ok(LiftOutcome::Asked(first.clone())));
    stops.lifting = Some(first.clone());
    let by =
        |who: &Account, proposing: bool| lift(Some(&stops), wish(who, proposing, false), early(who), Some(early(&ana)));
    assert_eq!(by(&ana, false), Ok(LiftOutcome::Waiting), "one is not two");
    assert_eq!(by(&ben, false), Ok(LiftOutcome::Confirmed));
    assert!(matches!(by(&ben, true), Ok(LiftOutcome::Asked(_))), "another wish is not the same wish");
}

#[test]
fn disabled_or_new_account_cannot_lift_a_halt() {
    let (ana, ben) = (person("ana"), person("ben"));
    let gone = Account { disabled: true, ..person("gone") };
    let mut stops = ActiveHalts::after(None, &halt(true, true), &stop("eve", 10), LiftQuorum::Two).unwrap();
    let young = LiftRequester { account: &ben, since: at(10) };
    assert_eq!(lift(Some(&stops), wish(&ben, false, false), young, None), Err(LiftRejected::TooYoung));
    assert_eq!(lift(Some(&stops), wish(&gone, false, false), early(&gone), None), Err(LiftRejected::Disabled));
    stops.lifting = Some(wish(&ana, false, false));
    let disabled = Account { disabled: true, ..ana };
    for first in [None, Some(early(&disabled)), Some(LiftRequester { account: &disabled, since: at(11) })] {
        let answer = lift(Some(&stops), wish(&ben, false, false), early(&ben), first);
        assert!(matches!(answer, Ok(LiftOutcome::Asked(_))), "{answer:?}");
    }
}

#[test]
fn lifting_and_halting_are_distinguished() {
    let cases = [(false, false), (true, false), (false, true), (true, true)];
    for now in cases {
        for next in cases {
            let (before, after) = (halt(now.0, now.1), halt(next.0, next.1));
            assert_eq!(lifts(&before, &after), stops(&after, &before));
        }
    }
    assert!(lifts(&halt(true, false), &halt(false, true)) && stops(&halt(true, false), &halt(false, true)));
    assert!(!lifts(&halt(true, true), &halt(true, true)));
}
