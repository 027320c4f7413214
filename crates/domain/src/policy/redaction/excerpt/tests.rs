use serde_json::json;

use super::*;
use crate::policy::Policy;
use crate::policy::tests::policy;

const POLICY: &str = r#"
[nodes.planner]
reads = ["payment", "memo", "items"]
writes = ["payment", "memo", "items"]

[redaction]
hide = ["payment.card.*", "items.*.secret"]
"#;

fn told(format: PatchFormat, request: &Value) -> String {
    excerpt(&Redactor::of_request(&policy(POLICY), &json!({}), format, request, None), format, request)
}

fn nothing_in(policy: &Policy, format: PatchFormat, request: &Value, tool: Option<&Tool>) -> bool {
    hides_nothing(&Redactor::of_request(policy, &json!({}), format, request, tool), format, request, tool)
}

#[test]
fn what_the_policy_hides_is_not_in_an_excerpt_of_any_form() {
    let secret = "4111-1111";
    let card = json!({"payment": {"amount": 5, "card": {"number": secret, "more": {"x": secret}}}});
    let expected = r#"{"payment":{"amount":5,"card":{"more":"[hidden]","number":"[hidden]"}}}"#;
    assert_eq!(told(PatchFormat::Merge, &card), expected);
    assert_eq!(told(PatchFormat::MergePatch, &card), expected);
    let operations = [
        json!([{"op": "replace", "path": "/payment", "value": card["payment"]}]),
        json!([{"op": "replace", "path": "", "value": card}]),
        json!([{"op": "add", "path": "/payment/card/number", "value": secret}]),
        json!([{"op": "add", "path": "/payment/card/number/4111-1111/deep", "value": 1}]),
        json!([{"op": "move", "path": "/memo", "from": "/payment/card/number/4111-1111"}]),
        json!([{"op": "add", "path": "/items/-", "value": {"secret": secret, "name": "a"}}]),
        json!([{"op": "add", "path": "no pointer", "value": secret}]),
        json!([{"op": "add", "value": secret}]),
        json!([{"op": "add", "path": "/memo", "value": 1, "other": secret}]),
        json!([secret]),
    ];
    for request in operations {
        let told = told(PatchFormat::JsonPatch, &request);
        assert!(told.contains("[hidden]") || told.contains("/payment/card/number"), "{told}");
        assert!(!told.contains(secret), "{told}");
    }
}

#[test]
fn an_excerpt_is_bounded_and_says_that_it_was_cut() {
    let whole = told(PatchFormat::Merge, &json!({"memo": "é".repeat(100)}));
    assert_eq!(whole, format!(r#"{{"memo":"{}"}}"#, "é".repeat(100)));
    let cut = told(PatchFormat::Merge, &json!({"memo": "é".repeat(10_000)}));
    assert_eq!(cut.chars().count(), EXCERPT_CHARS_MAX + 1);
    assert!(cut.ends_with("é…"), "what is cut is not cut silently");
}

#[test]
fn what_holds_anything_hidden_is_known_to() {
    let policy = policy("[nodes.n]\n[tools]\nhide = [\"card\"]\n[redaction]\nhide = [\"card\"]\ndetect = [\"email\"]");
    let nothing = |format, request: Value| nothing_in(&policy, format, &request, None);
    assert!(nothing(PatchFormat::Merge, json!({"a": {"b": [1, "x"]}})));
    assert!(!nothing(PatchFormat::Merge, json!({"card": 1})));
    assert!(!nothing(PatchFormat::MergePatch, json!({"a": ["it is eva@example.org"]})));
    assert!(!nothing(PatchFormat::Merge, json!({"a": {"eva@example.org": 1}})));
    let step = |path: &str, value: &str| json!([{"op": "add", "path": path, "value": value}]);
    assert!(nothing(PatchFormat::JsonPatch, step("/a", "x")));
    assert!(!nothing(PatchFormat::JsonPatch, step("/card/number", "x")));
    assert!(!nothing(PatchFormat::JsonPatch, step("/a", "eva@example.org")));
    let tool = |arguments: Value| Tool::read(&json!({"name": "t", "arguments": arguments})).unwrap();
    let with = |arguments| nothing_in(&policy, PatchFormat::Merge, &json!({}), Some(&tool(arguments)));
    assert!(with(json!({"a": 1})) && !with(json!({"card": 1})) && !with(json!({"a": "eva@example.org"})));
}
