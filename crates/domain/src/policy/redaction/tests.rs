use serde_json::json;

use super::*;
use crate::json::diff::diff;
use crate::json::patch::Patch;
use crate::policy::StateLimits;
use crate::policy::tests::policy;
use crate::policy::{ConstTrue, RedactedChange, RedactedChangeKind, redacted};

const POLICY: &str = r#"
[nodes.n]
reads = ["*"]
writes = ["memo", "notes", "n"]

[redaction]
hide = ["card.*"]
detect = ["email", "card_number"]
patterns = { order = 'ORD-\d{4}' }
"#;

fn shown(policy: &Policy, before: &Value, after: &Value) -> Vec<RedactedChange> {
    redacted(&Redactor::of(policy, [before, after], None), &diff(before, after))
}

fn hidden(pointer: &str, effect: RedactedChangeKind) -> RedactedChange {
    RedactedChange::Hidden { pointer: Pointer::try_from(pointer).unwrap(), hidden: ConstTrue, effect }
}

#[test]
fn a_leaf_in_which_something_is_found_is_hidden_on_both_sides() {
    let policy = policy(POLICY);
    let told = |before: Value, after: Value| shown(&policy, &before, &after);
    let found = [
        json!("write to ana@example.org"),
        json!("4111 1111 1111 1111"),
        json!(4_111_111_111_111_111_i64),
        json!("ORD-1234"),
    ];
    for value in found {
        assert_eq!(
            told(json!({"memo": "a"}), json!({"memo": value})),
            [hidden("/memo", RedactedChangeKind::Changed)],
            "{value}"
        );
        assert_eq!(
            told(json!({"memo": value}), json!({"memo": "a"})),
            [hidden("/memo", RedactedChangeKind::Changed)],
            "{value}"
        );
        assert_eq!(
            told(json!({"n": 0, "memo": value}), json!({"n": 0})),
            [hidden("/memo", RedactedChangeKind::Removed)],
            "{value}"
        );
        assert_eq!(
            told(json!({"n": 0}), json!({"n": 0, "memo": [value]})),
            [hidden("/memo/0", RedactedChangeKind::Added)],
            "{value}"
        );
    }
    let plain = told(json!({"n": 0}), json!({"memo": "nothing to see", "n": 17}));
    assert!(plain.iter().all(|it| matches!(it, RedactedChange::Shown { .. })), "{plain:?}");
}

#[test]
fn a_container_with_a_key_in_which_something_is_found_is_hidden_whole() {
    let policy = policy(POLICY);
    let (before, after) = (json!({"notes": {"a": 1}}), json!({"notes": {"a": 2, "ana@example.org": 1}}));
    assert_eq!(shown(&policy, &before, &after), [hidden("/notes", RedactedChangeKind::Changed)]);
    // The key that gives it away need not be one that changes.
    let (before, after) =
        (json!({"notes": {"a": 1, "b@example.org": 0}}), json!({"notes": {"a": 2, "b@example.org": 0}}));
    assert_eq!(shown(&policy, &before, &after), [hidden("/notes", RedactedChangeKind::Changed)]);
    let top = json!({"ana@example.org": {"x": 1}});
    assert_eq!(shown(&policy, &json!({}), &top), [hidden("", RedactedChangeKind::Changed)]);
}

#[test]
fn a_pointer_is_cut_before_a_name_in_which_something_is_found() {
    let policy = policy(POLICY);
    let cut = |text: &str| policy.cut(&Pointer::try_from(text).unwrap()).to_string();
    assert_eq!(cut("/notes/ana@example.org/x"), "/notes");
    assert_eq!(cut("/ana@example.org"), "");
    assert_eq!(cut("/card/number/x"), "/card/number");
    assert_eq!(cut("/notes/a/b"), "/notes/a/b");
}

