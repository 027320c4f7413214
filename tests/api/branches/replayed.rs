//! Tests replays of changes on branches and of their joins under another policy.

use countersign_domain::threads::transition::Rejection;
use countersign_store::RowFilter;
use countersign_store::record::RecordReader;

use super::*;
use crate::imports::put;

on_both! {
    replay_by_the_same_policy_repeats_branches_and_joins(super::research("write")),
    newly_protected_key_is_observed_on_a_branch_and_held_at_the_join(super::research("write")),
    replay_merges_a_join_by_the_candidate_policy(super::research("write")),
    replayed_branch_starts_with_the_usage_of_its_thread(super::research("write")),
    rejected_join_is_replayed_on_its_branches_at_that_time(super::research("write")),
    rejected_join_with_redacted_values_is_not_stored(super::hidden_notes()),
}

async fn rows(g: &TestGateway, policy: &str) -> Vec<Value> {
    let ask = json!({"policy": policy, "schemas": {}, "limit": 200});
    let answer = g.post("/v1/flows/payments/replays", &g.auditor, ask).await.expect(200);
    assert_eq!(answer["next"], Value::Null);
    answer["proposals"].as_array().unwrap().clone()
}

/// Returns the comparison, the actual and the replayed outcome, and the codes, for one thread.
fn of(rows: &[Value], thread: &Value) -> Vec<[String; 4]> {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let four = |it: &Value| {
        let codes = it["would_be"]["codes"].as_array().into_iter().flatten();
        let codes = codes.map(&text).collect::<Vec<_>>().join(",");
        [text(&it["comparison"]), text(&it["was"]["outcome"]), text(&it["would_be"]["outcome"]), codes]
    };
    rows.iter().filter(|it| it["thread"] == *thread).map(four).collect()
}

fn four(text: [&str; 4]) -> [String; 4] {
    text.map(str::to_owned)
}

async fn replay_by_the_same_policy_repeats_branches_and_joins(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let noted = it.change(g, 0, json!({"notes": {"a": 1}})).await;
    it.change(g, 1, json!({"target_user_id": 666})).await;
    let tool = json!({"node": "planner", "parent": noted["transition"], "patch": {}, "tool": {"name": "crm.find", "arguments": {}}});
    let path = format!("/v1/threads/{}/transitions", it.branches[0]["thread"].as_str().unwrap());
    g.post(&path, &g.planner, tool).await.expect(422);
    let held = it.join(g, &["a", "b"], "union").await.expect(202);
    g.approved(&held).await;
    let rows = rows(g, &research("write")).await;
    let (a, b) = (of(&rows, &it.branches[0]["thread"]), of(&rows, &it.branches[1]["thread"]));
    assert_eq!(a, [four(["same", "commit", "commit", ""]), four(["same", "reject", "reject", "tool_not_allowed"])]);
    assert_eq!(b, [four(["same", "observe", "observe", "protected"])], "nobody is asked on a branch");
    assert_eq!(of(&rows, &it.id), [four(["same", "hold", "hold", "protected"])]);
    let join = rows.iter().find(|row| row["thread"] == it.id).unwrap();
    assert_eq!((&join["kind"], &join["transition"]), (&json!("join"), &held["transition"]));
    assert_eq!(rows.len(), 4, "neither a fork nor an approval is a proposal");
    scene.passes_an_audit().await;
}

async fn newly_protected_key_is_observed_on_a_branch_and_held_at_the_join(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"notes": {"a": 1}})).await;
    it.change(g, 1, json!({"question": "what"})).await;
    it.join(g, &["a", "b"], "union").await.expect(201);
    let more = research("write").replacen("[\"target_user_id\"]", "[\"target_user_id\", \"notes\"]", 1);
    let strict = rows(g, &more).await;
    assert_eq!(of(&strict, &it.branches[0]["thread"]), [four(["differs", "commit", "observe", "protected"])]);
    assert_eq!(of(&strict, &it.branches[1]["thread"]), [four(["same", "commit", "commit", ""])]);
    assert_eq!(of(&strict, &it.id), [four(["differs", "commit", "hold", "protected"])]);
    // If a reason other than its effect would hold a change on a branch, the change is rejected: branches have no
    // reviews.
    let rule = "[[rules]]\nname = \"r\"\nwhen = \"change.path == '/question'\"\nthen = \"hold\"\nreason = \"ask\"\n\n[approval]\n";
    let ruled = rows(g, &research("write").replacen("[approval]\n", rule, 1)).await;
    assert_eq!(of(&ruled, &it.branches[0]["thread"]), [four(["same", "commit", "commit", ""])]);
    assert_eq!(of(&ruled, &it.branches[1]["thread"]), [four(["differs", "commit", "reject", "rule_denied"])]);
    assert_eq!(of(&ruled, &it.id)[0][..3], four(["differs", "commit", "hold", ""])[..3]);
    // A flow that only observes commits all of it.
    let observing =
        rows(g, &more.replacen("trust_initial = true", "trust_initial = true\nmode = \"observe\"", 1)).await;
    assert_eq!(of(&observing, &it.branches[0]["thread"])[0][2], "observe");
    assert_eq!(of(&observing, &it.id)[0][2], "observe");
}

