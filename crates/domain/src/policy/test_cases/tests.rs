use serde_json::json;

use super::*;
use crate::policy::PolicySource;

const POLICY: &str = r#"
flow = "f"
protected = ["owner"]

[nodes.n]
reads = ["$"]
writes = ["owner", "amount", "late"]

[[rules]]
name = "too much"
when = "change.path == '/amount' && object.amount > 10"
then = "deny"
reason = "above ten"

[[rules]]
name = "late"
when = "change.path == '/late' && !('first' in thread.committed_nodes)"
then = "hold"
reason = "first comes first"

[[rules]]
name = "large"
when = "change.path == '/amount' && object.amount > 5"
then = "warn"
reason = "look twice"

[[approval.stages]]
groups = ["finance"]
"#;

fn case(members: Value) -> Value {
    let mut case = json!({"name": "a", "state": {}, "node": "n", "patch": {}, "expect": "commit"});
    case.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    case
}

fn agrees(members: Value) -> bool {
    let policy = Policy::compile(&PolicySource { text: POLICY.to_owned(), ..PolicySource::default() }).unwrap();
    let case = read_cases(&case(members).to_string()).unwrap().remove(0);
    case.expected.agrees(&case.judged(&policy, &StateLimits::default()))
}

fn refused(text: &str) -> (Option<usize>, String) {
    let error = read_cases(text).unwrap_err();
    (error.line, error.detail)
}

#[test]
fn what_is_expected_is_held_against_what_is_judged() {
    assert!(agrees(json!({"patch": {"amount": 1}})));
    assert!(!agrees(json!({"patch": {"amount": 1}, "expect": "hold"})));
    assert!(!agrees(json!({"patch": {"amount": 11}})));
    let late = json!({"patch": {"late": 1}, "committed_nodes": ["first"]});
    assert!(agrees(late.clone()));
    let first =
        json!({"patch": {"late": 1}, "committed_nodes": [], "expect": "hold", "reasons": ["first comes first"]});
    assert!(agrees(first));
    let unsupposed = json!({"patch": {"late": 1}, "expect": "reject", "codes": ["rule_error"], "rules": ["late"]});
    assert!(agrees(unsupposed));
    let format = json!({"format": "json-patch", "patch": [{"op": "add", "path": "/amount", "value": 3}]});
    assert!(agrees(format));
}

#[test]
fn a_set_that_is_given_is_compared_as_a_whole() {
    let both = |members: Value| {
        let mut case = json!({"patch": {"amount": 11, "is_admin": true}, "expect": "reject"});
        case.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        agrees(case)
    };
    assert!(both(json!({})));
    assert!(both(json!({"codes": ["write_not_allowed"], "pointers": ["/is_admin"], "rules": []})));
    for other in [json!([]), json!(["write_not_allowed", "rule_denied"]), json!(["rule_denied"])] {
        assert!(!both(json!({"codes": other})), "{other}");
    }
    assert!(!both(json!({"pointers": ["/is_admin", "/amount"]})));
    assert!(!both(json!({"rules": ["too much"]})));
    let warned = |warnings: Value| agrees(json!({"patch": {"amount": 6}, "warnings": warnings}));
    assert!(warned(json!(["large"])) && !warned(json!([])) && !warned(json!(["large", "late"])));
    let denied = json!({"patch": {"amount": 11}, "expect": "reject", "rules": ["too much"], "codes": ["rule_denied"]});
    assert!(agrees(denied));
    let held = |codes: Value| agrees(json!({"patch": {"owner": 1}, "expect": "hold", "codes": codes}));
    assert!(held(json!(["protected"])) && !held(json!([])) && !held(json!(["protected", "rule"])));
}

#[test]
fn reasons_of_an_earlier_release_still_agree() {
    let held = |text: &str| agrees(json!({"patch": {"owner": 1}, "expect": "hold", "reasons": [text]}));
    assert!(held("`owner` is protected and requires approval"));
    assert!(held("owner is protected: people decide about it"));
    assert!(!held("amount is protected: people decide about it"));
    let late = json!({"patch": {"late": 1}, "expect": "hold", "committed_nodes": [],
        "reasons": ["first is protected: people decide about it"]});
    assert!(!agrees(late), "the words of a rule are compared as they are");
}

#[test]
fn a_key_that_no_case_has_is_refused_by_name_and_line() {
    let good = case(json!({})).to_string();
    let text = format!("{good}\n\n{}", case(json!({"name": "b", "expects": "commit"})));
    assert_eq!(refused(&text), (Some(3), "a case has no key \"expects\"".to_owned()));
    let twice = good.replacen('{', "{\"node\": \"n\", ", 1);
    let (line, detail) = refused(&twice);
    assert_eq!(line, Some(1));
    assert!(detail.contains("two keys of one object are equal"), "{detail}");
}

#[test]
fn every_case_has_a_name_of_its_own_and_there_is_one() {
    let good = case(json!({})).to_string();
    assert_eq!(refused(&format!("{good}\n{good}")).0, Some(2));
    for nothing in ["", "\n \n"] {
        assert_eq!(refused(nothing), (None, "the file has no case".to_owned()));
    }
    let many = |count: usize| (0..count).map(|it| case(json!({"name": it.to_string()})).to_string() + "\n");
    assert_eq!(read_cases(&many(CASES_MAX).collect::<String>()).unwrap().len(), CASES_MAX);
    assert_eq!(refused(&many(CASES_MAX + 1).collect::<String>()).0, Some(CASES_MAX + 1));
}

#[test]
fn what_no_judgement_could_meet_is_refused() {
    for (members, says) in [
        (json!({"codes": ["schema"]}), "has no `codes`"),
        (json!({"pointers": ["/a"]}), "has no `pointers`"),
        (json!({"expect": "hold", "rules": ["r"]}), "has no `rules`"),
        (json!({"expect": "reject", "reasons": ["r"]}), "has no `reasons`"),
        (json!({"expect": "reject", "warnings": ["large"]}), "has no `warnings`"),
        (json!({"expect": "reject", "codes": ["protected"]}), "no code \"protected\""),
        (json!({"expect": "hold", "codes": ["schema"]}), "no code \"schema\""),
        (json!({"expect": "reject", "pointers": ["a.b"]}), "not a JSON Pointer"),
        (json!({"expect": "committed"}), "commit, hold or reject"),
        (json!({"expect": "reject", "codes": ["schema", "schema"]}), "each once"),
        (json!({"name": ""}), "one line"),
        (json!({"name": "a\nb"}), "one line"),
        (json!({"node": "no such\u{0}"}), "`node`"),
        (json!({"state": []}), "`state`"),
        (json!({"format": "diff"}), "`format`"),
        (json!({"usage": {"tokens": -1}}), "at \"/usage/tokens\""),
        (json!({"principal": {"id": "x"}}), "at \"/principal\""),
    ] {
        let (_, detail) = refused(&case(members.clone()).to_string());
        assert!(detail.contains(says), "{members}: {detail}");
    }
    for missing in ["name", "state", "node", "patch", "expect"] {
        let mut case = case(json!({}));
        case.as_object_mut().unwrap().remove(missing);
        assert!(refused(&case.to_string()).1.contains(&format!("`{missing}`")), "{missing}");
    }
}
