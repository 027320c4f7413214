//! No request of a node can reveal a value that it may not read. In each case two states differ only in unreadable
//! values, and the response must be the same.

use serde_json::{Value, json};

use super::{node, one_node, patch, policy, refused};
use crate::json::patch::PatchFormat::{self, JsonPatch, Merge, MergePatch};
use crate::policy::{
    Judgement, Policy, PolicyRequest, ReasonAudience, RejectCode::*, RequestKind, StateLimits, changed_for, diff_for,
    judge, project,
};

/// Every part of a response to the caller.
#[derive(PartialEq, Debug)]
pub(super) enum AgentVisibleOutcome {
    Rejected(Vec<crate::policy::Violation>),
    Done {
        reasons: Vec<String>,
        warnings: Vec<crate::policy::JudgedWarning>,
        changed: Vec<String>,
        diff: String,
        view: Value,
    },
}

pub(super) fn told(policy: &Policy, judgement: Judgement) -> AgentVisibleOutcome {
    let (after, changes, named, reasons, warnings) = match judgement {
        Judgement::Reject { violations } => return AgentVisibleOutcome::Rejected(violations),
        Judgement::Commit { after, changes, named, warnings } => (after, changes, named, Vec::new(), warnings),
        Judgement::Hold { after, changes, named, reasons, warnings } => (after, changes, named, reasons, warnings),
    };
    let warned = warnings.into_iter().filter(|it| it.audience == ReasonAudience::Everyone);
    let for_all = reasons.iter().filter(|it| it.audience == ReasonAudience::Everyone);
    AgentVisibleOutcome::Done {
        reasons: for_all.map(|it| it.text.clone()).collect(),
        warnings: warned.collect(),
        changed: changed_for(policy, &node(), &changes, &named).iter().map(ToString::to_string).collect(),
        diff: serde_json::to_string(&diff_for(policy, &node(), &changes)).unwrap(),
        view: project(policy, &node(), &after),
    }
}

pub(super) fn told_by(policy: &Policy, before: &Value, kind: RequestKind<'_>) -> AgentVisibleOutcome {
    told(policy, judge(policy, before, &PolicyRequest { node: &node(), kind }, &StateLimits::default()))
}

/// The answer to a request that must be the same in all of these states.
fn same(policy: &Policy, states: &[Value], format: PatchFormat, request: &Value) -> AgentVisibleOutcome {
    let views: Vec<_> = states.iter().map(|it| project(policy, &node(), it)).collect();
    assert!(views.windows(2).all(|pair| pair[0] == pair[1]), "the states look alike: {views:?}");
    let patch = patch(format, request.clone());
    let mut answers: Vec<_> =
        states.iter().map(|it| told_by(policy, it, RequestKind::Propose { patch: &patch })).collect();
    for (state, answer) in states.iter().zip(&answers) {
        assert_eq!(*answer, answers[0], "{request} on {state}");
    }
    answers.remove(0)
}

fn code(told: &AgentVisibleOutcome) -> Option<(crate::policy::RejectCode, String)> {
    match told {
        AgentVisibleOutcome::Rejected(violations) => violations.first().map(|it| (it.code, it.pointer.to_string())),
        AgentVisibleOutcome::Done { .. } => None,
    }
}

fn secrets() -> Vec<Value> {
    vec![
        json!({"open": 1, "box": {"pin": 1234}}),
        json!({"open": 1, "box": {"pin": 4321, "more": [1, 2]}}),
        json!({"open": 1, "box": {}}),
        json!({"open": 1}),
    ]
}

#[test]
fn a_copy_cannot_bring_a_secret_into_sight() {
    let policy = one_node("open", "$", "", "");
    let request = json!([{"op": "copy", "from": "/box/pin", "path": "/open"}]);
    assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &request)), Some((ReadNotAllowed, "/box/pin".into())));
    let whole = json!([{"op": "copy", "from": "", "path": "/open"}]);
    assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &whole)), Some((ReadNotAllowed, String::new())));
}

#[test]
fn a_move_cannot_bring_a_secret_into_sight() {
    let policy = one_node("open", "$", "", "");
    let request = json!([{"op": "move", "from": "/box", "path": "/open"}]);
    assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &request)), Some((ReadNotAllowed, "/box".into())));
}

#[test]
fn a_test_cannot_ask_for_a_secret() {
    let policy = one_node("open", "$", "", "");
    for (path, value) in [("/box/pin", json!(1234)), ("/box", json!({"pin": 1234})), ("", secrets()[0].clone())] {
        let request = json!([{"op": "test", "path": path, "value": value}, {"op": "add", "path": "/open", "value": 2}]);
        assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &request)), Some((ReadNotAllowed, path.into())));
    }
}

