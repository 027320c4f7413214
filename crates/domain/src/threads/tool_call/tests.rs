use serde_json::json;

use super::*;
use crate::keys::ThreadSecret;

#[test]
fn invalid_tool_is_refused_with_its_path() {
    let long = "x".repeat(ARGUMENTS_BYTES_MAX);
    let many = vec![0; LEAVES_MAX + 1];
    // One long key above many values would need gigabytes of pointers.
    let below = json!({"k".repeat(512 * 1024): vec![0; 100]});
    for (tool, place) in [
        (json!("search"), ""),
        (json!(null), ""),
        (json!({"arguments": {}}), "/name"),
        (json!({"name": "", "arguments": {}}), "/name"),
        (json!({"name": "a b", "arguments": {}}), "/name"),
        (json!({"name": "*", "arguments": {}}), "/name"),
        (json!({"name": 5, "arguments": {}}), "/name"),
        (json!({"name": "search"}), "/arguments"),
        (json!({"name": "search", "arguments": []}), "/arguments"),
        (json!({"name": "search", "arguments": "{}"}), "/arguments"),
        (json!({"name": "search", "arguments": null}), "/arguments"),
        (json!({"name": "search", "arguments": {"q": long}}), "/arguments"),
        (json!({"name": "search", "arguments": {"q": many}}), "/arguments"),
        (json!({"name": "search", "arguments": below}), "/arguments"),
        (json!({"name": "search", "arguments": {}, "args": {}}), "/args"),
    ] {
        let text = tool.to_string();
        assert_eq!(Tool::read(&tool).unwrap_err().pointer.as_str(), place, "{}", &text[..text.len().min(80)]);
    }
    let largest = "x".repeat(ARGUMENTS_BYTES_MAX - r#"{"q":""}"#.len());
    assert!(Tool::read(&json!({"name": "search", "arguments": {"q": largest}})).is_ok());
    assert!(Tool::read(&json!({"name": "mcp__crm.find:v2", "arguments": {"q": [1, {"a": null}]}})).is_ok());
}

#[test]
fn a_statement_commits_to_arguments_and_does_not_show_them() {
    let tool = |amount: u32| Tool::read(&json!({"name": "pay", "arguments": {"amount": amount}})).unwrap();
    let secret = ThreadSecret::from_bytes(&[7; 32]);
    let [one, other] = ["p1", "p2"].map(|it| ProposalId::try_from(it).unwrap());
    let stated = tool(5).stated(&secret, &one);
    assert_eq!(stated, tool(5).stated(&secret, &one));
    assert_ne!(stated, tool(6).stated(&secret, &one));
    assert_ne!(stated, tool(5).stated(&secret, &other), "who knows one call's salt knows no other's");
    assert_ne!(stated, tool(5).stated(&ThreadSecret::from_bytes(&[8; 32]), &one));
    assert_eq!(stated["name"], "pay");
    assert!(stated["arguments"].as_str().unwrap().starts_with("sha256:"), "{stated}");
}
