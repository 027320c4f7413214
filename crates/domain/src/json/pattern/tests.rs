use proptest::prelude::*;
use serde_json::json;

use super::{Pattern, PatternError};
use crate::json::pointer::Pointer;

fn pattern(text: &str) -> Pattern {
    Pattern::try_from(text).unwrap()
}

fn pointer(text: &str) -> Pointer {
    Pointer::try_from(text).unwrap()
}

#[test]
fn a_pattern_covers_what_it_names_and_everything_below() {
    for (it, covered) in [
        ("a", "/a"),
        ("a", "/a/b/0"),
        ("a.b", "/a/b"),
        ("$.a.b", "/a/b/c"),
        ("a.*", "/a/b"),
        ("a.*", "/a/0/c"),
        ("a.*.c", "/a/0/c"),
        ("*", "/x"),
        ("*.*", "/x/y"),
        ("$", ""),
        ("$", "/x"),
        ("items.0", "/items/0/price"),
        ("a.~", "/a/~0"),
        ("a.x/y", "/a/x~1y"),
    ] {
        assert!(pattern(it).covers(&pointer(covered)) && pattern(it).touches(&pointer(covered)), "{it} {covered}");
    }
}

#[test]
fn a_pattern_touches_but_does_not_cover_what_is_above_it() {
    for (it, above) in [("a", ""), ("a.b", "/a"), ("a.*", "/a"), ("*", ""), ("a.*.c", "/a/0"), ("a.*.c", "/a")] {
        assert!(!pattern(it).covers(&pointer(above)) && pattern(it).touches(&pointer(above)), "{it} {above}");
    }
}

#[test]
fn a_pattern_has_nothing_to_do_with_other_places() {
    for (it, other) in [
        ("a", "/ab"),
        ("ab", "/a"),
        ("a.b", "/a/c"),
        ("a.b", "/b/a"),
        ("a.*.c", "/a/0/d"),
        ("a", "/A"),
        ("a.b", "/a.b"),
    ] {
        assert!(!pattern(it).covers(&pointer(other)) && !pattern(it).touches(&pointer(other)), "{it} {other}");
    }
}

#[test]
fn a_slip_in_a_pattern_is_refused_rather_than_protecting_nothing() {
    for (text, error) in [
        ("", PatternError::Empty),
        ("$.", PatternError::EmptySegment),
        ("a.", PatternError::EmptySegment),
        (".a", PatternError::EmptySegment),
        ("a..b", PatternError::EmptySegment),
        ("/a/b", PatternError::Pointer),
        ("a*", PatternError::PartialStar),
        ("a.**", PatternError::PartialStar),
        ("$a", PatternError::Dollar),
        ("$$.a", PatternError::Dollar),
        ("a.$.b", PatternError::Dollar),
        ("a[0]", PatternError::Bracket),
        ("  ", PatternError::Blank),
        ("a. .b", PatternError::Blank),
        ("$.a[*].b", PatternError::PartialStar),
    ] {
        assert_eq!(Pattern::try_from(text), Err(error), "{text}");
    }
}

#[test]
fn a_pattern_is_shown_as_it_was_written() {
    for text in ["a.b", "$.a.b", "a.*", "$"] {
        assert_eq!(pattern(text).to_string(), text);
        assert_eq!(serde_json::to_value(pattern(text)).unwrap(), json!(text));
        assert_eq!(serde_json::from_value::<Pattern>(json!(text)).unwrap(), pattern(text));
    }
}

#[test]
fn a_pattern_without_a_star_is_a_pointer() {
    assert_eq!(pattern("$.a.x/y").pointer(), Some(pointer("/a/x~1y")));
    assert_eq!(pattern("$").pointer(), Some(Pointer::root()));
    assert_eq!(pattern("a.*").pointer(), None);
}

proptest! {
    #[test]
    fn without_stars_a_pattern_is_as_its_pointer(it in "[ab](\\.[ab]){0,3}", other in "(/[ab]){0,4}") {
        let (it, other) = (pattern(&it), pointer(&other));
        let same = it.pointer().unwrap();
        prop_assert_eq!(it.covers(&other), same.covers(&other));
        prop_assert_eq!(it.touches(&other), same.touches(&other));
    }
}