#[test]
fn removing_and_replacing_cannot_ask_whether_something_is_there() {
    let policy = one_node("open", "$", "", "");
    for step in [
        json!({"op": "remove", "path": "/box/pin"}),
        json!({"op": "replace", "path": "/box/pin", "value": 1}),
        json!({"op": "replace", "path": "", "value": {"open": 1}}),
    ] {
        let path = step["path"].as_str().unwrap().to_owned();
        assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &json!([step]))), Some((ReadNotAllowed, path)));
    }
}

#[test]
fn adding_cannot_ask_whether_there_is_something_to_add_to() {
    let policy = one_node("open", "$", "", "");
    let request = json!([{"op": "add", "path": "/box/new", "value": 1}]);
    assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &request)), Some((ReadNotAllowed, "/box".into())));
}

#[test]
fn adding_to_a_list_cannot_measure_it() {
    let policy = one_node("open", "$", "", "");
    let states = [json!({"list": []}), json!({"list": [1, 2]}), json!({"list": [1, 2, 3]})];
    for index in ["0", "2", "3", "-"] {
        let request = json!([{"op": "add", "path": format!("/list/{index}"), "value": 1}]);
        assert_eq!(code(&same(&policy, &states, JsonPatch, &request)), Some((ReadNotAllowed, "/list".into())));
    }
}

#[test]
fn taking_an_item_out_cannot_move_a_secret_one_into_sight() {
    let policy = one_node("list.0", "list", "", "");
    let states = [json!({"list": [1, "secret"]}), json!({"list": [1, "other", 3]}), json!({"list": [1]})];
    for step in
        [json!({"op": "remove", "path": "/list/0"}), json!({"op": "move", "from": "/list/0", "path": "/list/0"})]
    {
        assert_eq!(code(&same(&policy, &states, JsonPatch, &json!([step]))), Some((ReadNotAllowed, "/list".into())));
    }
}