#[test]
fn words_are_masked_and_an_excerpt_has_nothing_of_it() {
    let policy = policy(POLICY);
    let hiding = Redactor::of(&policy, [], None);
    assert_eq!(hiding.masked("ask ana@example.org about ORD-1234"), "ask [email] about [order]");
    let excerpt = |request: Value| excerpt::excerpt(&hiding, PatchFormat::Merge, &request);
    assert_eq!(excerpt(json!({"memo": "to ana@example.org", "n": 1})), r#"{"memo":"[hidden]","n":1}"#);
    assert_eq!(excerpt(json!({"notes": {"ana@example.org": 1}})), r#"{"notes":"[hidden]"}"#);
}

#[test]
fn without_detectors_nothing_is_looked_for() {
    let policy =
        policy(&POLICY.replace("detect = [\"email\", \"card_number\"]\npatterns = { order = 'ORD-\\d{4}' }", ""));
    let lines = shown(&policy, &json!({"n": 0}), &json!({"n": 0, "memo": "ana@example.org ORD-1234"}));
    assert!(matches!(lines[..], [RedactedChange::Shown { .. }]));
}

const SECRET: &str = "s3cr3t-7";

fn after(before: &Value, format: PatchFormat, patch: Value) -> Value {
    Patch::read(format, patch).unwrap().apply(before, &StateLimits::default()).unwrap()
}

/// Returns the redacted changes of a patch, by a policy that redacts `card.*` and has no detectors.
fn told(before: &Value, format: PatchFormat, patch: Value) -> Vec<RedactedChange> {
    let policy = policy("[nodes.n]\n[redaction]\nhide = [\"card.*\"]");
    shown(&policy, before, &after(before, format, patch))
}

#[test]
fn a_hidden_value_is_hidden_wherever_a_request_puts_it() {
    let before = json!({"card": {"pin": SECRET}, "memo": "a", "notes": {"a": 1}});
    let secret_before = json!({"card": {"pin": SECRET}, "memo": SECRET});
    let copied = json!([{"op": "copy", "from": "/card/pin", "path": "/memo"}]);
    assert_eq!(told(&before, PatchFormat::JsonPatch, copied), [hidden("/memo", RedactedChangeKind::Changed)]);
    for memo in [json!(SECRET), json!(format!("it is {SECRET}.")), json!([{"x": SECRET}, 1])] {
        let lines = told(&before, PatchFormat::Merge, json!({"memo": memo}));
        assert!(!serde_json::to_string(&lines).unwrap().contains(SECRET), "{lines:?}");
    }
    let key = told(&before, PatchFormat::Merge, json!({"notes": {"a": 2, (format!("of {SECRET}")): 1}}));
    assert_eq!(key, [hidden("/notes", RedactedChangeKind::Changed)], "an object's keys are shown together");
    let same = told(&before, PatchFormat::Merge, json!({"notes": {"a": 2}}));
    assert!(matches!(same[..], [RedactedChange::Shown { .. }]), "nothing else is hidden by it: {same:?}");
    let overwritten = told(&secret_before, PatchFormat::Merge, json!({"memo": "a"}));
    assert_eq!(overwritten, [hidden("/memo", RedactedChangeKind::Changed)], "on the side before only");
}

#[test]
fn a_number_and_a_text_hide_each_other() {
    let before = json!({"card": {"number": 4_111_111, "code": "777666"}, "memo": 0});
    for memo in [json!(4_111_111), json!("4111111"), json!("pay 4111111 now"), json!(777_666), json!(777_666.5)] {
        let lines = told(&before, PatchFormat::Merge, json!({"memo": memo}));
        assert_eq!(lines, [hidden("/memo", RedactedChangeKind::Changed)], "{memo}");
    }
}

#[test]
fn what_the_same_request_takes_from_its_hidden_place_or_puts_there_is_hidden_elsewhere() {
    let before = json!({"card": {"pin": SECRET, "limit": 1}, "memo": "a"});
    let moved = json!([{"op": "move", "from": "/card/pin", "path": "/memo"}]);
    let gone = json!([hidden("/card/pin", RedactedChangeKind::Removed), hidden("/memo", RedactedChangeKind::Changed)]);
    assert_eq!(json!(told(&before, PatchFormat::JsonPatch, moved)), gone);
    let put =
        told(&json!({"card": {}, "memo": "a"}), PatchFormat::Merge, json!({"card": {"pin": SECRET}, "memo": SECRET}));
    assert!(!serde_json::to_string(&put).unwrap().contains(SECRET), "{put:?}");
}

#[test]
fn what_is_shown_beside_the_change_has_no_hidden_value() {
    let policy = policy("[nodes.n]\nreads = [\"*\"]\n[tools]\nhide = [\"to\"]\n[redaction]\nhide = [\"card.*\"]");
    let state = json!({"card": {"pin": SECRET}, "memo": SECRET, "iban": "see DE02-1203", "n": 1});
    let arguments = json!({"name": "pay", "arguments": {"to": "DE02-1203", "with": format!("pin {SECRET}"), "n": 1}});
    let tool = Tool::read(&arguments).unwrap();
    let hiding = Redactor::of(&policy, [&state], Some(&tool));
    let leaves =
        crate::policy::readable_leaves(&policy, std::slice::from_ref(&hiding), &"n".try_into().unwrap(), &state);
    let parts = crate::policy::shown_arguments(&hiding, &tool);
    for told in [format!("{leaves:?}"), format!("{parts:?}"), hiding.masked(&format!("{SECRET} DE02-1203")).into()] {
        assert!(!told.contains(SECRET) && !told.contains("DE02-1203"), "{told}");
    }
    assert!(format!("{leaves:?}{parts:?}").matches("Shown").count() == 2, "n stays: {leaves:?} {parts:?}");
}

#[test]
fn what_is_kept_of_a_request_has_no_value_that_its_state_or_itself_hides() {
    let policy = policy("[nodes.n]\n[redaction]\nhide = [\"card.*\"]");
    let state = json!({"card": {"pin": SECRET}});
    let kept = |format: PatchFormat, request: Value| {
        excerpt::excerpt(&Redactor::of_request(&policy, &state, format, &request, None), format, &request)
    };
    let own = json!({"card": {"pin": "my-own-pin"}, "memo": format!("{SECRET} my-own-pin"), "n": 1});
    assert_eq!(kept(PatchFormat::Merge, own), r#"{"card":{"pin":"[hidden]"},"memo":"[hidden]","n":1}"#);
    let steps = json!([
        {"op": "add", "path": "/card/pin", "value": "my-own-pin"},
        {"op": "add", "path": "/memo", "value": "my-own-pin"},
        {"op": "add", "path": (format!("/notes/{SECRET}/x")), "value": 1},
    ]);
    let told = kept(PatchFormat::JsonPatch, steps);
    assert!(!told.contains(SECRET) && !told.contains("my-own-pin") && told.contains("\"/notes\""), "{told}");
}

#[test]
fn value_that_a_request_moves_or_copies_to_a_redacted_place_is_redacted_in_its_steps() {
    let policy = policy("[nodes.n]\nreads = [\"memo\"]\n[redaction]\nhide = [\"card.*\"]");
    let put = json!({"op": "add", "path": "/memo", "value": {"card": {"pin": "my-own-pin"}}});
    let steps = [
        json!([put, {"op": "move", "from": "/memo", "path": ""}]),
        json!([put, {"op": "copy", "from": "/memo/card", "path": "/card"}]),
    ];
    let reader = BTreeSet::from([NodeId::try_from("n").unwrap()]);
    for request in &steps {
        let kept = |compared, secret: &str| {
            let (state, request) = (json!({"memo": "m", "card": {"pin": secret}}), (PatchFormat::JsonPatch, request));
            super::super::excerpt(
                &Redactor::of_request_compared(&policy, compared, &state, request.0, request.1, None),
                request.0,
                request.1,
            )
        };
        for compared in [ComparedValues::WithEvery, ComparedValues::WithReadable(&reader)] {
            assert!(!kept(compared, SECRET).contains("my-own-pin"), "{}", kept(compared, SECRET));
        }
        let guessed = kept(ComparedValues::WithReadable(&reader), "m");
        assert_eq!(
            guessed,
            kept(ComparedValues::WithReadable(&reader), SECRET),
            "an author learns nothing it cannot read"
        );
    }
}

#[test]
fn values_and_names_are_spared_apart() {
    let policy = policy("[nodes.n]\n[redaction]\nhide = [\"card.*\"]");
    let state = json!({"card": {"pin": SECRET}, "notes": {SECRET: {"deep": SECRET}}});
    let strict = Redactor::of(&policy, [&state], None);
    let at = |it: &str| Pointer::try_from(format!("/notes/{SECRET}{it}")).unwrap();
    let (name, value) = (StateText::name(at("")), StateText::value(at("/deep")));
    assert_eq!(strict.found_by_comparison(&state), BTreeSet::from([name.clone(), value.clone()]));
    for (spared, cut) in [
        (vec![], Some("/notes".to_owned())),
        (vec![&value], Some("/notes".to_owned())),
        (vec![&name], Some(format!("/notes/{SECRET}/deep"))),
        (vec![&name, &value], None),
    ] {
        let spared = spared.into_iter().cloned().collect();
        let hiding = Redactor::of_sides(&policy, &[ScannedState { state: &state, spared: &spared }], None);
        assert_eq!(hiding.hides(&at("/deep")).then(|| hiding.cut(&at("/deep")).to_string()), cut, "{spared:?}");
    }
}

#[test]
fn a_place_is_cut_before_a_name_with_a_hidden_value() {
    let policy = policy("[nodes.n]\n[redaction]\nhide = [\"card.*\"]");
    let hiding = Redactor::of(&policy, [&json!({"card": {"pin": SECRET}})], None);
    let at = Pointer::try_from(format!("/notes/{SECRET}/x")).unwrap();
    assert_eq!(hiding.cut(&at).to_string(), "/notes");
    let violation = Violation::new(crate::policy::RejectCode::WriteDenied, at.clone(), "no");
    let told = hiding.violations(vec![violation.clone(), violation]);
    assert_eq!(told.iter().map(|it| it.pointer.to_string()).collect::<Vec<_>>(), ["/notes"]);
    assert_eq!(policy.cut(&at), at, "an agent is told nothing by what others hide");
}
