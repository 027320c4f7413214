//! Tests recorded proposals that another policy judges: exactly as they were made, and without effect. On both
//! databases.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, POLICY, SCHEMA, TestGateway, source, spawn_gateway};
use crate::rules::ApiScenario;

const CALL: &str = "/v1/flows/payments/replays";

on_both! {
    replay_by_the_same_policy_has_no_differences(super::POLICY),
    proposals_are_replayed_on_their_own_head(super::POLICY),
    replay_counts_earlier_usage_and_judges_tool_calls(super::POLICY),
    pages_cover_the_whole_replay(super::POLICY),
    request_that_was_not_stored_is_unknown(super::policy_with("trust_initial = true\n", "trust_initial = true\non_violation = \"retry_once\"\n")),
    a_rollback_and_a_reaffirmation_are_judged_again(super::POLICY),
    observed_change_would_be_held(super::policy_with("trust_initial = true\n", "trust_initial = true\nmode = \"observe\"\n")),
    restatement_by_the_gateway_is_no_proposal(super::POLICY),
    replay_shows_no_redacted_value_and_changes_nothing(super::POLICY),
}

async fn sends(g: &TestGateway, thread: &Value, body: Value) -> ApiResponse {
    let token = if body["node"] == "input_parser" { &g.parser } else { &g.planner };
    g.post(&format!("/v1/threads/{}/transitions", thread.as_str().unwrap()), token, body).await
}

/// Proposes a node's patch on a head. Returns the response.
async fn asks(g: &TestGateway, thread: &Value, parent: &Value, node: &str, patch: Value) -> Value {
    sends(g, thread, json!({"node": node, "parent": parent, "patch": patch})).await.body
}

/// Makes two commits, a rejection and an approved review in one thread.
async fn story(g: &TestGateway) -> Value {
    let thread = g.thread().await;
    let id = &thread["thread"];
    let parsed = asks(g, id, &thread["transition"], "input_parser", json!({"raw_text": "pay"})).await;
    let planned = asks(g, id, &parsed["transition"], "planner", json!({"requested_action": "refund"})).await;
    let head = &planned["transition"];
    asks(g, id, head, "planner", json!({"is_admin": true})).await;
    let held = asks(g, id, head, "planner", json!({"target_user_id": 42})).await;
    g.approved(&held).await;
    id.clone()
}

async fn replayed(g: &TestGateway, policy: &str, more: Value) -> Value {
    let mut ask = json!({"policy": policy, "schemas": {"payments.schema.json": SCHEMA}});
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    g.post(CALL, &g.auditor, ask).await.expect(200)
}

async fn rows(g: &TestGateway, policy: &str) -> Vec<Value> {
    let answer = replayed(g, policy, json!({"limit": 200})).await;
    assert_eq!(answer["next"], Value::Null);
    answer["proposals"].as_array().unwrap().clone()
}

/// Returns the comparison, the actual and the replayed outcome.
fn outcomes(rows: &[Value]) -> Vec<[String; 3]> {
    let of = |it: &Value| {
        let three = [&it["comparison"], &it["was"]["outcome"], &it["would_be"]["outcome"]];
        three.map(|it| it.as_str().unwrap_or_default().to_owned())
    };
    rows.iter().map(of).collect()
}