async fn replay_merges_a_join_by_the_candidate_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    it.change(g, 0, json!({"found": [{"id": "start"}, {"id": "a"}]})).await;
    it.change(g, 1, json!({"found": [{"id": "start"}, {"id": "b"}]})).await;
    it.join(g, &["a", "b"], "union").await.expect(201);
    let keyless = research("write").replacen("[transitions.keyed_arrays.\"found\"]\nkey = \"id\"\n", "", 1);
    let found = of(&rows(g, &keyless).await, &it.id);
    assert_eq!(found, [four(["differs", "commit", "reject", "conflict"])], "two lists without keys are two values");
    let by_confidence = ForkedThread::new(g, &["a", "b"]).await;
    by_confidence.change(g, 0, json!({"question": "a", "sure": 0.9})).await;
    by_confidence.change(g, 1, json!({"question": "b", "sure": 0.1})).await;
    by_confidence.join(g, &["a", "b"], "confidence").await.expect(201);
    let unsure = research("write").replacen("[join]\nconfidence = \"sure\"\n", "", 1);
    let found = rows(g, &unsure).await;
    assert_eq!(of(&found, &by_confidence.id), [four(["differs", "commit", "reject", "malformed"])]);
    assert_eq!(of(&found, &it.id), [four(["same", "commit", "commit", ""])]);
    scene.passes_an_audit().await;
}

async fn replayed_branch_starts_with_the_usage_of_its_thread(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"question": "who", "found": [], "notes": {}, "sure": 0.5, "target_user_id": 17, "contact": {}});
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let (id, mut head) = (made["thread"].clone(), made["transition"].clone());
    let uses = async |thread: &Value, head: &Value, by: (&str, &str), tokens: u64, patch: Value| {
        let path = format!("/v1/threads/{}/transitions", thread.as_str().unwrap());
        let body = json!({"node": by.1, "parent": head, "patch": patch, "usage": {"tokens": tokens}});
        g.post(&path, by.0, body).await.expect(201)["transition"].clone()
    };
    head = uses(&id, &head, (&g.planner, "planner"), 60, json!({"question": "a"})).await;
    let branches = fork(g, &id, &["x", "y"]).await.expect(201)["branches"].clone();
    let branch = &branches[0];
    uses(&branch["thread"], &branch["transition"], (&g.planner, "planner"), 30, json!({"question": "b"})).await;
    // Tokens used in the thread after the fork are not part of the branch's budget.
    let parser = (g.parser.as_str(), "input_parser");
    uses(&id, &head, parser, 30, json!({"notes": {"late": 1}})).await;
    let with = |tokens: u64| {
        let budget = format!("[budgets.thread]\ntokens = {tokens}\n\n[approval]\n");
        research("write").replacen("[approval]\n", &budget, 1)
    };
    assert_eq!(of(&rows(g, &with(95)).await, &branch["thread"]), [four(["same", "commit", "commit", ""])]);
    let over = of(&rows(g, &with(80)).await, &branch["thread"]);
    assert_eq!(over, [four(["differs", "commit", "reject", "budget"])], "what its thread had spent counts");
    let after = |node: &str| {
        let rule = format!(
            "[[rules]]\nname = \"r\"\nwhen = \"'{node}' in thread.committed_nodes\"\nthen = \"deny\"\nreason = \"no\"\n\n[approval]\n"
        );
        research("write").replacen("[approval]\n", &rule, 1)
    };
    assert_eq!(of(&rows(g, &after("planner")).await, &branch["thread"])[0][2], "reject");
    assert_eq!(of(&rows(g, &after("input_parser")).await, &branch["thread"])[0][2], "commit");
    scene.passes_an_audit().await;
}

/// A policy by which the parser joins.
fn trusting() -> String {
    let own = "[nodes.input_parser]\nreads = [\"question\", \"notes\"]\nwrites = [\"notes\", \"aside\"]\n";
    let all = "\"question\", \"found\", \"notes\", \"sure\", \"target_user_id\", \"contact\"";
    let more = format!("[nodes.input_parser]\nreads = [{all}]\nwrites = [{all}]\n");
    let policy = research("write");
    assert!(policy.contains(own));
    policy.replacen(own, &more, 1)
}

