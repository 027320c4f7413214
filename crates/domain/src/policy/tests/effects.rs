//! Write lists and protection judge what differs afterwards, whatever the request is called.

use serde_json::{Value, json};

use super::{is_committed, is_held, one_node, policy, propose, refused};
use crate::json::patch::PatchFormat::{JsonPatch, Merge, MergePatch};
use crate::policy::{Judgement, RejectCode::*};

fn state() -> Value {
    json!({"goal": "pay", "payment": {"amount": 10, "note": "x"}, "list": [1, 2, 3], "admin": false})
}

#[test]
fn a_change_within_the_lists_commits() {
    let policy = one_node("goal", "goal", "", "payment.amount");
    let Judgement::Commit { after, changes, named, .. } = propose(&policy, &state(), Merge, json!({"goal": "stay"}))
    else {
        panic!("held or rejected")
    };
    assert_eq!(after["goal"], "stay");
    assert_eq!(changes.len(), 1);
    assert!(named.is_empty());
}

#[test]
fn an_injected_key_is_rejected_where_it_stands() {
    let policy = one_node("goal", "goal", "", "");
    let judged = propose(&policy, &state(), Merge, json!({"goal": "stay", "is_admin": true, "x": {"y": 1}}));
    assert_eq!(refused(&judged), [(WriteNotAllowed, "/is_admin".into()), (WriteNotAllowed, "/x/y".into())]);
}

#[test]
fn a_node_without_writes_writes_nothing() {
    let policy = policy("[nodes.n]\nreads = [\"$\"]");
    assert_eq!(
        refused(&propose(&policy, &state(), Merge, json!({"goal": "stay"}))),
        [(WriteNotAllowed, "/goal".into())]
    );
    assert!(is_committed(&propose(&policy, &state(), Merge, json!({"goal": "pay"}))), "naming what stays as it is");
}

#[test]
fn deny_wins_over_writes() {
    let policy = one_node("payment", "payment", "payment.note", "");
    let judged = propose(&policy, &state(), MergePatch, json!({"payment": {"note": "y", "amount": 11}}));
    assert_eq!(refused(&judged), [(WriteDenied, "/payment/note".into())]);
    assert!(is_committed(&propose(&policy, &state(), MergePatch, json!({"payment": {"amount": 11}}))));
}

#[test]
fn every_form_of_touching_a_protected_value_is_held() {
    let policy = one_node("$", "$", "", "payment.amount");
    let cases = [
        ("set", Merge, json!({"payment": {"amount": 11, "note": "x"}})),
        ("parent replaced", Merge, json!({"payment": 5})),
        ("parent replaced by a list", Merge, json!({"payment": [10]})),
        ("left out of its parent", Merge, json!({"payment": {"note": "x"}})),
        ("type alone", Merge, json!({"payment": {"amount": "10", "note": "x"}})),
        ("set below", MergePatch, json!({"payment": {"amount": {"value": 10}}})),
        ("deleted", MergePatch, json!({"payment": {"amount": null}})),
        ("parent deleted", MergePatch, json!({"payment": null})),
        ("replaced", JsonPatch, json!([{"op": "replace", "path": "/payment/amount", "value": 11}])),
        ("removed", JsonPatch, json!([{"op": "remove", "path": "/payment/amount"}])),
        ("parent removed", JsonPatch, json!([{"op": "remove", "path": "/payment"}])),
        ("moved away", JsonPatch, json!([{"op": "move", "from": "/payment", "path": "/other"}])),
        ("copied over", JsonPatch, json!([{"op": "copy", "from": "/list", "path": "/payment"}])),
        ("moved over", JsonPatch, json!([{"op": "move", "from": "/goal", "path": "/payment/amount"}])),
        ("added over", JsonPatch, json!([{"op": "add", "path": "/payment", "value": {"amount": 11, "note": "x"}}])),
        ("everything replaced", JsonPatch, json!([{"op": "add", "path": "", "value": {}}])),
    ];
    for (name, format, request) in cases {
        assert!(is_held(&propose(&policy, &state(), format, request)), "{name}");
    }
}