async fn replay_by_the_same_policy_has_no_differences(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = story(g).await;
    let rows = rows(g, POLICY).await;
    assert_eq!(
        outcomes(&rows),
        [
            ["same", "commit", "commit"],
            ["same", "commit", "commit"],
            ["same", "reject", "reject"],
            ["same", "hold", "hold"]
        ]
    );
    let versions: Vec<_> = rows.iter().map(|it| it["on_version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [0, 1, 2, 2]);
    assert!(rows.iter().all(|it| it["thread"] == thread && it["kind"] == "propose"));
    assert_eq!((&rows[2]["transition"], &rows[3]["was"]["codes"]), (&Value::Null, &json!(["protected"])));
    scene.passes_an_audit().await;
}

async fn proposals_are_replayed_on_their_own_head(scene: ApiScenario) {
    let g = &scene.gateway;
    story(g).await;
    let rule = |when: &str| {
        let rule = format!("[[rules]]\nname = \"r\"\nwhen = \"\"\"{when}\"\"\"\nthen = \"deny\"\nreason = \"no\"\n");
        policy_with("[approval]\n", &format!("{rule}\n[approval]\n"))
    };
    for (when, denied) in [
        ("'planner' in thread.committed_nodes", [false, false, true, true]),
        ("'input_parser' in thread.committed_nodes", [false, true, true, true]),
        ("principal.owner == 'platform' && node == 'planner'", [false, true, true, true]),
        ("oldObject.requested_action == 'none'", [true, true, false, false]),
        ("oldObject.target_user_id == 42", [false, false, false, false]),
    ] {
        let rows = rows(g, &rule(when)).await;
        let found: Vec<_> = rows.iter().map(|it| it["would_be"]["codes"].to_string().contains("rule_denied")).collect();
        // A rule is not evaluated for a request that may not name its paths.
        let expected = [denied[0], denied[1], false, denied[3]];
        assert_eq!(found, expected, "{when}");
        for (row, denied) in rows.iter().zip(expected) {
            assert_eq!(row["comparison"], if denied { "differs" } else { "same" }, "{when}: {row}");
        }
    }
    let rows = rows(g, &rule("object.requested_action == 'refund'")).await;
    let would_be = json!({
        "outcome": "reject", "codes": ["rule_denied"], "reasons": [], "warnings": [],
        "errors": [{"code": "rule_denied", "pointer": "", "detail": "no", "rule": "r"}],
    });
    assert_eq!(rows[1]["would_be"], would_be);
}

async fn replay_counts_earlier_usage_and_judges_tool_calls(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, mut head) = (thread["thread"].clone(), thread["transition"].clone());
    for action in ["refund", "none", "refund"] {
        let patch = json!({"requested_action": action});
        let body = json!({"node": "planner", "parent": head, "patch": patch, "usage": {"tokens": 10}});
        head = sends(g, &id, body).await.expect(201)["transition"].clone();
    }
    let tool = json!({"name": "crm.find", "arguments": {"q": "x"}});
    let body = json!({"node": "planner", "parent": head, "patch": {}, "tool": tool, "usage": {"tokens": 5}});
    sends(g, &id, body).await.expect(422);
    let bounded = |tokens: u64| {
        let text = format!("[tools]\nallow = [\"crm.*\"]\n[budgets.thread]\ntokens = {tokens}\n[approval]\n");
        policy_with("[approval]\n", &text)
    };
    let outcomes_of = async |tokens: u64| outcomes(&rows(g, &bounded(tokens)).await);
    assert_eq!(outcomes_of(35).await[3], ["differs", "reject", "commit"], "the tool was kept, and would be allowed");
    let over = outcomes_of(25).await;
    assert_eq!(over[1..3], [["same", "commit", "commit"], ["differs", "commit", "reject"]]);
    assert_eq!(outcomes_of(34).await[3][2], "reject", "what a rejected request took is kept with it");
    scene.passes_an_audit().await;
}

async fn pages_cover_the_whole_replay(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..3 {
        story(g).await;
    }
    let late = policy_with(
        "[approval]\n",
        "[[rules]]\nwhen = \"'planner' in thread.committed_nodes\"\nthen = \"deny\"\nreason = \"no\"\n[approval]\n",
    );
    let whole = rows(g, &late).await;
    assert_eq!(whole.len(), 12);
    for limit in [1, 3, 4, 5] {
        let (mut paged, mut after) = (Vec::new(), Value::Null);
        loop {
            let page = replayed(g, &late, json!({"limit": limit, "after": after})).await;
            let rows = page["proposals"].as_array().unwrap();
            assert!(rows.len() <= limit);
            paged.extend(rows.clone());
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        assert_eq!(paged, whole, "{limit}");
    }
    for wrong in ["", "x", "1", "1.", "-1.t"] {
        let refused = g.post(CALL, &g.admin, json!({"policy": POLICY, "after": wrong})).await;
        assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (400, &json!("/after")), "{wrong}");
    }
    let ask = json!({"policy": POLICY, "schemas": {"payments.schema.json": SCHEMA}, "after": "1.nowhere"});
    assert_eq!(g.post(CALL, &g.admin, ask).await.status, 404);
}

async fn request_that_was_not_stored_is_unknown(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    asks(g, id, head, "planner", json!({"long": "x".repeat(40_000)})).await;
    asks(g, id, head, "planner", json!({"is_admin": true})).await;
    asks(g, id, head, "planner", json!({"requested_action": "refund"})).await;
    let rows = rows(g, POLICY).await;
    let why: Vec<_> = rows.iter().map(|it| it["why"]["code"].as_str()).collect();
    assert_eq!(why, [Some("not_kept"), None, Some("not_judged")]);
    assert_eq!(rows[1]["comparison"], "same", "that it was the last try says nothing of the request");
    assert_eq!(rows[0]["would_be"], Value::Null);
    scene.passes_an_audit().await;
}

async fn a_rollback_and_a_reaffirmation_are_judged_again(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let id = &thread["thread"];
    let planned = asks(g, id, &thread["transition"], "planner", json!({"requested_action": "refund"})).await;
    let path = format!("/v1/threads/{}/rollbacks", id.as_str().unwrap());
    let back = json!({"node": "planner", "parent": planned["transition"], "to_version": 0});
    let held = g.post(&path, &g.planner, back).await.expect(202);
    g.vote(&g.alice, &held, countersign_domain::reviews::VoteVerdict::Deny).await.unwrap();
    let again = json!({"node": "planner", "parent": planned["transition"], "patch": {}, "reaffirm": true});
    sends(g, id, again).await.expect(202);
    let candidate = policy_with("rollback = true\n", "");
    let rows = rows(g, &candidate).await;
    assert_eq!(
        outcomes(&rows),
        [["same", "commit", "commit"], ["differs", "hold", "reject"], ["same", "hold", "hold"]]
    );
    let kinds: Vec<_> = rows.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["propose", "rollback", "reaffirm"]);
    let ruled = policy_with(
        "[approval]\n",
        "[[rules]]\nwhen = \"change.path == '/requested_action' && change.after == 'none'\"\nthen = \"deny\"\nreason = \"no\"\n[approval]\n",
    );
    let rows = self::rows(g, &ruled).await;
    assert_eq!(
        rows[1]["would_be"]["codes"],
        json!(["rule_denied"]),
        "the state it asks for again is that of version 0"
    );
}

