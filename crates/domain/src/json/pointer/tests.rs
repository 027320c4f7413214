use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Pointer, PointerError, token_len};
use crate::json::diff::leaves;
use crate::json::samples::any_value;

fn pointer(text: &str) -> Pointer {
    Pointer::try_from(text).unwrap()
}

#[test]
fn places_are_found_as_in_rfc_6901() {
    let value = json!({"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8});
    for (text, found) in [
        ("", value.clone()),
        ("/foo", json!(["bar", "baz"])),
        ("/foo/0", json!("bar")),
        ("/", json!(0)),
        ("/a~1b", json!(1)),
        ("/c%d", json!(2)),
        ("/e^f", json!(3)),
        ("/g|h", json!(4)),
        ("/i\\j", json!(5)),
        ("/k\"l", json!(6)),
        ("/ ", json!(7)),
        ("/m~0n", json!(8)),
    ] {
        assert_eq!(pointer(text).resolve(&value), Some(&found), "{text}");
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let value = json!({"a": [1, 2], "b": {"0": 1}, "c": 1});
    for text in [
        "/x",
        "/a/2",
        "/a/-",
        "/a/01",
        "/a/+1",
        "/a/-1",
        "/a/1e0",
        "/a/",
        "/a/ 1",
        "/a/99999999999999999999999",
        "/c/0",
        "/c/",
        "/b/00",
    ] {
        assert_eq!(pointer(text).resolve(&value), None, "{text}");
    }
}

#[test]
fn only_pointers_are_read_as_pointers() {
    for text in ["a", "a/b", "#/a", " /a", "$.a"] {
        assert_eq!(Pointer::try_from(text), Err(PointerError::NoSlash), "{text}");
    }
    for text in ["/~", "/~2", "/a~/b", "/~~0", "/a/~"] {
        assert_eq!(Pointer::try_from(text), Err(PointerError::Escape), "{text}");
    }
    assert!(serde_json::from_value::<Pointer>(json!("a")).is_err());
    assert_eq!(serde_json::from_value::<Pointer>(json!("/a")).unwrap(), pointer("/a"));
    assert_eq!(serde_json::to_value(pointer("/a~1")).unwrap(), json!("/a~1"));
}

#[test]
fn escapes_are_undone_in_the_right_order() {
    assert_eq!(pointer("/~01").tokens().collect::<Vec<_>>(), ["~1"]);
    assert_eq!(Pointer::root().child("~1").as_str(), "/~01");
    assert_eq!(Pointer::root().child("/~").index(3).as_str(), "/~1~0/3");
}

#[test]
fn a_place_covers_itself_and_what_is_below_it_by_whole_tokens() {
    for (above, below) in [("", ""), ("", "/a"), ("/a", "/a"), ("/a", "/a/b/c"), ("/a", "/a/"), ("/", "//x")] {
        assert!(pointer(above).covers(&pointer(below)), "{above} {below}");
        assert!(pointer(below).touches(&pointer(above)), "{above} {below}");
    }
    for (one, other) in [("/a", "/ab"), ("/a", "/b"), ("/a/b", "/a/c"), ("/a", "/"), ("/a~0", "/a~1")] {
        assert!(!pointer(one).covers(&pointer(other)) && !pointer(one).touches(&pointer(other)), "{one} {other}");
    }
    assert!(!pointer("/a/b").covers(&pointer("/a")));
}

#[test]
fn the_parent_is_one_token_shorter() {
    assert_eq!(pointer("/a/b~1c").parent(), Some(pointer("/a")));
    assert_eq!(pointer("/a").parent(), Some(Pointer::root()));
    assert_eq!(pointer("/").parent(), Some(Pointer::root()));
    assert_eq!(Pointer::root().parent(), None);
}

proptest! {
    #[test]
    fn tokens_make_the_pointer_they_came_from(tokens in prop::collection::vec(any::<String>(), 0..5)) {
        let made = tokens.iter().fold(Pointer::root(), |above, token| above.child(token));
        prop_assert_eq!(made.tokens().collect::<Vec<_>>(), tokens.clone());
        prop_assert_eq!(Pointer::try_from(made.as_str()), Ok(made.clone()));
        prop_assert_eq!(made.as_str().len(), tokens.iter().map(|it| token_len(it)).sum::<usize>());
    }

    #[test]
    fn every_leaf_is_found_at_its_pointer(value in any_value()) {
        for (at, leaf) in leaves(&value) {
            prop_assert_eq!(at.resolve(&value), Some(leaf));
            let mut copy = value.clone();
            prop_assert_eq!(at.resolve_mut(&mut copy), Some(&mut leaf.clone()));
        }
    }

    #[test]
    fn any_text_is_a_pointer_or_refused(text in "[/~01a]{0,8}", value in any_value()) {
        if let Ok(pointer) = Pointer::try_from(text.as_str()) {
            prop_assert_eq!(pointer.resolve(&value), value.pointer(&text).filter(|_: &&Value| true));
        }
    }
}
