use super::*;
use serde_json::from_value;

fn terms() -> Value {
    json!({"goal": {"task": "Refund order 17"}})
}

#[test]
fn missing_member_has_a_default() {
    let terms: EpisodeTerms = from_value(terms()).unwrap();
    terms.check().unwrap();
    assert_eq!((terms.goal.kind.as_str(), terms.seed), ("task", 0));
    let start = json!(terms.start("payments"));
    let process = json!({"id": "payments", "name": "payments", "run_index": 1});
    assert_eq!(start, json!({"task": "Refund order 17", "type": "task", "seed": 0, "tags": {}, "process": process}));
}

#[test]
fn oversized_member_is_refused_with_its_path() {
    let many: Map<String, Value> = (0..21).map(|at| (format!("t{at}"), json!(at))).collect();
    for (member, value, place) in [
        ("goal", json!({"task": " "}), "/goal/task"),
        ("goal", json!({"task": "x".repeat(2_001)}), "/goal/task"),
        ("goal", json!({"task": "x", "type": ""}), "/goal/type"),
        ("using", json!(""), "/using"),
        ("seed", json!(9_007_199_254_740_992_i64), "/seed"),
        ("tags", json!(many), "/tags"),
        ("tags", json!({"a": "x".repeat(201)}), "/tags"),
        ("tags", json!({"": 1}), "/tags"),
    ] {
        let mut terms = terms();
        terms[member] = value;
        let refused = from_value::<EpisodeTerms>(terms).unwrap().check().unwrap_err();
        assert_eq!(refused.pointer.as_str(), place);
    }
}

#[test]
fn invalid_terms_are_not_read() {
    for (member, value) in [
        ("goal", json!({})),
        ("goal", json!({"task": "x", "more": 1})),
        ("seed", json!(0.5)),
        ("tags", json!({"a": null})),
        ("tags", json!({"a": []})),
        ("intuition_mode", json!("loud")),
        ("started_at", json!("2026-11-22T08:00:00.000Z")),
    ] {
        let mut terms = terms();
        terms[member] = value;
        assert!(from_value::<EpisodeTerms>(terms).is_err(), "{member}");
    }
}

#[test]
fn digest_covers_every_member_of_the_terms() {
    let digest = |terms: Value| from_value::<EpisodeTerms>(terms).unwrap().digest();
    let whole = json!({"goal": {"task": "a", "type": "b"}, "seed": 1, "tags": {"t": true}, "using": "u",
        "intuition_mode": "hybrid"});
    let mut digests = vec![digest(whole.clone())];
    for (place, value) in [
        ("/goal/task", json!("c")),
        ("/goal/type", json!("c")),
        ("/seed", json!(2)),
        ("/tags/t", json!("true")),
        ("/using", json!("v")),
        ("/intuition_mode", json!("advisory")),
    ] {
        let mut other = whole.clone();
        *other.pointer_mut(place).unwrap() = value;
        digests.push(digest(other));
    }
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}