async fn observed_change_would_be_held(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    asks(g, &thread["thread"], &thread["transition"], "planner", patch).await;
    assert_eq!(outcomes(&rows(g, POLICY).await), [["differs", "observe", "hold"]]);
    let observing = policy_with("trust_initial = true\n", "trust_initial = true\nmode = \"observe\"\n");
    assert_eq!(outcomes(&rows(g, &observing).await), [["same", "observe", "observe"]]);
}

async fn restatement_by_the_gateway_is_no_proposal(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let two = policy_with("need = 1", "need = 2");
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(&two), BTreeSet::new())
        .await
        .unwrap();
    countersign::worker::rejudge::run_once(&g.service).await.unwrap();
    let told = g.decision(&held).await.expect(200);
    assert!(told["superseded_by"].is_string(), "{told}");
    let rows = rows(g, &two).await;
    assert_eq!(outcomes(&rows), [["same", "hold", "hold"]]);
    assert_eq!(rows[0]["transition"], held["transition"]);
}

async fn replay_shows_no_redacted_value_and_changes_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let patch = json!({"payment": {"card": {"4999-secret": "4999888877776666"}}, "is_admin": true});
    asks(g, id, head, "planner", patch.clone()).await;
    // The same attempt without redaction is stored. The values are redacted again before the replay.
    let open = policy_with("hide = [\"payment.card\"]", "hide = []");
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(&open), BTreeSet::new())
        .await
        .unwrap();
    sends(g, id, json!({"node": "planner", "parent": head, "patch": patch, "attempt": 2})).await;
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(POLICY), BTreeSet::new())
        .await
        .unwrap();
    let before = g.get("/v1/events?limit=500", &g.auditor).await.expect(200);
    for candidate in [&open, POLICY] {
        let rows = rows(g, candidate).await;
        assert_eq!(rows[0]["why"]["code"], "not_kept", "nothing hidden is kept to be judged again");
        let errors = rows[1]["would_be"]["errors"].as_array().unwrap();
        let places: BTreeSet<_> = errors.iter().map(|it| it["pointer"].as_str().unwrap()).collect();
        assert_eq!(Vec::from_iter(places), ["/is_admin", "/payment/card"]);
        let told = Value::from(rows).to_string();
        for hidden in ["4999-secret", "49998888", "4111111111111111"] {
            assert!(!told.contains(hidden), "{told}");
        }
    }
    assert_eq!(g.get("/v1/events?limit=500", &g.auditor).await.expect(200), before);
    assert!(!before.to_string().contains("49998888"), "{before}");
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn another_flows_policy_and_an_unsound_one_are_refused() {
    let g = spawn_gateway().await;
    let ask = |policy: &str| json!({"policy": policy});
    let other = g.post(CALL, &g.admin, ask("flow = \"refunds\"\n")).await;
    assert_eq!((other.status, other.code()), (400, "malformed"));
    let unsound = g.post(CALL, &g.admin, ask("flow = 1")).await;
    assert_eq!((unsound.status, unsound.code()), (422, "policy_refused"));
    let gone = g.post("/v1/flows/nowhere/replays", &g.admin, ask("flow = \"nowhere\"\n")).await;
    assert_eq!((gone.status, gone.code()), (404, "not_found"));
}

