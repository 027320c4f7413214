//! Transition rules, and the violations that a node sees.

use serde_json::{Value, json};

use super::oracles::{AgentVisibleOutcome, told_by};
use super::{is_committed, is_held, node, patch, policy, propose, refused, rollback};
use crate::json::patch::PatchFormat::{self, JsonPatch, Merge, MergePatch};
use crate::policy::{
    Judgement, Policy, PolicyRequest, RejectCode, RequestKind, StateLimits, judge, judge_initial, project,
};

const RULES: &str = r#"
[transitions]
immutable = ["$.agent_id"]
monotonic_integer = ["$.step_count"]
ordered_enum = { "$.status" = ["pending", "running", "completed"] }
[transitions.keyed_arrays."$.tasks"]
key = "id"
monotonic_boolean = ["done"]
allow_new_items = false
"#;

fn with(rules: &str, reads: &str) -> Policy {
    policy(&format!("{rules}\n[nodes.n]\nreads = {reads}\nwrites = [\"$\"]\nwriter = true\nrollback = true"))
}

fn sound() -> Value {
    json!({
        "agent_id": "a", "step_count": 3, "status": "running",
        "tasks": [{"id": 1, "done": false, "title": "x"}, {"id": 2, "done": true, "title": "y"}],
    })
}

fn told(rules: &str, request: Value) -> Vec<(&'static str, String)> {
    let judged = propose(&with(rules, "[\"$\"]"), &sound(), MergePatch, request);
    refused(&judged).into_iter().map(|(code, at)| (code.as_str(), at)).collect()
}

fn one(code: &'static str, at: &str) -> Vec<(&'static str, String)> {
    vec![(code, at.to_owned())]
}

#[test]
fn what_moves_forward_commits() {
    let judged = propose(
        &with(RULES, "[\"$\"]"),
        &sound(),
        MergePatch,
        json!({
            "agent_id": "a", "step_count": 4, "status": "completed",
            "tasks": [{"id": 1, "done": true, "title": "x"}, {"id": 2, "done": true, "title": "y"}],
        }),
    );
    assert!(is_committed(&judged), "{judged:?}");
}

#[test]
fn an_immutable_value_neither_changes_nor_goes_missing() {
    for value in [json!("b"), json!(null), json!({"a": "a"}), json!(["a"])] {
        assert_eq!(told(RULES, json!({"agent_id": value})), one("immutable", "/agent_id"), "{value}");
    }
}

#[test]
fn a_monotonic_integer_neither_shrinks_nor_goes_missing_nor_becomes_something_else() {
    for value in [json!(2), json!(3.5), json!("4"), json!(null), json!(true), json!([4])] {
        assert_eq!(told(RULES, json!({"step_count": value})), one("not_monotonic", "/step_count"), "{value}");
    }
    assert!(told(RULES, json!({"step_count": 3})).is_empty());
}

#[test]
fn an_ordered_value_neither_goes_back_nor_leaves_its_order_nor_goes_missing() {
    for value in [json!("pending"), json!("done"), json!(null), json!(1)] {
        assert_eq!(told(RULES, json!({"status": value})), one("order_regressed", "/status"), "{value}");
    }
    assert!(told(RULES, json!({"status": "running"})).is_empty());
}

#[test]
fn a_keyed_array_loses_nothing_and_only_what_is_listed_becomes_true() {
    let [first, second] = [json!({"id": 1, "done": false, "title": "x"}), json!({"id": 2, "done": true, "title": "y"})];
    for (tasks, at) in [
        (json!([first]), "/tasks/1"),
        (json!([second, first]), "/tasks/1"),
        (json!([first, second, {"id": 3}]), "/tasks/2"),
        (json!([first, {"id": 2, "done": false, "title": "y"}]), "/tasks/1/done"),
        (json!([first, {"id": 2, "title": "y"}]), "/tasks/1/done"),
        (json!([first, {"id": 2, "done": 1, "title": "y"}]), "/tasks/1/done"),
        (json!([first, {"id": 2, "done": true}]), "/tasks/1/title"),
        (json!([first, {"id": 2, "done": true, "title": "z"}]), "/tasks/1/title"),
        (json!([first, {"id": 2, "done": true, "title": "y", "new": 1}]), "/tasks/1/new"),
        (json!([first, second, {"id": 1}]), "/tasks/2/id"),
        (json!([first, second, 3]), "/tasks/2"),
        (json!({}), "/tasks"),
        (json!(null), "/tasks"),
    ] {
        assert_eq!(told(RULES, json!({"tasks": tasks})), one("keyed_array", at), "{tasks}");
    }
}

