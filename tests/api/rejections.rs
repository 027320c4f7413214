//! Tests the list of rejected attempts. It is for auditors, and never shows more than they may read.

use serde_json::{Value, json};

use crate::gateway::spawn_gateway;

#[tokio::test]
async fn rejections_are_listed_latest_first_and_in_pages() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    for text in ["a", "b", "c"] {
        let patch = json!({"is_admin": text});
        g.propose(&thread["thread"], &thread["transition"], (&g.parser, "input_parser"), patch).await.expect(422);
    }
    let whole = g.get("/v1/rejections", &g.auditor).await.expect(200);
    let rows = whole["rejections"].as_array().unwrap();
    assert_eq!((rows.len(), &whole["next_page_token"]), (3, &Value::Null));
    let first = &rows[0];
    assert_eq!((&first["thread"], &first["flow"]), (&thread["thread"], &json!("payments")));
    assert_eq!((&first["node"], &first["excerpt"]), (&json!("input_parser"), &json!("{\"is_admin\":\"c\"}")));
    assert_eq!(first["errors"][0]["code"], "write_not_allowed");
    assert!(first["patch_digest"].as_str().unwrap().starts_with("sha256:") && first["principal"].is_string());
    let mut paged: Vec<Value> = Vec::new();
    let mut path = "/v1/rejections?page_size=2".to_owned();
    loop {
        let page = g.get(&path, &g.auditor).await.expect(200);
        paged.extend(page["rejections"].as_array().unwrap().clone());
        let Some(token) = page["next_page_token"].as_str() else { break };
        path = format!("/v1/rejections?page_size=2&page_token={token}");
    }
    assert_eq!(&paged, rows);
    let wrong = g.get("/v1/rejections?page_token=x", &g.auditor).await;
    assert_eq!((wrong.status, wrong.code()), (400, "malformed"));
}

#[tokio::test]
async fn redacted_value_is_redacted_in_a_rejected_attempt_too() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let patch = json!({"payment": {"card": "4111111111111111"}, "is_admin": true});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(422);
    let listed = g.get("/v1/rejections", &g.auditor).await.expect(200);
    assert_eq!(listed["rejections"][0]["excerpt"], "{\"is_admin\":true,\"payment\":{\"card\":\"[hidden]\"}}");
    assert!(!listed.to_string().contains("4111111111111111"));
}
