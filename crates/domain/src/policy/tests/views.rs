//! Views of nodes, pages and unauthenticated clients.

use serde_json::{Value, json};

use super::{node, one_node, policy};
use crate::json::diff::diff;
use crate::json::pointer::Pointer;
use crate::policy::{
    ConstTrue, Policy, RedactedChange, RedactedChangeKind, RedactedLeaf, Redactor, changed_for, diff_for, project,
    readable_leaves, redacted,
};
use crate::primitives::id::NodeId;

fn view(reads: &str, state: &Value) -> Value {
    project(&one_node(reads, "", "", ""), &node(), state)
}

#[test]
fn a_view_has_what_is_read_and_no_more() {
    let state = json!({"a": {"b": 1, "c": 2}, "d": {"e": 3}, "f": 4});
    assert_eq!(view("", &state), json!({}));
    assert_eq!(view("$", &state), state);
    assert_eq!(view("a.b f", &state), json!({"a": {"b": 1}, "f": 4}));
    assert_eq!(view("*.e missing a.b.deeper", &state), json!({"d": {"e": 3}}));
    assert_eq!(project(&one_node("$", "", "", ""), &NodeId::try_from("other").unwrap(), &state), json!({}));
}

#[test]
fn an_unreadable_object_looks_like_an_absent_one() {
    for state in [json!({}), json!({"a": {}}), json!({"a": {"x": 1}}), json!({"a": 5}), json!({"a": []})] {
        assert_eq!(view("a.b", &state), json!({}), "{state}");
    }
    assert_eq!(view("a", &json!({"a": {}})), json!({"a": {}}), "what is covered is shown as it is");
}

#[test]
fn a_list_keeps_positions_and_hides_its_length() {
    let list = json!({"l": [{"n": 1, "s": 9}, {"s": 9}, {"n": 3}, {"s": 9}, {"s": 9}]});
    assert_eq!(view("l.*.n", &list), json!({"l": [{"n": 1}, null, {"n": 3}]}));
    assert_eq!(view("l.1", &list), json!({"l": [null, {"s": 9}]}));
    assert_eq!(view("l.7", &list), json!({}));
    assert_eq!(view("l.*", &list), list);
    assert_eq!(view("l.*", &json!({"l": []})), json!({}));
}

#[test]
fn an_asker_sees_values_from_its_reads_only() {
    let policy = one_node("a.b", "$", "", "");
    let changes = diff(&json!({"a": {"b": 1, "c": 1}}), &json!({"a": {"b": 2, "c": 2}}));
    let seen = diff_for(&policy, &node(), &changes);
    assert_eq!(serde_json::to_value(&seen).unwrap(), json!([{"pointer": "/a/b", "before": 1, "after": 2}]));
    let named: Vec<_> = ["/a/c", "/a/b"].iter().map(|it| Pointer::try_from(*it).unwrap()).collect();
    let told = |changes: &[_]| {
        changed_for(&policy, &node(), changes, &named).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&changes), ["/a/b", "/a/c"]);
    assert_eq!(told(&[]), ["/a/c"], "what it reads did not change, what it cannot read it set");
}

fn hiding(patterns: &str) -> Policy {
    policy(&format!("[redaction]\nhide = {patterns}\n[nodes.n]\nreads = [\"$\"]"))
}

fn shown(policy: &Policy, before: &Value, after: &Value) -> Vec<RedactedChange> {
    redacted(&Redactor::of(policy, [before, after], None), &diff(before, after))
}

fn hidden(pointer: &str, effect: RedactedChangeKind) -> RedactedChange {
    RedactedChange::Hidden { pointer: Pointer::try_from(pointer).unwrap(), hidden: ConstTrue, effect }
}

#[test]
fn hidden_changes_say_where_and_how_but_not_what() {
    let policy = hiding("[\"card.*\", \"mail\"]");
    let before = json!({"card": {"number": "4111", "owner": {"first": "A", "last": "B"}}, "open": 1});
    let after =
        json!({"card": {"number": "4222", "owner": {"first": "A"}, "cvc": [1, 2]}, "mail": "x@y", "open": null});
    let lines = shown(&policy, &before, &after);
    assert_eq!(lines[0], hidden("/card/cvc", RedactedChangeKind::Added));
    assert_eq!(lines[1], hidden("/card/number", RedactedChangeKind::Changed));
    assert_eq!(lines[2], hidden("/card/owner", RedactedChangeKind::Removed));
    assert_eq!(lines[3], hidden("/mail", RedactedChangeKind::Added));
    let on_the_wire = serde_json::to_value(&lines[3..]).unwrap();
    let expected = json!([
        {"pointer": "/mail", "hidden": true, "effect": "added"},
        {"pointer": "/open", "before": 1, "after": null},
    ]);
    assert_eq!(on_the_wire, expected);
    assert_eq!(serde_json::from_value::<Vec<RedactedChange>>(on_the_wire).unwrap(), lines[3..]);
}

#[test]
fn changes_below_one_hidden_place_are_one_line() {
    let policy = hiding("[\"card\"]");
    let lines = shown(&policy, &json!({"card": {"a": 1, "b": 1}}), &json!({"card": {"b": 2, "c": 3}}));
    assert_eq!(lines, [hidden("/card", RedactedChangeKind::Changed)]);
    assert!(!serde_json::to_string(&lines).unwrap().contains("/card/"), "no names below");
}

#[test]
fn people_see_what_a_writer_will_read_without_what_is_hidden() {
    let policy = hiding("[\"card.number\"]");
    let leaves = readable_leaves(
        &policy,
        &[Redactor::of(&policy, [], None)],
        &node(),
        &json!({"card": {"number": {"a": 1, "b": 2}, "name": "N"}}),
    );
    let [RedactedLeaf::Shown { pointer: name, .. }, RedactedLeaf::Hidden { pointer }] = &leaves[..] else {
        panic!("{leaves:?}")
    };
    assert_eq!((name.to_string().as_str(), pointer.to_string().as_str()), ("/card/name", "/card/number"));
}

#[test]
fn a_pointer_is_cut_where_the_hidden_part_begins() {
    let policy = hiding("[\"a.*.c\", \"a.x\"]");
    let cut = |text: &str| policy.cut(&Pointer::try_from(text).unwrap()).to_string();
    assert_eq!(cut("/a/b/c/d/e"), "/a/b/c");
    assert_eq!(cut("/a/b/c"), "/a/b/c");
    assert_eq!(cut("/a/b/d"), "/a/b/d");
    assert_eq!(cut("/a/x/c/d"), "/a/x");
    assert_eq!(cut(""), "");
}
