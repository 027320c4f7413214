//! How long states stay, and when values are erased.

use crate::policy::{Policy, PolicyCode, PolicySource};
use crate::primitives::time::Timestamp;
use crate::threads::archive::RetentionPolicy;

fn read(text: &str) -> Result<Option<RetentionPolicy>, (PolicyCode, u32)> {
    let text = format!("flow = \"f\"\n{text}\n");
    let policy = Policy::compile(&PolicySource { text, ..PolicySource::default() });
    policy.map(|it| it.retain().copied()).map_err(|error| (error.code, error.line))
}

#[test]
fn nothing_goes_unless_the_policy_says_for_how_long_it_stays() {
    assert_eq!(read(""), Ok(None));
    let all = RetentionPolicy { versions: Some(1000), days: Some(90), erase_after_days: Some(365) };
    assert_eq!(read("[retain]\nversions = 1000\ndays = 90\nerase_after_days = 365"), Ok(Some(all)));
    let none = RetentionPolicy { versions: None, days: None, erase_after_days: None };
    assert_eq!(read("[retain]\nversions = 1"), Ok(Some(RetentionPolicy { versions: Some(1), ..none })));
    assert_eq!(read("[retain]\ndays = 36525"), Ok(Some(RetentionPolicy { days: Some(36_525), ..none })));
}

#[test]
fn what_is_not_a_bound_on_time_or_versions_is_refused() {
    for (text, code) in [
        ("[retain]", PolicyCode::Missing),
        ("[retain]\nerase_after_days = 10", PolicyCode::Missing),
        ("[retain]\nversions = 0", PolicyCode::BadValue),
        ("[retain]\nversions = -1", PolicyCode::BadValue),
        ("[retain]\nversions = 1000000001", PolicyCode::BadValue),
        ("[retain]\ndays = 36526", PolicyCode::BadValue),
        ("[retain]\ndays = 1.5", PolicyCode::WrongType),
        ("[retain]\ndays = \"90\"", PolicyCode::WrongType),
        ("[retain]\ndays = 90\nerase_after_days = 89", PolicyCode::Contradiction),
        ("[retain]\ndays = 90\nforever = true", PolicyCode::UnknownKey),
        ("retain = 5", PolicyCode::WrongType),
        ("[nodes.n]\nretain = { days = 1 }", PolicyCode::UnknownKey),
        ("[nodes.n.retain]\ndays = 1", PolicyCode::UnknownKey),
    ] {
        assert_eq!(read(text).unwrap_err().0, code, "{text}");
    }
}

#[test]
fn a_version_stays_while_either_bound_says_so() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let (none, at) = (RetentionPolicy { versions: None, days: None, erase_after_days: None }, Timestamp::from_millis);
    let both = RetentionPolicy { versions: Some(10), days: Some(2), ..none };
    for (retain, version, age, goes) in [
        (RetentionPolicy { versions: Some(10), ..none }, 90, 0, true),
        (RetentionPolicy { versions: Some(10), ..none }, 91, 1000 * DAY, false),
        (RetentionPolicy { days: Some(2), ..none }, 99, 2 * DAY, true),
        (RetentionPolicy { days: Some(2), ..none }, 0, 2 * DAY - 1, false),
        (both, 90, 2 * DAY, true),
        (both, 90, 2 * DAY - 1, false),
        (both, 91, 2 * DAY, false),
    ] {
        assert_eq!(retain.lets_go(version, at(5), 100, at(5 + age)), goes, "{retain:?} {version} {age}");
        assert!(!retain.may_erase(at(0), at(i64::MAX)), "nothing is erased unless it says so");
    }
    let erased = RetentionPolicy { erase_after_days: Some(3), ..both };
    assert!(erased.may_erase(at(0), at(3 * DAY)) && !erased.may_erase(at(0), at(3 * DAY - 1)));
    assert!(!erased.may_erase(at(DAY), at(0)), "a clock that goes back erases nothing");
}
