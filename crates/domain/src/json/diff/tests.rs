use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LeafChange, diff, leaf_count, leaves};
use crate::json::pointer::Pointer;
use crate::json::samples::{alike_value, any_value};

fn change(pointer: &str, before: Option<Value>, after: Option<Value>) -> LeafChange {
    LeafChange { pointer: Pointer::try_from(pointer).unwrap(), before, after }
}

fn set(pointer: &str, after: Value) -> LeafChange {
    change(pointer, None, Some(after))
}

fn gone(pointer: &str, before: Value) -> LeafChange {
    change(pointer, Some(before), None)
}

fn turned(pointer: &str, before: Value, after: Value) -> LeafChange {
    change(pointer, Some(before), Some(after))
}

#[test]
fn leaves_that_differ_are_named() {
    for (before, after, changes) in [
        (json!({"a": 1}), json!({"a": 2}), vec![turned("/a", json!(1), json!(2))]),
        (json!({"a": 1, "b": 1}), json!({"b": 1, "c": 1}), vec![gone("/a", json!(1)), set("/c", json!(1))]),
        (json!({"a": null, "b": 1}), json!({"b": 1}), vec![gone("/a", json!(null))]),
        (json!({"b": 1}), json!({"a": null, "b": 1}), vec![set("/a", json!(null))]),
        (json!({"a": 1}), json!({"a": true}), vec![turned("/a", json!(1), json!(true))]),
        (json!({"a": {}}), json!({"a": []}), vec![turned("/a", json!({}), json!([]))]),
        (
            json!({"a": {"b": 1, "c": [2]}, "z": 0}),
            json!({"z": 0}),
            vec![gone("/a/b", json!(1)), gone("/a/c/0", json!(2))],
        ),
        (json!({"a": 1}), json!({"a": {"b": 1}}), vec![gone("/a", json!(1)), set("/a/b", json!(1))]),
        (json!({"a": [{"b": 1}]}), json!({"a": 1}), vec![set("/a", json!(1)), gone("/a/0/b", json!(1))]),
    ] {
        assert_eq!(diff(&before, &after), changes, "{before} {after}");
    }
}

#[test]
fn an_array_that_shifts_changes_at_every_index() {
    let changes = vec![turned("/a/0", json!(1), json!(2)), turned("/a/1", json!(2), json!(3)), gone("/a/2", json!(3))];
    assert_eq!(diff(&json!({"a": [1, 2, 3]}), &json!({"a": [2, 3]})), changes);
}

#[test]
fn every_leaf_below_a_change_of_kind_counts_even_if_it_coincides() {
    let (before, after) = (json!({"a": [{"k": [1, {}]}, 2], "b": 0}), json!({"a": {"0": {"k": [1, {}]}}, "b": 0}));
    let changes =
        vec![turned("/a/0/k/0", json!(1), json!(1)), turned("/a/0/k/1", json!({}), json!({})), gone("/a/1", json!(2))];
    assert_eq!(diff(&before, &after), changes);
    assert_eq!(diff(&json!({"a": {"0": "x"}}), &json!({"a": ["x"]})), vec![turned("/a/0", json!("x"), json!("x"))]);
}

#[test]
fn an_empty_container_is_a_leaf_that_comes_and_goes() {
    assert_eq!(diff(&json!({}), &json!({"a": 1})), vec![gone("", json!({})), set("/a", json!(1))]);
    assert_eq!(diff(&json!({"a": [0]}), &json!({"a": []})), vec![set("/a", json!([])), gone("/a/0", json!(0))]);
}

#[test]
fn only_a_container_that_stays_is_merely_filled_or_emptied() {
    let filling = |before: Value, after: Value| -> Vec<bool> {
        diff(&before, &after).iter().map(|it| it.is_filling(&before, &after)).collect()
    };
    assert_eq!(filling(json!({}), json!({"a": 1})), [true, false]);
    assert_eq!(filling(json!({"a": []}), json!({"a": [1]})), [true, false]);
    assert_eq!(filling(json!({"a": {"b": 1}}), json!({"a": {}})), [true, false]);
    assert_eq!(filling(json!({"a": {}, "b": 1}), json!({"b": 1})), [false], "it is gone");
    assert_eq!(filling(json!({"b": 1}), json!({"a": {}, "b": 1})), [false], "it is new");
    assert_eq!(filling(json!({"a": {}}), json!({"a": [1]})), [false, false], "it is of another kind");
    assert_eq!(filling(json!({"a": {}}), json!({"a": []})), [false]);
    assert_eq!(filling(json!({"a": {}}), json!({"a": 1})), [false]);
}

#[test]
fn null_is_kept_apart_from_nothing_on_the_wire() {
    for (it, text) in [
        (turned("/a", json!(null), json!(1)), json!({"pointer": "/a", "before": null, "after": 1})),
        (set("/a", json!(null)), json!({"pointer": "/a", "after": null})),
        (gone("/a", json!(null)), json!({"pointer": "/a", "before": null})),
    ] {
        assert_eq!(serde_json::to_value(&it).unwrap(), text);
        assert_eq!(serde_json::from_value::<LeafChange>(text).unwrap(), it);
    }
}

#[test]
fn ten_thousand_items_are_compared_one_by_one() {
    let (before, after) =
        (json!({"a": (0..10_000).collect::<Vec<_>>()}), json!({"a": (1..10_000).collect::<Vec<_>>()}));
    assert_eq!(diff(&before, &after).len(), 10_000);
}

fn by_place(value: &Value) -> BTreeMap<Pointer, Value> {
    leaves(value).into_iter().map(|(at, leaf)| (at, leaf.clone())).collect()
}

/// Returns whether the containers above a place are of the same kinds on both sides, as far as both have them.
fn same_kinds_above(at: &Pointer, before: &Value, after: &Value) -> bool {
    std::iter::successors(at.parent(), Pointer::parent).all(|it| match (it.resolve(before), it.resolve(after)) {
        (Some(one), Some(other)) => one.is_array() == other.is_array() && one.is_object() == other.is_object(),
        _ => true,
    })
}

proptest! {
    #[test]
    fn nothing_differs_if_and_only_if_the_values_are_equal(before in alike_value(), after in alike_value()) {
        prop_assert_eq!(diff(&before, &after).is_empty(), before == after);
        prop_assert!(diff(&before, &before).is_empty());
    }

    #[test]
    fn exactly_the_leaves_that_differ_are_named(before in alike_value(), after in alike_value()) {
        let (old, new) = (by_place(&before), by_place(&after));
        let places: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let differs = |at: &&&Pointer| old.get(**at) != new.get(**at) || !same_kinds_above(at, &before, &after);
        let expected: Vec<_> = places.iter().filter(differs)
            .map(|at| LeafChange { pointer: (**at).clone(), before: old.get(*at).cloned(), after: new.get(*at).cloned() })
            .collect();
        let mut changes = diff(&before, &after);
        changes.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        prop_assert_eq!(changes, expected);
    }

    #[test]
    fn the_leaves_make_the_value(value in any_value()) {
        prop_assert_eq!(leaves(&value).len(), leaf_count(&value));
        prop_assert!(leaves(&value).iter().all(|(_, leaf)| super::is_leaf(leaf)));
    }
}