#[test]
fn new_items_are_appended_unless_they_are_refused() {
    let open = RULES.replace("allow_new_items = false", "");
    let (mut tasks, new) = (sound()["tasks"].as_array().unwrap().clone(), json!({"id": 3, "done": false}));
    tasks.push(new.clone());
    assert!(told(&open, json!({"tasks": tasks})).is_empty());
    tasks.pop();
    tasks.insert(0, new);
    assert_eq!(told(&open, json!({"tasks": tasks})), one("keyed_array", "/tasks/0"));
}

#[test]
fn everything_that_is_wrong_is_told_after_the_schema_and_before_the_rules() {
    let rules = format!(
        "{RULES}\n[schema]\nproperties.step_count.type = \"integer\"\n[[rules]]\nwhen = \"true\"\nthen = \"deny\"\nreason = \"no\""
    );
    let request = json!({"status": "pending", "step_count": "x", "agent_id": 1, "tasks": []});
    let codes: Vec<_> = told(&rules, request).into_iter().map(|(code, at)| format!("{code} {at}")).collect();
    assert_eq!(
        codes,
        [
            "schema /step_count",
            "immutable /agent_id",
            "order_regressed /status",
            "not_monotonic /step_count",
            "keyed_array /tasks/0",
            "keyed_array /tasks/1",
            "rule_denied "
        ]
    );
}

#[test]
fn a_place_that_is_hidden_is_not_named() {
    let rules = format!("{RULES}\n[redaction]\nhide = [\"tasks\", \"agent_id\"]");
    let request = json!({"agent_id": "b", "tasks": []});
    let policy = with(&rules, "[\"$\"]");
    let judged = propose(&policy, &sound(), MergePatch, request);
    assert_eq!(
        refused(&judged),
        [(RejectCode::Immutable, "/agent_id".to_owned()), (RejectCode::KeyedArray, "/tasks".to_owned())]
    );
}

#[test]
fn a_state_without_a_place_that_a_rule_is_about_is_no_first_one() {
    let policy = with(RULES, "[\"$\"]");
    assert!(judge_initial(&policy, &sound(), &StateLimits::default()).is_ok());
    for (key, code) in [
        ("agent_id", RejectCode::Immutable),
        ("step_count", RejectCode::NotMonotonic),
        ("status", RejectCode::OrderRegressed),
        ("tasks", RejectCode::KeyedArray),
    ] {
        let mut state = sound();
        state.as_object_mut().unwrap().remove(key);
        let refused = judge_initial(&policy, &state, &StateLimits::default()).unwrap_err();
        assert_eq!(
            refused.iter().map(|it| (it.code, it.pointer.to_string())).collect::<Vec<_>>(),
            [(code, format!("/{key}"))]
        );
        let judged = propose(&policy, &state, MergePatch, json!({"other": 1}));
        assert_eq!(super::refused(&judged), [(code, format!("/{key}"))], "and none can follow it");
    }
}

#[test]
fn edits_and_results_are_judged_and_rollbacks_and_reaffirmations_are_not() {
    let policy = with(RULES, "[\"$\"]");
    let back = patch(MergePatch, json!({"status": "pending"}));
    let to = json!({"status": "pending", "tasks": []});
    let judged =
        |before: &Value, kind| judge(&policy, before, &PolicyRequest { node: &node(), kind }, &StateLimits::default());
    for kind in [RequestKind::Edit { patch: &back }, RequestKind::Confirm { patch: &back }] {
        assert_eq!(refused(&judged(&sound(), kind)), [(RejectCode::OrderRegressed, "/status".to_owned())]);
    }
    assert!(is_held(&judged(&sound(), rollback(&to))));
    assert!(is_held(&judged(&json!({}), RequestKind::Reaffirm)));
}

/// The answer to a request in states that look alike to a node with these reads.
fn alike(reads: &str, states: &[Value], format: PatchFormat, request: Value) -> AgentVisibleOutcome {
    let policy = with(RULES, reads);
    let views: Vec<_> = states.iter().map(|it| project(&policy, &node(), it)).collect();
    assert!(views.windows(2).all(|pair| pair[0] == pair[1]), "the states look alike: {views:?}");
    let patch = patch(format, request);
    let answers: Vec<_> =
        states.iter().map(|it| told_by(&policy, it, RequestKind::Propose { patch: &patch })).collect();
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    answers.into_iter().next().unwrap()
}

fn other(key: &str, value: Value) -> Value {
    let mut state = sound();
    state[key] = value;
    state
}

