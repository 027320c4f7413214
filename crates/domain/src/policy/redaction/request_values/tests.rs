use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::value_scan::RedactedValueSet;
use super::*;
use crate::policy::project;
use crate::policy::tests::properties::{cases, patterns, request, state, with_values};
use crate::primitives::id::NodeId;

fn node(name: &str) -> NodeId {
    NodeId::try_from(name).unwrap()
}

fn policy(reads: &[Vec<&str>], hide: &[&str]) -> Policy {
    let nodes = reads.iter().enumerate().map(|(it, reads)| format!("[nodes.n{it}]\nreads = {}\n", json!(reads)));
    crate::policy::tests::policy(&format!("{}[redaction]\nhide = {}", nodes.collect::<String>(), json!(hide)))
}

/// Returns the redacted values of some states.
fn redacted(policy: &Policy, states: &[Value]) -> RedactedValueSet {
    let mut values = RedactedValueSet::default();
    states.iter().flat_map(|state| policy.hidden.iter().flat_map(|it| it.named(state))).for_each(|it| values.add(it));
    values
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn nodes_together_read_the_redacted_values_that_each_of_them_reads(
        reads in proptest::collection::vec(patterns(4), 0..4), hide in patterns(5), state in state(),
    ) {
        let (policy, state) = (policy(&reads, &hide), with_values(&state));
        let nodes: BTreeSet<NodeId> = (0..reads.len()).map(|it| node(&format!("n{it}"))).chain([node("unknown")]).collect();
        let each: Vec<Value> = nodes.iter().map(|it| project(&policy, it, &state)).collect();
        let (all, _) = readable(&policy, ComparedValues::WithReadable(&nodes), &state, None);
        prop_assert_eq!(redacted(&policy, &each), redacted(&policy, &[all.into_owned()]));
    }

    #[test]
    fn a_request_moves_the_same_values_on_the_views_that_differ(
        reads in proptest::collection::vec(patterns(2), 0..4), state in state(), (format, request) in request(),
    ) {
        let (policy, state) = (policy(&reads, &["a"]), with_values(&state));
        let nodes: BTreeSet<NodeId> = (0..reads.len()).map(|it| node(&format!("n{it}"))).collect();
        let Some(patch) = Patch::read(format, request.clone()).ok().filter(Patch::moves_or_copies) else { return Ok(()) };
        let each = nodes.iter().map(|it| project(&policy, it, &state));
        let each: Vec<Value> = each.filter_map(|it| patch.apply(&it, &StateLimits::default()).ok()).collect();
        let moved = moved_by(&policy, ComparedValues::WithReadable(&nodes), &state, format, &request);
        prop_assert!(each.iter().all(|it| moved.contains(it)) && moved.iter().all(|it| each.contains(it)));
    }
}

#[test]
fn nodes_with_the_same_reads_have_one_view() {
    let policy = policy(&[vec!["a"], vec!["b"], vec!["a"]], &["a"]);
    let nodes: BTreeSet<NodeId> = (0..3).map(|it| node(&format!("n{it}"))).collect();
    assert_eq!(distinct_views(&policy, &nodes, &json!({"a": 1, "b": 2})), [json!({"a": 1}), json!({"b": 2})]);
}
