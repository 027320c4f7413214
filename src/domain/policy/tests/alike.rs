//! Two states that look alike to a node are judged alike, and told alike.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::node;
use super::oracles::told_by;
use super::properties::{cases, pointer, request, state, value, words};
use crate::domain::json::patch::{Format, Patch, Reach};
use crate::domain::policy::{Policy, RequestKind, StateLimits, project};

/// Changes a state here and there, as long as the node cannot see it.
fn alike(policy: &Policy, state: &Value, edits: &[(String, Option<Value>)]) -> Value {
    let mut other = state.clone();
    for (path, value) in edits {
        let step = match value {
            Some(value) => serde_json::json!([{"op": "add", "path": path, "value": value}]),
            None => serde_json::json!([{"op": "remove", "path": path}]),
        };
        let Ok(edit) = Patch::read(Format::JsonPatch, step) else { continue };
        let Ok(edited) = edit.apply(&other, &StateLimits::default()) else { continue };
        if project(policy, &node(), &edited) == project(policy, &node(), state) {
            other = edited;
        }
    }
    other
}

/// The one thing that may be found out, as docs/policy.md says: where a node writes below a place that it cannot
/// read, whether something stands there that it could not write below.
fn differ_in_kind(policy: &Policy, patch: &Patch, one: &Value, other: &Value) -> bool {
    let rules = policy.node(&node()).unwrap();
    patch.places().iter().filter(|place| !rules.reads().covers(&place.pointer)).any(|place| {
        let in_the_way = |state: &Value| match place.reach {
            Reach::Passed => place.pointer.resolve(state).is_some_and(|it| !it.is_object()),
            Reach::Put if rules.writes().covers(&place.pointer) => false,
            Reach::Put => place.pointer.resolve(state).is_some_and(|it| !it.is_object() && !it.is_array()),
            Reach::Taken | Reach::Emptied => false,
        };
        in_the_way(one) != in_the_way(other)
    })
}

fn edits() -> impl Strategy<Value = Vec<(String, Option<Value>)>> {
    vec((pointer(), proptest::option::weighted(0.7, value())), 1..8)
}

proptest! {
    #![proptest_config(cases(8192))]

    #[test]
    fn what_a_node_cannot_see_makes_no_difference_to_it(
        words in words(), one in state(), edits in edits(), (format, request) in request(),
    ) {
        let Ok(patch) = Patch::read(format, request) else { return Ok(()) };
        let policy = words.policy();
        let other = alike(&policy, &one, &edits);
        prop_assume!(!differ_in_kind(&policy, &patch, &one, &other));
        let kind = RequestKind::Propose { patch: &patch };
        prop_assert_eq!(told_by(&policy, &one, kind), told_by(&policy, &other, kind), "other state: {}", other);
    }

    #[test]
    fn a_rollback_tells_only_of_what_its_node_sees(
        words in words(), one in state(), to in state(), edits in edits(), more in edits(),
    ) {
        let policy = words.policy();
        let (other, other_to) = (alike(&policy, &one, &edits), alike(&policy, &to, &more));
        let told = told_by(&policy, &one, RequestKind::Rollback { to: &to });
        prop_assert_eq!(told, told_by(&policy, &other, RequestKind::Rollback { to: &other_to }));
    }
}