#[test]
fn who_cannot_look_cannot_guess_what_is_immutable() {
    for format in [Merge, MergePatch] {
        let states = [sound(), other("agent_id", json!("b"))];
        let AgentVisibleOutcome::Rejected(told) = alike("[]", &states, format, json!({"agent_id": "b"})) else {
            panic!()
        };
        assert_eq!((told.len(), told[0].code, told[0].pointer.as_str()), (1, RejectCode::Immutable, "/agent_id"));
    }
    let states = [other("agent_id", json!({})), other("agent_id", json!({"deep": {"secret": 1}}))];
    alike("[\"agent_id.deep.er\"]", &states, MergePatch, json!({"agent_id": {"deep": {"er": null}}}));
}

#[test]
fn who_cannot_look_cannot_search_for_a_number_or_a_step() {
    for (key, values, guess, code) in [
        ("step_count", [json!(1), json!(900)], json!(500), RejectCode::NotMonotonic),
        ("status", [json!("pending"), json!("completed")], json!("running"), RejectCode::OrderRegressed),
    ] {
        let states = values.map(|it| other(key, it));
        let AgentVisibleOutcome::Rejected(told) = alike("[\"agent_id\"]", &states, Merge, json!({key: guess})) else {
            panic!()
        };
        assert_eq!((told.len(), told[0].code, told[0].pointer.to_string()), (1, code, format!("/{key}")));
    }
}

#[test]
fn who_sees_one_item_cannot_guess_the_key_of_another() {
    let task = |id: i64| json!({"id": id, "done": false});
    let states = [json!([task(1), task(2)]), json!([task(1), task(3)])].map(|it| other("tasks", it));
    let step = json!([{"op": "replace", "path": "/tasks/0", "value": task(2)}]);
    let AgentVisibleOutcome::Rejected(told) = alike("[\"tasks.0\"]", &states, JsonPatch, step) else { panic!() };
    assert_eq!((told.len(), told[0].code, told[0].pointer.as_str()), (1, RejectCode::KeyedArray, ""));
    let done = json!([{"op": "replace", "path": "/tasks/0/done", "value": true}]);
    assert!(
        matches!(alike("[\"tasks.0\"]", &states, JsonPatch, done), AgentVisibleOutcome::Done { .. }),
        "what it sees it may move on"
    );
}

#[test]
fn beside_what_must_not_be_named_nothing_is_told_of_what_is_not_seen() {
    let policy = policy(&format!("{RULES}\n[nodes.n]\nreads = []\nwrites = [\"agent_id\"]"));
    let judged = propose(&policy, &sound(), Merge, json!({"agent_id": "b", "x": 1}));
    assert_eq!(refused(&judged), [(RejectCode::WriteNotAllowed, "/x".to_owned())]);
}

#[test]
fn of_ten_thousand_items_that_moved_no_more_are_told_than_fit_an_answer() {
    let list = |done: bool| (0..9_999).map(|id| json!({"id": id, "done": done})).collect::<Value>();
    let policy = policy(
        "[transitions.keyed_arrays.\"tasks\"]\nkey = \"id\"\nmonotonic_boolean = [\"done\"]\n[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]",
    );
    let limits = StateLimits { leaves_max: 100_000, ..StateLimits::default() };
    let (before, turned) =
        (json!({"tasks": list(false)}), list(true).as_array().unwrap().iter().rev().cloned().collect::<Value>());
    let judged = |tasks: Value| {
        let patch = patch(Merge, json!({"tasks": tasks}));
        judge(&policy, &before, &PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } }, &limits)
    };
    assert!(is_committed(&judged(list(true))));
    let Judgement::Reject { violations } = judged(turned) else { panic!() };
    assert_eq!(violations.len(), 1_000, "all but one item moved, and no more is told than fits an answer");
}

#[test]
fn the_order_in_which_rules_are_written_makes_no_difference() {
    let kinds = [
        "immutable = [\"agent_id\", \"other\"]\n",
        "monotonic_integer = [\"$.step_count\"]\n",
        "ordered_enum = { status = [\"pending\", \"running\"] }\n",
    ];
    let swapped = "ordered_enum = { status = [\"pending\", \"running\"] }\nmonotonic_integer = [\"step_count\"]\nimmutable = [\"$.other\", \"$.agent_id\"]\n";
    let request = json!({"agent_id": 1, "other": 1, "step_count": 0, "status": "pending"});
    let [one, two] =
        [kinds.concat(), swapped.to_owned()].map(|it| told(&format!("[transitions]\n{it}"), request.clone()));
    assert_eq!((one.len(), &one), (4, &two));
}
