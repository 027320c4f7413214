//! No answer is stored by a proxy or a browser unless its handler allows it.

use countersign_domain::reviews::VoteVerdict;
use serde_json::json;

use crate::gateway::{TestGateway, spawn_gateway};

async fn stored(g: &TestGateway, path: &str, token: &str) -> (u16, Option<String>) {
    let answer = g.http.get(format!("{}{path}", g.url)).bearer_auth(token).send().await.unwrap();
    let header = answer.headers().get("cache-control").map(|it| it.to_str().unwrap().to_owned());
    (answer.status().as_u16(), header)
}

#[tokio::test]
async fn answers_with_state_are_not_stored() {
    let g = spawn_gateway().await;
    let made = g.thread().await;
    let held = g.held(&made).await;
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    let (thread, digest) = (made["thread"].as_str().unwrap(), held["transition"].as_str().unwrap());
    let asked = [
        (format!("/v1/threads/{thread}"), &g.host),
        (format!("/v1/threads/{thread}/state?node=planner"), &g.planner),
        (format!("/v1/threads/{thread}/chain"), &g.auditor),
        (format!("/v1/threads/{thread}/envelope?node=planner"), &g.planner),
        (format!("/v1/transitions/{digest}"), &g.planner),
        (format!("/v1/transitions/{digest}/decision"), &g.planner),
        ("/v1/events".to_owned(), &g.host),
        ("/v1/rejections".to_owned(), &g.auditor),
        ("/v1/endpoints".to_owned(), &g.admin),
        ("/v1/passkeys".to_owned(), &g.admin),
        ("/metrics".to_owned(), &g.monitor),
    ];
    for (path, token) in asked {
        assert_eq!(stored(&g, &path, token).await, (200, Some("no-store".to_owned())), "{path}");
    }
    let posted = g.http.post(format!("{}/v1/threads", g.url)).bearer_auth(&g.host);
    let posted = posted
        .json(&json!({"flow": "payments", "state": {"requested_action": "none", "target_user_id": 17}}))
        .send()
        .await
        .unwrap();
    assert_eq!((posted.status().as_u16(), &posted.headers()["cache-control"]), (201, &"no-store".parse().unwrap()));
}

#[tokio::test]
async fn published_keys_and_assets_may_be_stored() {
    let g = spawn_gateway().await;
    assert_eq!(stored(&g, "/.well-known/jwks.json", "").await, (200, Some("max-age=60".to_owned())));
}