async fn rejected_join_is_replayed_on_its_branches_at_that_time(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let found = it.change(g, 0, json!({"found": [{"id": "start"}, {"id": "a"}]})).await;
    it.change(g, 1, json!({"question": "b"})).await;
    let refused = async |names: &[&str], more: Value| {
        let mut body = json!({"node": "input_parser", "parent": it.head, "branches": names, "strategy": "union"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        g.post(&it.path("joins"), &g.parser, body).await.expect(422);
    };
    refused(&["a", "b"], json!({"usage": {"tokens": 70}})).await;
    // Later changes of its branch do not affect the rejected join.
    let (branch, by) = (&it.branches[0], (g.planner.as_str(), "planner"));
    g.propose(&branch["thread"], &found["transition"], by, json!({"target_user_id": 666, "question": "a"}))
        .await
        .expect(201);
    it.join(g, &["a"], "union").await.expect(202);
    let of_rejected = async |policy: &str| of(&rows(g, policy).await, &it.id)[0].clone();
    assert_eq!(of_rejected(&research("write")).await, four(["same", "reject", "reject", "read_not_allowed"]));
    assert_eq!(of_rejected(&trusting()).await, four(["differs", "reject", "commit", ""]));
    let protecting = |place: &str| trusting().replacen("[\"target_user_id\"]", &format!("[\"{place}\"]"), 1);
    assert_eq!(of_rejected(&protecting("found")).await, four(["differs", "reject", "hold", "protected"]));
    let budget = trusting().replacen("[approval]\n", "[budgets.thread]\ntokens = 69\n\n[approval]\n", 1);
    assert_eq!(of_rejected(&budget).await, four(["differs", "reject", "reject", "budget"]));
    scene.passes_an_audit().await;
}

async fn rejected_join_with_redacted_values_is_not_stored(scene: ApiScenario) {
    let g = &scene.gateway;
    for (place, why) in [("secret", json!("not_kept")), ("open", json!(null))] {
        let it = ForkedThread::new(g, &["a", "b"]).await;
        // The join is rejected because the parser may not write this key.
        it.change(g, 0, json!({"question": "a", "notes": {place: 1}})).await;
        it.change(g, 1, json!({"notes": {place: 2}})).await;
        let resolve = json!([{"path": format!("/notes/{place}"), "value": 3}]);
        let body = json!({"node": "input_parser", "parent": it.head, "branches": ["a", "b"], "strategy": "explicit",
            "resolve": resolve});
        g.post(&it.path("joins"), &g.parser, body).await.expect(422);
        let rows = rows(g, &hidden_notes()).await;
        let joins: Vec<&Value> = rows.iter().filter(|row| row["thread"] == it.id).collect();
        assert_eq!((joins.len(), &joins[0]["why"]["code"]), (1, &why), "{place}: {}", joins[0]);
        assert_eq!(joins[0]["comparison"] == "same", why == json!(null), "{place}");
    }
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn audit_compares_the_stored_join_with_its_branches() {
    let scene = ApiScenario::on_sqlite(&research("write")).await;
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a"]).await;
    let change = it.change(g, 0, json!({"question": "a"})).await;
    let body = json!({"node": "input_parser", "parent": it.head, "branches": ["a"], "strategy": "union"});
    g.post(&it.path("joins"), &g.parser, body).await.expect(422);
    scene.passes_an_audit().await;
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let rejection = reader.list::<Rejection>(RowFilter::Latest, None, 1).await.unwrap().remove(0).record;
    let kept: Value = serde_json::from_str(rejection.request.as_deref().unwrap()).unwrap();
    assert_eq!(kept["join"]["joining"]["branches"][0]["transition"], change["transition"]);
    let finding = "the join in the stored request differs from its branches";
    for (at, other) in [
        ("/join/joining/branches/0/transition", it.branches[0]["transition"].clone()),
        ("/join/joining/branches/0/name", json!("b")),
        ("/join/carried/committed_nodes", json!([])),
        ("/join/carried/owes", json!(true)),
        ("/join", json!(null)),
    ] {
        let mut altered = kept.clone();
        assert_ne!(altered.pointer(at), Some(&other), "{at}");
        *altered.pointer_mut(at).unwrap() = other;
        put(g, &Rejection { request: Some(altered.to_string()), ..rejection.clone() });
        let found = scene.findings().await;
        assert!(found.iter().any(|it| it.contains(finding)), "{at}: {found:?}");
    }
    put(g, &rejection);
    scene.passes_an_audit().await;
}
