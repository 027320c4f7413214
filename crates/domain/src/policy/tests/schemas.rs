//! Schemas of the state and of what a node sends.

use serde_json::json;

use super::{is_committed, is_held, policy, propose, refused};
use crate::json::patch::PatchFormat::{JsonPatch, Merge, MergePatch};
use crate::policy::RejectCode::*;

#[test]
fn the_result_must_fit_the_flows_schema() {
    let policy = policy(
        "[schema]\nadditionalProperties = false\n[schema.properties.n]\ntype = \"integer\"\nmaximum = 5\n\
         [nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]",
    );
    let judged = propose(&policy, &json!({"n": 1}), Merge, json!({"n": "x", "m": 1}));
    assert_eq!(refused(&judged), [(Schema, "/m".into()), (Schema, "/n".into())]);
    assert!(is_committed(&propose(&policy, &json!({"n": 1}), Merge, json!({"n": 5}))));
    assert_eq!(refused(&propose(&policy, &json!({"n": 1}), Merge, json!({"n": 6}))), [(Schema, "/n".into())]);
}

#[test]
fn all_violations_are_told_in_the_order_of_the_checks() {
    let policy = policy(
        "[schema.properties.z]\ntype = \"integer\"\n[nodes.n]\nreads = [\"$\"]\nwrites = [\"z\"]\n\
         [nodes.n.schema.properties.z]\nminLength = 9",
    );
    let judged = propose(&policy, &json!({}), Merge, json!({"z": "x", "b": 1, "a": 1}));
    let expected = [
        (WriteNotAllowed, "/a"),
        (WriteNotAllowed, "/b"),
        (Schema, "/z"),
        (Schema, "/a"),
        (Schema, "/b"),
        (Schema, "/z"),
    ];
    assert_eq!(refused(&judged), expected.map(|(code, pointer)| (code, pointer.to_owned())));
}

#[test]
fn what_both_schemas_say_alike_is_told_once() {
    let policy = policy(
        "schema.additionalProperties = false\nschema.properties.z = {}\n[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]\n\
         [nodes.n.schema]\nadditionalProperties = false\nproperties.z = {}",
    );
    let judged = propose(&policy, &json!({}), Merge, json!({"extra": 1}));
    assert_eq!(refused(&judged), [(Schema, "/extra".into())]);
}

const PLANNER: &str = "[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]\n[nodes.n.schema.properties]\n";

#[test]
fn a_merge_objects_own_form_is_what_the_nodes_schema_judges() {
    let policy = policy(&format!("{PLANNER}a.type = [\"integer\", \"null\"]\nb.required = [\"c\"]"));
    assert!(is_committed(&propose(&policy, &json!({}), Merge, json!({"a": 1}))));
    assert!(is_committed(&propose(&policy, &json!({"a": 1}), MergePatch, json!({"a": null}))));
    // The state would have `c`, but the patch does not say so.
    let judged = propose(&policy, &json!({"b": {"c": 1}}), MergePatch, json!({"b": {"d": 1}}));
    assert_eq!(refused(&judged), [(Schema, "/b/c".into())]);
}

#[test]
fn a_nodes_schema_knows_every_key_it_admits() {
    let closed = policy(&format!("{PLANNER}a.type = \"integer\""));
    assert_eq!(refused(&propose(&closed, &json!({}), Merge, json!({"a": 1, "x": 1}))), [(Schema, "/x".into())]);
    let open = policy(&format!("{PLANNER}a.type = \"integer\"\n[nodes.n.schema.additionalProperties]"));
    assert!(is_committed(&propose(&open, &json!({}), Merge, json!({"a": 1, "x": 1}))));
    let referring = policy(
        "[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]\n[nodes.n.schema]\nallOf = [{ \"$ref\" = \"#/$defs/p\" }]\n\
         [nodes.n.schema.\"$defs\".p.properties.a]",
    );
    assert!(is_committed(&propose(&referring, &json!({}), Merge, json!({"a": 1}))));
    assert_eq!(refused(&propose(&referring, &json!({}), Merge, json!({"x": 1}))), [(Schema, "/x".into())]);
}

#[test]
fn of_a_json_patch_the_resulting_top_level_values_are_judged() {
    let policy = policy(&format!("{PLANNER}a.required = [\"c\"]"));
    let step = |path: &str| json!([{"op": "add", "path": path, "value": 1}]);
    assert!(is_committed(&propose(&policy, &json!({"a": {"c": 1}, "other": 1}), JsonPatch, step("/a/d"))));
    assert_eq!(refused(&propose(&policy, &json!({"a": {}}), JsonPatch, step("/a/d"))), [(Schema, "/a/c".into())]);
    assert_eq!(refused(&propose(&policy, &json!({}), JsonPatch, step("/b"))), [(Schema, "/b".into())]);
    let tested = json!([{"op": "test", "path": "/other", "value": 1}]);
    assert!(is_committed(&propose(&policy, &json!({"other": 1}), JsonPatch, tested)), "a test names nothing");
}

#[test]
fn what_a_rejection_says_never_quotes_a_value() {
    let policy = policy(&format!(
        "[schema.properties.a]\nenum = [\"x\"]\npattern = \"^x$\"\nmaxLength = 1\n{PLANNER}a.const = \"x\""
    ));
    let judged = propose(&policy, &json!({}), Merge, json!({"a": "SECRET-VALUE"}));
    assert!(!refused(&judged).is_empty());
    assert!(!format!("{judged:?}").contains("SECRET-VALUE"));
}

#[test]
fn a_hidden_places_names_are_cut_from_rejections() {
    let policy = policy(
        "[redaction]\nhide = [\"card\"]\n[schema.properties.card.additionalProperties]\ntype = \"integer\"\n\
         [nodes.n]\nreads = [\"card\"]\nwrites = [\"card\"]",
    );
    let judged = propose(&policy, &json!({}), Merge, json!({"card": {"4111": "x", "4222": "y"}}));
    assert_eq!(refused(&judged), [(Schema, "/card".into())]);
}

#[test]
fn a_schema_comes_before_people() {
    let policy = policy(
        "protected = [\"a\"]\n[schema.properties.a]\ntype = \"integer\"\n[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]",
    );
    assert!(is_held(&propose(&policy, &json!({}), Merge, json!({"a": 1}))));
    assert_eq!(refused(&propose(&policy, &json!({}), Merge, json!({"a": "x"}))), [(Schema, "/a".into())]);
}
