use std::collections::BTreeSet;

use super::*;
use crate::domain::identity::account::{PersonRole, SignIn};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn halt(proposing: bool, verifying: bool) -> Halt {
    Halt { proposing, verifying, reason: "drill".to_owned() }
}

fn stop(name: &str, secs: i64) -> Stop {
    Stop { by: name.try_into().unwrap(), name: name.to_owned(), at: at(secs), reason: format!("{name} said so") }
}

fn person(name: &str) -> Account {
    Account {
        id: name.try_into().unwrap(),
        name: name.to_owned(),
        role: PersonRole::Admin,
        groups: BTreeSet::new(),
        sign_in: SignIn::Password { hash: String::new() },
        disabled: false,
        created_at: at(0),
        changed: None,
    }
}

fn wish(who: &Account, proposing: bool, verifying: bool) -> Lifting {
    Lifting {
        by: PrincipalId::from(&who.id),
        person: who.id.clone(),
        name: who.name.clone(),
        at: at(20),
        reason: "found it".to_owned(),
        proposing,
        verifying,
    }
}

fn early(account: &Account) -> Lifter<'_> {
    Lifter { account, since: at(0) }
}

#[test]
fn what_stood_already_keeps_who_stopped_it_and_how_many_lift_it() {
    let first = Stops::after(None, &halt(true, false), &stop("ana", 1), LiftNeeds::Two).unwrap();
    assert_eq!((first.proposing.clone(), first.verifying.clone()), (Some(stop("ana", 1)), None));
    let both = Stops::after(Some(&first), &halt(true, true), &stop("ben", 2), LiftNeeds::One).unwrap();
    assert_eq!((both.proposing, both.verifying), (Some(stop("ana", 1)), Some(stop("ben", 2))));
    assert_eq!(both.lift_needs, LiftNeeds::Two, "configuring one while it stands changes nothing");
    assert_eq!(Stops::after(Some(&first), &halt(false, false), &stop("ben", 2), LiftNeeds::Two), None);
}

#[test]
fn stopping_again_takes_back_what_was_asked_for() {
    let mut stops = Stops::after(None, &halt(true, true), &stop("ana", 1), LiftNeeds::Two).unwrap();
    stops.lifting = Some(wish(&person("ben"), false, false));
    let again = Stops::after(Some(&stops), &halt(true, true), &stop("eve", 3), LiftNeeds::Two).unwrap();
    assert_eq!(again.lifting, None);
}

#[test]
fn two_different_people_lift_the_same_thing() {
    let (ana, ben) = (person("ana"), person("ben"));
    let mut stops = Stops::after(None, &halt(true, true), &stop("eve", 10), LiftNeeds::Two).unwrap();
    let first = wish(&ana, false, false);
    let asked = lift(Some(&stops), first.clone(), early(&ana), None);
    assert_eq!(asked, Ok(Lift::Asked(first.clone())));
    stops.lifting = Some(first.clone());
    let by =
        |who: &Account, proposing: bool| lift(Some(&stops), wish(who, proposing, false), early(who), Some(early(&ana)));
    assert_eq!(by(&ana, false), Ok(Lift::Waiting), "one is not two");
    assert_eq!(by(&ben, false), Ok(Lift::Confirmed));
    assert!(matches!(by(&ben, true), Ok(Lift::Asked(_))), "another wish is not the same wish");
}

#[test]
fn who_is_disabled_or_younger_than_the_halt_is_no_second_person_and_no_first() {
    let (ana, ben) = (person("ana"), person("ben"));
    let gone = Account { disabled: true, ..person("gone") };
    let mut stops = Stops::after(None, &halt(true, true), &stop("eve", 10), LiftNeeds::Two).unwrap();
    let young = Lifter { account: &ben, since: at(10) };
    assert_eq!(lift(Some(&stops), wish(&ben, false, false), young, None), Err(LiftRefused::TooYoung));
    assert_eq!(lift(Some(&stops), wish(&gone, false, false), early(&gone), None), Err(LiftRefused::Disabled));
    stops.lifting = Some(wish(&ana, false, false));
    let disabled = Account { disabled: true, ..ana };
    for first in [None, Some(early(&disabled)), Some(Lifter { account: &disabled, since: at(11) })] {
        let answer = lift(Some(&stops), wish(&ben, false, false), early(&ben), first);
        assert!(matches!(answer, Ok(Lift::Asked(_))), "{answer:?}");
    }
}

#[test]
fn what_is_stopped_and_what_goes_on_is_told_apart() {
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
