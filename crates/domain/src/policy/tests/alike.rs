//! Two states that look alike to a node get the same judgement and the same response.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::oracles::told_by;
use super::properties::{cases, pointer, request, state, value, words};
use super::{node, rollback};
use crate::json::patch::{Patch, PatchFormat, PathEffect};
use crate::policy::{Policy, RequestKind, StateLimits, judge_initial, project};

/// Changes a state here and there, as long as the node cannot see it.
fn alike(policy: &Policy, state: &Value, edits: &[(String, Option<Value>)]) -> Value {
    let mut other = state.clone();
    for (path, value) in edits {
        let step = match value {
            Some(value) => serde_json::json!([{"op": "add", "path": path, "value": value}]),
            None => serde_json::json!([{"op": "remove", "path": path}]),
        };
        let Ok(edit) = Patch::read(PatchFormat::JsonPatch, step) else { continue };
        let Ok(edited) = edit.apply(&other, &StateLimits::default()) else { continue };
        if project(policy, &node(), &edited) == project(policy, &node(), state) {
            other = edited;
        }
    }
    other
}

/// The one thing that a node can find out, as docs/reference/policy.md describes: if it writes below a path that it
/// cannot read, whether the value there excludes such a write.
fn differ_in_kind(policy: &Policy, patch: &Patch, one: &Value, other: &Value) -> bool {
    let rules = policy.node(&node()).unwrap();
    patch.places().iter().filter(|place| !rules.reads().covers(&place.pointer)).any(|place| {
        let in_the_way = |state: &Value| match place.reach {
            PathEffect::Passed => place.pointer.resolve(state).is_some_and(|it| !it.is_object()),
            PathEffect::Put if rules.writes().covers(&place.pointer) => false,
            PathEffect::Put => place.pointer.resolve(state).is_some_and(|it| !it.is_object() && !it.is_array()),
            PathEffect::Taken | PathEffect::Emptied => false,
        };
        in_the_way(one) != in_the_way(other)
    })
}

fn edits() -> impl Strategy<Value = Vec<(String, Option<Value>)>> {
    vec((pointer(), proptest::option::weighted(0.7, value())), 1..8)
}

/// A transition rule, as TOML; its place; and two values there that fit it.
type RuleFixture = (String, String, [Value; 2]);

fn transition_rule() -> impl Strategy<Value = RuleFixture> {
    let place = select(vec!["a", "b", "a.b", "a.a", "b.a", "0", "a.b.a"]);
    let item = |key: i64| select(vec![json!({"a": key}), json!({"a": key, "b": true}), json!({"a": key, "b": false})]);
    let items = move || prop_oneof![Just(json!([])), (item(1), item(2)).prop_map(|(one, two)| json!([one, two]))];
    let number = || select(vec![json!(1), json!(2)]);
    (0..4, place, [value(), value()], [number(), number()], [items(), items()]).prop_map(
        |(kind, place, values, numbers, items)| {
            let (rule, fitting) = match kind {
                0 => (format!("[transitions]\nimmutable = [{place:?}]\n"), values),
                1 => (format!("[transitions]\nmonotonic_integer = [{place:?}]\n"), numbers),
                2 => (format!("[transitions]\nordered_enum = {{ {place:?} = [1, 2] }}\n"), numbers),
                _ => {
                    let table = format!("[transitions.keyed_arrays.{place:?}]\nkey = \"a\"\n");
                    (table + "monotonic_boolean = [\"b\"]\n", items)
                }
            };
            (rule, format!("/{}", place.replace('.', "/")), fitting)
        },
    )
}

/// Puts the value there, below objects.
fn put(state: &mut Value, path: &str, value: Value) {
    let below = path.split('/').skip(1).fold(state, |at, key| {
        if !at.is_object() {
            *at = json!({});
        }
        &mut at[key]
    });
    *below = value;
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
        let told = told_by(&policy, &one, rollback(&to));
        prop_assert_eq!(told, told_by(&policy, &other, rollback(&other_to)));
    }
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn no_transition_rule_tells_of_what_a_node_cannot_see(
        words in words(), (rule, place, [here, there]) in transition_rule(), state in state(), edits in edits(),
        (format, request) in request(),
    ) {
        let Ok(patch) = Patch::read(format, request) else { return Ok(()) };
        let policy = words.policy_with(&rule);
        let mut one = state;
        put(&mut one, &place, here);
        let edits: Vec<_> = edits.into_iter().chain([(place, Some(there))]).collect();
        let other = alike(&policy, &one, &edits);
        let fits = |state: &Value| judge_initial(&policy, state, &StateLimits::default()).is_ok();
        // A state that already breaks the rules is the other thing that a node can find out.
        prop_assume!(fits(&one) && fits(&other) && !differ_in_kind(&policy, &patch, &one, &other));
        let kind = RequestKind::Propose { patch: &patch };
        prop_assert_eq!(told_by(&policy, &one, kind), told_by(&policy, &other, kind), "other state: {}", other);
    }
}
