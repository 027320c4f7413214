//! Tests that values which a node may not return never enter the state and are never written.

use serde_json::{Value, json};

use super::{AttackScenario, approve};
use crate::gateway::{ApiResponse, POLICY};

/// A proposal that must not be committed.
struct RejectedAttempt {
    name: &'static str,
    node: &'static str,
    /// The patch as text, since a JSON value cannot have duplicate keys.
    patch: String,
    format: Option<&'static str>,
    status: u16,
    code: &'static str,
    /// The code of the first of `errors`, if the policy rejects the proposal.
    error: Option<&'static str>,
}

fn attempt(name: &'static str, node: &'static str, patch: impl Into<String>, code: &'static str) -> RejectedAttempt {
    RejectedAttempt { name, node, patch: patch.into(), format: None, status: 422, code: "rejected", error: Some(code) }
}

fn in_format(format: &'static str, attempt: RejectedAttempt) -> RejectedAttempt {
    RejectedAttempt { format: Some(format), ..attempt }
}

fn unread(name: &'static str, patch: impl Into<String>, status: u16, code: &'static str) -> RejectedAttempt {
    RejectedAttempt { name, node: "planner", patch: patch.into(), format: None, status, code, error: None }
}

fn attempts() -> Vec<RejectedAttempt> {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70));
    let long = "x".repeat(1024 * 1024);
    vec![
        attempt("an unknown key", "input_parser", r#"{"is_admin": true}"#, "write_not_allowed"),
        attempt(
            "an unknown key beside a good one",
            "input_parser",
            r#"{"raw_text": "x", "is_admin": true}"#,
            "write_not_allowed",
        ),
        attempt("a protected key of another node", "input_parser", r#"{"target_user_id": 42}"#, "write_not_allowed"),
        attempt(
            "protected permissions",
            "planner",
            r#"{"execution_permissions": {"write_scope": "tenant_admin"}}"#,
            "write_not_allowed",
        ),
        attempt("the parent of a protected key", "planner", r#"{"payment": {"amount": 10}}"#, "write_not_allowed"),
        attempt("a wrong type", "planner", r#"{"target_user_id": "42"}"#, "schema"),
        attempt("null", "planner", r#"{"target_user_id": null}"#, "schema"),
        attempt("a value out of range", "planner", r#"{"target_user_id": 0}"#, "schema"),
        attempt("a word that is none", "planner", r#"{"requested_action": "drop_table"}"#, "schema"),
        attempt(
            "a text that is too long",
            "input_parser",
            format!(r#"{{"raw_text": "{}"}}"#, "x".repeat(20_001)),
            "schema",
        ),
        attempt("a patch that is no object", "planner", "[1]", "patch_failed"),
        attempt("a prototype", "planner", r#"{"__proto__": {"is_admin": true}}"#, "write_not_allowed"),
        attempt("a key that only looks the same", "planner", "{\"t\u{430}rget_user_id\": 42}", "write_not_allowed"),
        in_format("merge-patch", attempt("a deletion", "planner", r#"{"target_user_id": null}"#, "schema")),
        in_format(
            "merge-patch",
            attempt("another's deletion", "input_parser", r#"{"target_user_id": null}"#, "read_not_allowed"),
        ),
        in_format(
            "json-patch",
            attempt(
                "a copy of what is not read",
                "planner",
                r#"[{"op":"copy","from":"/payment/card","path":"/requested_action"}]"#,
                "read_not_allowed",
            ),
        ),
        in_format(
            "json-patch",
            attempt(
                "a test of what is not read",
                "planner",
                r#"[{"op":"test","path":"/payment/card","value":"4111111111111111"}]"#,
                "read_not_allowed",
            ),
        ),
        in_format(
            "json-patch",
            attempt(
                "a move of what is not read",
                "input_parser",
                r#"[{"op":"move","from":"/target_user_id","path":"/raw_text"}]"#,
                "read_not_allowed",
            ),
        ),
        in_format(
            "json-patch",
            attempt(
                "the whole state",
                "planner",
                r#"[{"op":"replace","path":"","value":{"target_user_id":42}}]"#,
                "read_not_allowed",
            ),
        ),
        unread("a key twice", r#"{"requested_action": "none", "requested_action": "refund"}"#, 400, "duplicate_key"),
        unread("a key twice, escaped", r#"{"target_user_id": 17, "target_user_i\u0064": 42}"#, 400, "duplicate_key"),
        unread("keys that are equal after NFC", "{\"\u{e9}\": 1, \"e\u{301}\": 2}", 400, "duplicate_key"),
        unread("a state that is too deep", deep, 400, "too_deep"),
        unread("a number that no double holds", r#"{"target_user_id": 12345678901234567890}"#, 400, "number_not_exact"),
        unread("not a number", r#"{"target_user_id": NaN}"#, 400, "not_a_number"),
        unread("half a surrogate", r#"{"requested_action": "\ud800"}"#, 400, "encoding"),
        unread("something after the value", r#"{}} "#, 400, "syntax"),
        RejectedAttempt {
            error: None,
            ..unread("a megabyte", format!(r#"{{"requested_action": "{long}"}}"#), 413, "too_large")
        },
    ]
}

async fn send(scene: &AttackScenario, attempt: &RejectedAttempt) -> ApiResponse {
    let (thread, parent) = (&scene.case.thread["thread"], &scene.case.thread["transition"]);
    let token = if attempt.node == "planner" { &scene.g.planner } else { &scene.g.parser };
    let format = attempt.format.map(|it| format!(r#","format":"{it}""#)).unwrap_or_default();
    let body = format!(r#"{{"node":"{}","parent":{parent},"patch":{}{format}}}"#, attempt.node, attempt.patch);
    let url = format!("{}/v1/threads/{}/transitions", scene.g.url, thread.as_str().unwrap());
    let request = scene.g.http.post(url).bearer_auth(token).header("content-type", "application/json");
    ApiResponse::of(request.body(body).send().await.unwrap()).await
}

/// Returns the write requests for the values that the attempts proposed.
fn asks(thread: &Value, transition: &Value) -> Vec<Value> {
    let ask =
        |expect: Value| json!({"thread": thread, "transition": transition, "write_id": "spoiled", "expect": expect});
    vec![
        ask(json!({"/target_user_id": 42})),
        ask(json!({"/requested_action": "drop_table"})),
        ask(json!({"/is_admin": true})),
    ]
}

#[tokio::test]
async fn forbidden_values_of_a_node_are_not_committed_or_written() {
    let mut scene = AttackScenario::new(POLICY).await;
    let twin = scene.case.clone();
    // The thread under attack is a fresh one; the approved one is the twin.
    scene.case.thread = scene.g.thread().await;
    let id = scene.case.thread["thread"].as_str().unwrap().to_owned();
    for attempt in attempts() {
        let answer = send(&scene, &attempt).await;
        assert_eq!(
            (answer.status, answer.code()),
            (attempt.status, attempt.code),
            "{}: {:#}",
            attempt.name,
            answer.body
        );
        if let Some(error) = attempt.error {
            assert_eq!(answer.body["errors"][0]["code"], error, "{}: {:#}", attempt.name, answer.body);
        }
        let thread = scene.g.get(&format!("/v1/threads/{id}"), &scene.g.host).await.expect(200);
        assert_eq!((&thread["version"], &thread["status"]), (&json!(0), &json!("open")), "{}", attempt.name);
        for ask in asks(&thread["thread"], &thread["transition"]) {
            assert_eq!(scene.write(&ask).await.code(), "expectation_failed", "{}", attempt.name);
        }
        assert_eq!(scene.rows_all(), 0, "{}", attempt.name);
    }
    let mut ask = twin.ask("twin");
    ask["expect"] = json!({"/target_user_id": 42});
    scene.write(&ask).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

/// The page shows the signed text, or says that it cannot. A reviewer could not decide about an empty box.
#[tokio::test]
async fn blank_rationale_is_malformed() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let mut body = json!({"node": "planner", "parent": thread["transition"], "patch": {"target_user_id": 42}});
    for nothing in ["", " ", "\n\t\u{a0}"] {
        body["rationale"] = json!(nothing);
        let refused = scene.g.post(&path, &scene.g.planner, body.clone()).await;
        assert_eq!((refused.status, refused.code()), (400, "malformed"), "{nothing:?}");
        assert_eq!(refused.body["errors"][0]["pointer"], "/rationale");
    }
    body["rationale"] = json!("-");
    scene.g.post(&path, &scene.g.planner, body).await.expect(202);
}

#[tokio::test]
async fn proposal_on_a_stale_parent_is_refused() {
    let scene = AttackScenario::new(POLICY).await;
    let stale = &scene.case.thread["transition"];
    let node = (scene.g.parser.as_str(), "input_parser");
    let answers = [
        scene.g.propose(scene.case.id(), stale, node, json!({"raw_text": "x"})).await,
        scene.g.propose(scene.case.id(), stale, (&scene.g.planner, "planner"), json!({"target_user_id": 99})).await,
        scene
            .agent_path("transitions", json!({"node": "planner", "parent": stale, "patch": {}, "reaffirm": true}))
            .await,
        scene.agent_path("rollbacks", json!({"node": "planner", "parent": stale, "to_version": 0})).await,
    ];
    for answer in answers {
        assert_eq!((answer.status, answer.code()), (409, "head_moved"), "{}", answer.body);
        assert_eq!(answer.body["head"]["transition"], scene.case.held["transition"]);
    }
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn thread_with_a_pending_review_accepts_no_proposal_and_no_write() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    let node = (scene.g.parser.as_str(), "input_parser");
    let other = scene.g.propose(&thread["thread"], &thread["transition"], node, json!({"raw_text": "x"})).await;
    assert_eq!((other.status, other.code()), (409, "thread_held"));
    let ask = json!({"thread": thread["thread"], "transition": held["transition"], "write_id": "w1"});
    assert_eq!(scene.write(&ask).await.code(), "not_head");
    assert_eq!(scene.rows_all(), 0);
    let decision = scene.g.approved(&held).await;
    let honest = json!({"thread": thread["thread"], "transition": held["transition"], "receipt": decision["receipt"], "write_id": "w2"});
    scene.write(&honest).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn untrusted_version_0_with_protected_values_requires_approval() {
    let scene = AttackScenario::new(POLICY).await;
    let untrusting = super::policy_with("trust_initial = true", "trust_initial = false");
    scene.activate(&untrusting, json!([])).await;
    let thread = scene.g.thread().await;
    let ask = json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": "w1"});
    let refused = scene.write(&ask).await;
    assert_eq!((refused.status, refused.code()), (403, "receipt_missing"));
    assert_eq!(scene.rows_all(), 0);
    let twin = approve(&scene.g).await;
    scene.write(&twin.ask("w2")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn token_does_not_propose_for_another_node_or_flow() {
    let scene = AttackScenario::new(POLICY).await;
    let (id, head) = (scene.case.id(), &scene.case.held["transition"]);
    let as_other = scene.g.propose(id, head, (&scene.g.parser, "planner"), json!({"target_user_id": 99})).await;
    assert_eq!((as_other.status, as_other.code()), (403, "forbidden"));
    for role in [&scene.g.host, &scene.g.writer, &scene.g.admin, &scene.g.auditor] {
        let answer = scene.g.propose(id, head, (role, "planner"), json!({"target_user_id": 99})).await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    }
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

/// A halt rejects proposals. The head from before the halt is written once afterwards.
#[tokio::test]
async fn halted_flow_accepts_no_proposal() {
    let scene = AttackScenario::new(POLICY).await;
    let head = scene.case.held["transition"].clone();
    let node = (scene.g.parser.as_str(), "input_parser");
    let propose = async |text: &str| scene.g.propose(scene.case.id(), &head, node, json!({"raw_text": text})).await;
    for scope in ["payments", "all"] {
        scene.halt(scope, true, false).await;
        let answer = propose(scope).await;
        assert_eq!((answer.status, answer.code()), (409, "halted"));
        let create = scene
            .g
            .post(
                "/v1/threads",
                &scene.g.host,
                json!({"flow": "payments", "state": {"requested_action": "none", "target_user_id": 1}}),
            )
            .await;
        assert_eq!((create.status, create.code()), (409, "halted"));
        scene.halt(scope, false, false).await;
    }
    let close = |what: &str| format!("/v1/threads/{}/{what}", scene.case.id().as_str().unwrap());
    scene.g.post(&close("closing"), &scene.g.admin, json!({"reason": "x"})).await.expect(200);
    let answer = propose("closed").await;
    assert_eq!((answer.status, answer.code()), (409, "closed"));
    scene.g.post(&close("reopening"), &scene.g.admin, json!({"reason": "x"})).await.expect(200);
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}
