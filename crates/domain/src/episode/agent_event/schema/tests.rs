use super::*;
use serde_json::json;

fn refused(phase: Phase, payload: Value) -> String {
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    check(phase, &payload, &[]).map_or_else(|it| it.pointer.as_str().to_owned(), |()| "taken".to_owned())
}

#[test]
fn valid_payload_with_unknown_members_is_accepted() {
    for phase in Phase::ALL.into_iter().filter(|it| *it != Phase::Terminate) {
        assert_eq!(refused(phase, json!({})), "taken", "{phase:?}");
        assert_eq!(refused(phase, json!({"<script>": [1, {"deep": null}]})), "taken", "{phase:?}");
    }
    assert_eq!(refused(Phase::Terminate, json!({"status": "ok", "message": "Done."})), "taken");
    let step = json!({"id": "a", "kind": "review", "description": "d", "status": "vetoed", "inputs": {}, "outputs": {},
        "depends_on": ["b"], "rationale": "r"});
    assert_eq!(refused(Phase::Plan, json!({"source": "s", "steps": ["act:a"], "step_records": [step]})), "taken");
    let act = json!({"tool": "t", "outcome": "ok", "step_id": "a", "step_status": "done", "input_excerpt": "i",
        "result_artifacts": [{"type": "row", "uri": "users:1", "sha256": "sha256:0"}]});
    assert_eq!(refused(Phase::Act, act), "taken");
    let belief = json!({"statement": "s", "confidence": 0.5, "provenance": {"source": "p"}});
    assert_eq!(refused(Phase::Interpret, json!({"beliefs": [belief]})), "taken");
    let fact = json!({"key": "k", "value": null, "type": "signal", "ttl_sec": 5, "provenance": "p"});
    assert_eq!(refused(Phase::Memory, json!({"facts": [fact], "scratchpad": ""})), "taken");
}

#[test]
fn invalid_member_is_refused_with_its_path() {
    let step = |member: &str, value: Value| {
        let mut step = json!({"id": "a", "kind": "act", "description": "d"});
        step[member] = value;
        json!({"step_records": [step]})
    };
    let plan = |member: &str, value: Value| refused(Phase::Plan, step(member, value));
    assert_eq!(plan("id", json!(7)), "/payload/step_records/0/id");
    assert_eq!(plan("kind", json!("ponder")), "/payload/step_records/0/kind");
    assert_eq!(plan("status", json!("fine")), "/payload/step_records/0/status");
    assert_eq!(plan("description", json!("x".repeat(4_001))), "/payload/step_records/0/description");
    assert_eq!(plan("inputs", json!([])), "/payload/step_records/0/inputs");
    assert_eq!(plan("depends_on", json!("b")), "/payload/step_records/0/depends_on");
    for (phase, payload, place) in [
        (Phase::Plan, json!({"step_records": [{"id": "a", "kind": "act"}]}), "/payload/step_records/0/description"),
        (Phase::Plan, json!({"step_records": {}}), "/payload/step_records"),
        (Phase::Plan, json!({"step_records": [1]}), "/payload/step_records/0"),
        (Phase::Plan, json!({"steps": [1]}), "/payload/steps"),
        (Phase::Plan, json!({"source": ""}), "/payload/source"),
        (Phase::Act, json!({"tool": 1}), "/payload/tool"),
        (Phase::Act, json!({"outcome": "splendid"}), "/payload/outcome"),
        (Phase::Act, json!({"result_status": 1}), "/payload/result_status"),
        (Phase::Act, json!({"step_status": "ok"}), "/payload/step_status"),
        (Phase::Act, json!({"result_artifacts": [{"type": "t"}]}), "/payload/result_artifacts/0/uri"),
        (Phase::Interpret, json!({"beliefs": [{"statement": "s"}]}), "/payload/beliefs/0/confidence"),
        (
            Phase::Interpret,
            json!({"beliefs": [{"statement": "s", "confidence": 1.5}]}),
            "/payload/beliefs/0/confidence",
        ),
        (Phase::Memory, json!({"facts": [{"key": "k"}]}), "/payload/facts/0/value"),
        (Phase::Memory, json!({"facts": [{"key": "k", "value": 1, "type": "x"}]}), "/payload/facts/0/type"),
        (Phase::Memory, json!({"facts": [{"key": "k", "value": 1, "provenance": {}}]}), "/payload/facts/0/provenance"),
        (Phase::Memory, json!({"facts": [{"key": "k", "value": 1, "ttl_sec": -1}]}), "/payload/facts/0/ttl_sec"),
        (Phase::Memory, json!({"scratchpad": []}), "/payload/scratchpad"),
        (Phase::Insight, json!({"metrics": []}), "/payload/metrics"),
        (Phase::Terminate, json!({}), "/payload/status"),
        (Phase::Terminate, json!({"status": "pending"}), "/payload/status"),
        (Phase::Terminate, json!({"status": "ok", "message": 1}), "/payload/message"),
    ] {
        assert_eq!(refused(phase, payload.clone()), place, "{payload}");
    }
    let twice = json!({"id": "a", "kind": "act", "description": "d"});
    assert_eq!(refused(Phase::Plan, json!({"step_records": [twice, twice]})), "/payload/step_records/1/id");
}

#[test]
fn oversized_payload_is_refused() {
    let sized = |bytes: usize| refused(Phase::Observe, json!({"a": "x".repeat(bytes - 8)}));
    assert_eq!(sized(PAYLOAD_BYTES_MAX), "taken");
    assert_eq!(sized(PAYLOAD_BYTES_MAX + 1), "/payload");
    assert_eq!(refused(Phase::Plan, json!({"steps": vec!["act:a"; 101]})), "/payload/steps");
    let evidence = |ids: &[String]| check(Phase::Observe, &Map::new(), ids).is_ok();
    assert!(evidence(&vec!["e".to_owned(); 20]));
    assert!(!evidence(&vec!["e".to_owned(); 21]));
    assert!(!evidence(&[String::new()]) && !evidence(&["e".repeat(201)]));
}
