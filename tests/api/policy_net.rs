//! Tests the net against silent mistakes: paths that never match, and flows that lack reviewers or tokens.

use countersign_domain::identity::account::MachineRole;
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::owner_names::NewOwner;
use countersign_service::identity::revocation::SignInAccess;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway, spawn_gateway};

const SCHEMA: &str = r#"{"type": "object", "additionalProperties": false, "properties": {"refund": {"type": "integer"}, "note": {"type": "string"}}}"#;

fn body(protected: &str) -> Value {
    let policy = format!(
        "flow = \"refunds\"\nschema = \"s.json\"\nprotected = [\"{protected}\"]\n[nodes.agent]\nreads = [\"nte\"]\n\
         writes = [\"refund\"]\n[[approval.stages]]\ngroups = [\"reviewers\"]\nneed = 3\n"
    );
    json!({"policy": policy, "schemas": {"s.json": SCHEMA}})
}

async fn activate(g: &TestGateway, protected: &str) -> ApiResponse {
    g.post("/v1/flows/refunds/policies", &g.admin, body(protected)).await
}

fn codes(findings: &Value) -> Vec<&str> {
    findings.as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn misspelled_protected_path_is_not_activated() {
    let g = spawn_gateway().await;
    let refused = activate(&g, "refnd").await;
    assert_eq!((refused.status, refused.code()), (422, "policy_refused"));
    let told = refused.body.to_string();
    assert!(told.contains("never_matches") && told.contains("the nearest is `refund`"), "{told}");
    activate(&g, "refund").await.expect(200);
}

#[tokio::test]
async fn activation_returns_what_the_flow_lacks() {
    let g = spawn_gateway().await;
    let active = activate(&g, "refund").await.expect(200);
    assert_eq!(active["nodes"], json!(["agent"]));
    assert_eq!(active["stages"], json!([{"groups": ["reviewers"], "need": 3}]));
    assert_eq!(codes(&active["warnings"]), ["never_matches"]);
    assert!(active["warnings"][0]["detail"].as_str().unwrap().ends_with("the nearest is `note`"), "{active}");
    // The test gateway has two reviewers of reviewers, and no token for this flow.
    assert_eq!(codes(&active["findings"]), ["stage_cannot_be_met", "node_without_token"]);
    let detail = active["findings"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("stage 1 needs 3 reviewers of reviewers, and 2 can vote"), "{detail}");
}

#[tokio::test]
async fn findings_of_a_flow_follow_its_accounts_and_tokens() {
    let g = spawn_gateway().await;
    let flow = "refunds".try_into().unwrap();
    let found = async || {
        let all = g.service.policy_changes.findings_of(&flow).await.unwrap();
        all.into_iter().map(|it| it.code.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(found().await, ["flow_without_policy"]);
    let text =
        "flow = \"refunds\"\n[nodes.agent]\nwrites = [\"refund\"]\n[[approval.stages]]\ngroups = [\"reviewers\"]\n";
    g.post("/v1/flows/refunds/policies", &g.admin, json!({"policy": text})).await.expect(200);
    assert_eq!(found().await, ["node_without_token"]);
    let token = |owner: &str, node: &str| NewToken {
        name: "bot".to_owned(),
        role: MachineRole::Agent,
        owner: NewOwner::Existing(owner.to_owned()),
        flow: Some("refunds".try_into().unwrap()),
        nodes: [node.try_into().unwrap()].into(),
    };
    let (typo, _) = g.service.identity.add_token(&token("bob", "agnet")).await.unwrap();
    assert_eq!(found().await, ["unknown_node", "node_without_token"]);
    g.service.identity.revoke_token(&typo.id).await.unwrap();
    g.service.identity.add_token(&token("reviewers", "agent")).await.unwrap();
    assert_eq!(found().await, ["owner_excludes_everyone"]);
    for name in ["alice", "bob"] {
        g.service.identity.set_admission(name, SignInAccess::Barred).await.unwrap();
    }
    assert_eq!(found().await, ["stage_cannot_be_met"]);
}