/// Runs the command line beside the running gateway.
fn line(g: &TestGateway, policy: &str, rest: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, policy).unwrap();
    std::fs::write(folder.path().join("payments.schema.json"), SCHEMA).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("--data").arg(g.folder.path()).args(["policy", "replay"]).arg(&file).args(rest);
    let ran = command.output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
    (ran.status.code(), said)
}

#[tokio::test]
async fn the_command_line_lists_what_would_change_beside_a_running_gateway() {
    let g = spawn_gateway().await;
    let thread = story(&g).await;
    let same = line(&g, POLICY, &[]);
    assert_eq!(same, (Some(0), "4 the same, 0 would differ, 0 unknown\n".to_owned()));
    let closed = policy_with("writes = [\"raw_text\"]\n", "writes = []\n");
    let (code, said) = line(&g, &closed, &[]);
    let begins = format!("differs {} version 0 input_parser sha256:", thread.as_str().unwrap());
    assert!(said.starts_with(&begins), "{said}");
    let (first, last) = said.trim_end().split_once('\n').unwrap();
    assert!(first.contains(": commit → reject: write_not_allowed at \"/raw_text\": "), "{first}");
    assert_eq!((code, last), (Some(1), "3 the same, 1 would differ, 0 unknown"));
    let (_, said) = line(&g, &closed, &["--limit", "2"]);
    let after = said.trim_end().rsplit_once("--after ").unwrap().1.to_owned();
    let (code, said) = line(&g, &closed, &["--after", &after, "--json"]);
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &told["same"], &told["differs"], &told["next"]), (Some(0), &json!(2), &json!(0), &Value::Null));
    let long = json!({"long": "x".repeat(40_000)});
    let other = g.thread().await;
    asks(&g, &other["thread"], &other["transition"], "planner", long).await;
    let (code, said) = line(&g, POLICY, &[]);
    assert!(code == Some(2) && said.contains("unknown: the rejected request is not stored"), "{said}");
    let (code, said) = line(&g, "flow = 1", &[]);
    assert!(code == Some(2) && said.contains("wrong_type"), "{said}");
    let (code, said) = line(&g, POLICY, &["--flow", "refunds"]);
    assert!(code == Some(1) && said.contains("The flow does not exist"), "{said}");
}