#[test]
fn a_right_guess_is_answered_like_a_wrong_one() {
    let policy = one_node("open", "box", "", "box.pin");
    for (format, request) in [
        (MergePatch, json!({"box": {"pin": 1234}})),
        (Merge, json!({"box": {"pin": 1234}})),
        (JsonPatch, json!([{"op": "add", "path": "/box", "value": {"pin": 1234}}])),
    ] {
        let answer = same(&policy, &secrets(), format, &request);
        let AgentVisibleOutcome::Done { reasons, changed, diff, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(reasons, ["`box.pin` is protected and requires approval"]);
        assert_eq!(changed, ["/box/pin"]);
        assert_eq!(diff, "[]");
    }
}

#[test]
fn a_guess_at_what_may_not_be_written_is_refused_right_or_wrong() {
    let policy = one_node("open", "open", "", "");
    for (format, request) in
        [(Merge, json!({"open": 2, "box": {"pin": 1234}})), (MergePatch, json!({"box": {"pin": 1234}}))]
    {
        assert_eq!(code(&same(&policy, &secrets(), format, &request)), Some((WriteNotAllowed, "/box/pin".into())));
    }
}

/// A removal changes the commitments of a state only if a value existed.
#[test]
fn deleting_unseen_is_refused_whatever_was_there() {
    for writes in ["box", "box.pin", "open"] {
        let policy = one_node("open", writes, "", "box.pin");
        for request in
            [json!({"box": {"pin": null}}), json!({"box": null}), json!({"box": {"pin": null, "more": null}})]
        {
            let answer = same(&policy, &secrets(), MergePatch, &request);
            assert_eq!(code(&answer).map(|it| it.0), Some(ReadNotAllowed), "{request} {answer:?}");
        }
    }
}

#[test]
fn deleting_a_member_does_not_tell_whether_the_unseen_object_around_it_is_there() {
    let policy = one_node("open box.pin", "box.pin", "", "box");
    let states = [json!({"open": 1}), json!({"open": 1, "box": {}}), json!({"open": 1, "box": {"x": 1}})];
    let answer = same(&policy, &states, MergePatch, &json!({"box": {"pin": null}}));
    assert!(matches!(&answer, AgentVisibleOutcome::Done { reasons, .. } if reasons.len() == 1), "{answer:?}");
}

#[test]
fn replacing_unseen_members_is_refused_whether_or_not_there_are_any() {
    let parts = one_node("open", "box.pin", "", "");
    let answer = same(&parts, &secrets(), Merge, &json!({"box": {"pin": 1}}));
    assert_eq!(code(&answer), Some((WriteNotAllowed, "/box".into())));
    let denied = one_node("open", "box.*", "box.more", "");
    let answer = same(&denied, &secrets(), Merge, &json!({"box": {"pin": 1}}));
    assert_eq!(code(&answer), Some((WriteDenied, "/box".into())));
    let all = one_node("open", "box.*", "", "");
    let answer = same(&all, &secrets(), Merge, &json!({"box": {"pin": 1}}));
    assert!(matches!(&answer, AgentVisibleOutcome::Done { changed, .. } if changed == &["/box/pin"]), "{answer:?}");
}

#[test]
fn replacing_everything_is_refused_whatever_is_hidden() {
    let policy = one_node("open", "open", "", "");
    let request = json!([{"op": "add", "path": "", "value": {"open": 2}}]);
    assert_eq!(code(&same(&policy, &secrets(), JsonPatch, &request)), Some((WriteNotAllowed, String::new())));
}

#[test]
fn emptying_an_unseen_object_is_refused_whatever_is_in_it() {
    let policy = one_node("open", "box", "", "box.pin");
    let answer = same(&policy, &secrets(), MergePatch, &json!({"box": {}}));
    assert_eq!(code(&answer), Some((ReadNotAllowed, "/box".into())));
}

#[test]
fn a_refused_request_is_not_tried_on_what_is_hidden() {
    // The write is rejected. Its effect on redacted members must not show.
    let policy = one_node("open", "open", "", "");
    let answer = same(&policy, &secrets(), Merge, &json!({"box": {"evil": 1}}));
    assert_eq!(code(&answer), Some((WriteNotAllowed, "/box/evil".into())));
    assert!(matches!(&answer, AgentVisibleOutcome::Rejected(violations) if violations.len() == 1));
}

#[test]
fn a_schema_names_nothing_that_the_node_cannot_see() {
    let policy = policy(
        "[schema.properties.box]\nrequired = [\"pin\"]\nadditionalProperties = false\nproperties.pin.maximum = 9\n\
         [schema.properties.open]\ntype = \"integer\"\n[nodes.n]\nreads = [\"open\"]\nwrites = [\"open\"]",
    );
    let broken = [json!({"box": {}}), json!({"box": {"pin": 10}}), json!({"box": {"pin": 1, "sister": 2}})];
    let answer = same(&policy, &broken, Merge, &json!({"open": 1}));
    let AgentVisibleOutcome::Rejected(violations) = &answer else { panic!("{answer:?}") };
    let [only] = &violations[..] else { panic!("{violations:?}") };
    assert_eq!((only.code, only.pointer.to_string()), (Schema, String::new()));
    assert_eq!(only.detail, "the result does not fit the flow's schema, for a reason that this node may not read");
}

#[test]
fn a_schema_is_no_clue_beside_another_refusal() {
    let policy =
        policy("[schema.properties.box]\nmaxProperties = 1\n[nodes.n]\nreads = [\"open\"]\nwrites = [\"open\"]");
    let states = [json!({"box": {"a": 1}}), json!({"box": {}}), json!({})];
    let answer = same(&policy, &states, MergePatch, &json!({"box": {"guess": 1}}));
    assert_eq!(code(&answer), Some((WriteNotAllowed, "/box/guess".into())));
}

#[test]
fn a_node_is_told_in_full_what_is_wrong_with_its_own_values() {
    let policy = policy("[schema.properties.out]\ntype = \"integer\"\n[nodes.n]\nwrites = [\"out\"]");
    let judged = super::propose(&policy, &json!({}), Merge, json!({"out": "x"}));
    assert_eq!(refused(&judged), [(Schema, "/out".into())]);
}

#[test]
fn a_nodes_schema_does_not_look_at_what_the_node_cannot_see() {
    let policy = policy(
        "[nodes.n]\nreads = [\"a.b\"]\nwrites = [\"a.b\"]\n\
         [nodes.n.schema.properties.a]\nadditionalProperties = false\nproperties.b.type = \"object\"",
    );
    let states = [json!({"a": {"b": {}}}), json!({"a": {"b": {}, "hidden": 1}})];
    let answer = same(&policy, &states, JsonPatch, &json!([{"op": "add", "path": "/a/b/c", "value": 1}]));
    assert!(matches!(answer, AgentVisibleOutcome::Done { .. }), "{answer:?}");
}

#[test]
fn how_large_the_hidden_part_is_shows_only_in_steps() {
    let policy = one_node("", "mine", "", "");
    let secret = |length: usize| json!({"secret": "x".repeat(length)});
    let limits = StateLimits { bytes_max: 64 * 1000, ..StateLimits::default() };
    // The true size reaches the limit exactly. A caller that cannot read it finds a step, not the size.
    for filling in (54_000..56_000).step_by(7) {
        let request = patch(Merge, json!({"mine": "y".repeat(filling)}));
        let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &request } };
        let answers: Vec<_> =
            [8_100, 8_500, 8_900].map(|it| told(&policy, judge(&policy, &secret(it), &request, &limits))).into();
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "filling {filling}");
    }
}