#[test]
fn putting_a_readable_protected_value_back_touches_nothing() {
    let policy = one_node("$", "$", "", "payment.amount");
    let there_and_back = json!([
        {"op": "move", "from": "/payment/amount", "path": "/spare"},
        {"op": "move", "from": "/spare", "path": "/payment/amount"},
    ]);
    assert!(is_committed(&propose(&policy, &state(), JsonPatch, there_and_back)));
    assert!(is_committed(&propose(&policy, &state(), Merge, json!({"payment": {"amount": 10, "note": "new"}}))));
}

#[test]
fn shifting_an_array_changes_what_is_protected_in_it() {
    let policy = one_node("list", "list", "", "list.1");
    for step in [json!({"op": "remove", "path": "/list/0"}), json!({"op": "add", "path": "/list/0", "value": 0})] {
        assert!(is_held(&propose(&policy, &state(), JsonPatch, json!([step]))));
    }
    let at_the_end = json!([{"op": "add", "path": "/list/-", "value": 4}]);
    assert!(is_committed(&propose(&policy, &state(), JsonPatch, at_the_end)));
}

#[test]
fn replacing_a_parent_may_not_drop_what_is_not_in_writes() {
    let policy = one_node("payment", "payment.amount", "", "");
    let judged = propose(&policy, &state(), Merge, json!({"payment": {"amount": 11}}));
    assert_eq!(refused(&judged), [(WriteNotAllowed, "/payment/note".into())]);
    assert!(is_committed(&propose(&policy, &state(), Merge, json!({"payment": {"amount": 11, "note": "x"}}))));
}

#[test]
fn a_value_is_not_overwritten_by_writing_below_it() {
    for reads in ["", "goal"] {
        let policy = one_node(reads, "goal.target", "", "");
        let judged = propose(&policy, &state(), MergePatch, json!({"goal": {"target": 1}}));
        assert_eq!(refused(&judged), [(WriteNotAllowed, "/goal".into())], "reads {reads:?}");
    }
}

#[test]
fn the_first_and_the_last_member_of_an_object_are_changed_at_themselves() {
    let policy = one_node("a", "a.b", "", "a.c");
    let filled = propose(&policy, &json!({"a": {}}), MergePatch, json!({"a": {"b": 1}}));
    assert!(is_committed(&filled), "{filled:?}");
    let emptied = propose(&policy, &json!({"a": {"b": 1}}), MergePatch, json!({"a": {"b": null}}));
    assert!(is_committed(&emptied), "{emptied:?}");
    let asked = propose(&policy, &json!({}), MergePatch, json!({"a": {}}));
    assert_eq!(refused(&asked), [(WriteNotAllowed, "/a".into())]);
}

#[test]
fn every_reason_is_told_in_the_policys_order() {
    let policy = one_node("$", "$", "", "goal payment.* list");
    let Judgement::Hold { reasons, .. } =
        propose(&policy, &state(), Merge, json!({"list": [], "goal": "y", "payment": {"amount": 1, "note": "x"}}))
    else {
        panic!("not held")
    };
    let patterns: Vec<_> = reasons.iter().map(|it| it.pattern.as_ref().unwrap().to_string()).collect();
    assert_eq!(patterns, ["goal", "payment.*", "list"]);
    assert_eq!(reasons[1].text, "`payment.*` is protected and requires approval");
}

#[test]
fn an_unknown_node_may_write_nothing() {
    let policy = policy("[nodes.m]\nwrites = [\"$\"]");
    assert_eq!(refused(&propose(&policy, &state(), Merge, json!({}))), [(WriteNotAllowed, String::new())]);
}

#[test]
fn two_spellings_of_one_key_never_stand_in_a_state() {
    let policy = one_node("$", "$", "", "");
    let decomposed = "cafe\u{301}";
    let judged = propose(&policy, &json!({}), Merge, json!({decomposed: 1}));
    assert_eq!(refused(&judged), [(Encoding, format!("/{decomposed}"))]);
    assert!(is_committed(&propose(&policy, &json!({}), Merge, json!({"caf\u{e9}": 1}))));
}

#[test]
fn a_readable_object_does_not_come_into_being_by_deleting_from_it() {
    let policy = one_node("a", "a.b", "", "");
    let judged = propose(&policy, &json!({}), MergePatch, json!({"a": {"b": null}}));
    assert_eq!(refused(&judged), [(WriteNotAllowed, "/a".into())]);
    let protected = one_node("a", "a", "", "a");
    assert!(is_held(&propose(&protected, &json!({}), MergePatch, json!({"a": {"b": null}}))));
}