#[test]
fn being_too_large_reads_the_same_for_every_measure() {
    let policy = one_node("", "mine", "", "");
    let limits = StateLimits { bytes_max: 1000, leaves_max: 64, ..StateLimits::default() };
    let many = json!({"secret": (0..60).collect::<Vec<_>>()});
    let long = json!({"secret": "x".repeat(950)});
    let request = patch(Merge, json!({"mine": "y".repeat(100)}));
    let items = patch(Merge, json!({"mine": (0..40).collect::<Vec<_>>()}));
    let judged = |state: &Value, patch| {
        told(
            &policy,
            judge(&policy, state, &PolicyRequest { node: &node(), kind: RequestKind::Propose { patch } }, &limits),
        )
    };
    assert_eq!(judged(&many, &items), judged(&long, &request));
    assert_eq!(code(&judged(&long, &request)), Some((TooLarge, String::new())));
}

#[test]
fn a_failing_step_does_not_tell_a_list_from_an_object() {
    let policy = one_node("box.pin", "box.pin", "", "");
    let states = [json!({}), json!({"box": {}}), json!({"box": []}), json!({"box": [1]}), json!({"box": 5})];
    for step in [json!({"op": "remove", "path": "/box/pin"}), json!({"op": "replace", "path": "/box/pin", "value": 1})]
    {
        assert_eq!(code(&same(&policy, &states, JsonPatch, &json!([step]))), Some((PatchFailed, "/box/pin".into())));
    }
}

#[test]
fn replacing_members_does_not_tell_empty_from_filled_or_lists_from_objects() {
    let policy = one_node("", "box.*", "", "box.pin");
    let states = [json!({}), json!({"box": {}}), json!({"box": {"a": 1}}), json!({"box": []}), json!({"box": [1, 2]})];
    for value in [json!([1]), json!({"b": 1})] {
        let answer = same(&policy, &states, Merge, &json!({"box": value}));
        assert!(matches!(&answer, AgentVisibleOutcome::Done { reasons, .. } if reasons.len() == 1), "{answer:?}");
    }
}

#[test]
fn what_a_merge_patch_runs_over_is_judged_as_a_whole() {
    let in_the_way = [json!({"box": []}), json!({"box": [1, 2]}), json!({"box": 5}), json!({"box": null})];
    let request = json!({"box": {"new": 1}});
    let parts = one_node("", "box.*", "", "");
    assert_eq!(code(&same(&parts, &in_the_way, MergePatch, &request)), Some((WriteNotAllowed, "/box".into())));
    let denied = one_node("", "box", "box.0", "");
    assert_eq!(code(&same(&denied, &in_the_way, MergePatch, &request)), Some((WriteDenied, "/box".into())));
    let whole = one_node("", "box", "", "box.0");
    let answer = same(&whole, &in_the_way, MergePatch, &request);
    assert!(matches!(&answer, AgentVisibleOutcome::Done { reasons, .. } if reasons.len() == 1), "{answer:?}");
}

#[test]
fn asking_for_an_object_does_not_tell_what_else_is_denied_in_it() {
    let policy = one_node("", "box", "box.0", "");
    let states = [json!({}), json!({"box": {}}), json!({"box": [1]}), json!({"box": {"0": 1}})];
    assert_eq!(code(&same(&policy, &states, MergePatch, &json!({"box": {}}))), Some((ReadNotAllowed, "/box".into())));
}

#[test]
fn a_refused_request_cannot_weigh_what_is_hidden() {
    let policy = one_node("", "mine", "", "");
    let limits = StateLimits { bytes_max: 1000, ..StateLimits::default() };
    let request = patch(Merge, json!({"secret": 1, "mine": "y".repeat(850)}));
    let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &request } };
    let weighed = |other: usize| told(&policy, judge(&policy, &json!({"other": "x".repeat(other)}), &request, &limits));
    assert_eq!(weighed(10), weighed(300));
}

#[test]
fn a_refusal_is_told_at_the_place_that_was_named() {
    let denied = one_node("", "box", "box.no", "");
    let answer = same(&denied, &secrets_unread(), Merge, &json!({"box": {"yes": 1, "no": 1}}));
    assert_eq!(code(&answer), Some((WriteDenied, "/box/no".into())));
    let writer = policy("protected = [\"box.*\"]\n[nodes.n]\nwriter = true\nwrites = [\"box\"]");
    let result = patch(Merge, json!({"box": {}}));
    for state in secrets_unread() {
        let answer = told_by(&writer, &state, RequestKind::Confirm { patch: &result });
        assert_eq!(code(&answer), Some((WriteDenied, "/box".into())), "{state}");
    }
}

fn secrets_unread() -> Vec<Value> {
    vec![json!({"box": {"hidden-name": 1}}), json!({"box": {"other": 2, "more": 3}}), json!({})]
}
