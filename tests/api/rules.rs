//! Tests rules, the advice in a rejection, and the limit on attempts, over HTTP and on both databases.

use std::sync::Arc;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::json::size::StateLimits;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::step::StepRow;

use countersign_adapters::clock::ClockOffset;
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit_with;
use countersign_service::{Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::change::Draft;
use countersign_store::postgres::PostgresStore;
use countersign_store::record::{Record, RecordReader};
use countersign_store::sqlite::SqliteStore;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, MovedClock, TestGateway, owned_token, settings, spawn_on};
use crate::over::{InterceptedStore, StoreInterceptor};
use crate::sqlite::unsynced;

on_both! {
    denial_by_a_rule_has_its_name_reason_and_value(super::ruled()),
    holding_rule_requires_approval(super::ruled()),
    a_value_waits_until_another_node_has_committed(super::ruled()),
    rule_reads_the_owner_of_the_caller(super::ruled()),
    second_violation_ends_only_the_nodes_attempts_on_that_head(super::on_violation("retry_once")),
    concurrent_violations_get_no_extra_attempt(super::on_violation("retry_once")),
    corrected_retry_commits(super::on_violation("retry_once")),
    proposal_without_eligible_reviewers_uses_no_attempt(super::on_violation("retry_once").replace("\"reviewers\"", "\"nobody\"")),
    a_patch_is_dropped_whole_and_its_node_skipped(super::on_violation("skip_node")),
    fail_fast_rejection_instructs_the_node_to_stop(super::on_violation("fail_fast")),
}

/// A gateway, and its store for an audit afterwards.
pub struct ApiScenario {
    pub gateway: TestGateway,
    store: Arc<dyn Store>,
}

impl ApiScenario {
    pub async fn on_sqlite(policy: &str) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
        let options = unsynced(&clock);
        let store = SqliteStore::open(folder.path().join("countersign.db"), options).unwrap();
        Self::on(folder, clock, Arc::new(store), policy).await
    }

    pub async fn on_postgres(policy: &str) -> Self {
        let clock = ClockOffset::default();
        let options = crate::up_to_date::patient(&clock);
        let store = PostgresStore::open(&crate::up_to_date::database().await, options).await.unwrap();
        Self::on(tempfile::tempdir().unwrap(), clock, Arc::new(store), policy).await
    }

    async fn on(folder: tempfile::TempDir, clock: ClockOffset, store: Arc<dyn Store>, policy: &str) -> Self {
        Self { gateway: spawn_on(folder, clock, Arc::clone(&store), policy).await, store }
    }

    /// Another gateway on the same database.
    pub async fn another(&self) -> Service {
        self.another_within(StateLimits::default()).await
    }

    /// Returns another gateway with other state limits.
    pub async fn another_within(&self, limits: StateLimits) -> Service {
        self.another_on(Arc::clone(&self.store), limits).await
    }

    /// Returns another gateway with an interceptor in its store.
    pub async fn another_watched(&self, watching: impl StoreInterceptor) -> Service {
        self.another_on(self.watched(watching), StateLimits::default()).await
    }

    async fn another_on(&self, store: Arc<dyn Store>, limits: StateLimits) -> Service {
        let keyring = Keyring::open(&self.gateway.folder.path().join("keyring.json"), None).unwrap();
        let clock = Arc::new(MovedClock(self.gateway.clock.clone()));
        let settings = ServiceSettings { limits, ..settings(&self.gateway.url) };
        Service::open(store, keyring, clock, settings).await.unwrap()
    }

    /// Checks that the stored counts agree with an audit.
    pub async fn passes_an_audit(&self) {
        assert_eq!(self.findings().await, Vec::<String>::new());
    }

    /// Removes the last attempt of a step from its row under a valid seal. Returns the number of attempts before.
    pub async fn forgets_a_try(&self, thread: &str, node: &str, step: &str) -> usize {
        let keys = self.gateway.service.core.keys().unwrap();
        let reader = RecordReader { store: &*self.store, key: keys.row() };
        let stored = reader.get::<StepRow>(&format!("{thread}/{node}/{step}")).await.unwrap().unwrap();
        let mut less = stored.record.clone();
        less.tries.pop().unwrap();
        let mut draft = Draft::new(keys.row(), self.gateway.service.core.now());
        draft.replace(&stored, &less).unwrap();
        self.store.commit(draft.finish().change).await.unwrap();
        stored.record.tries.len()
    }

    /// Changes the content of a row under a valid seal.
    pub async fn retells<R: Record>(&self, id: &str, other: impl FnOnce(R) -> R) {
        let keys = self.gateway.service.core.keys().unwrap();
        let reader = RecordReader { store: &*self.store, key: keys.row() };
        let stored = reader.get::<R>(id).await.unwrap().unwrap();
        let mut draft = Draft::new(keys.row(), self.gateway.service.core.now());
        draft.replace(&stored, &other(stored.record.clone())).unwrap();
        self.store.commit(draft.finish().change).await.unwrap();
    }

    /// Returns the findings of an audit, one per line.
    pub async fn findings(&self) -> Vec<String> {
        self.found_in(&*self.store, self.gateway.service.core.now()).await
    }

    /// Returns the store with an interceptor.
    pub fn watched<W: StoreInterceptor>(&self, watching: W) -> Arc<InterceptedStore<W>> {
        InterceptedStore::new(Arc::clone(&self.store), watching)
    }

    /// Returns the findings of an audit of this store that begins at `now`.
    pub async fn found_in(&self, store: &dyn Store, now: Timestamp) -> Vec<String> {
        let keys = self.gateway.service.core.keys().unwrap();
        let archives = crate::gateway::archives_in(self.gateway.folder.path());
        let report = audit_with(store, Some(&archives), &keys, now).await.unwrap();
        report.findings.into_iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
    }

    /// Returns the store itself, for tests that read it directly.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

fn ruled() -> String {
    policy_with(
        "[approval]\n",
        r#"[[rules]]
name = "small users"
when = "change.path == '/target_user_id' && object.target_user_id < 10"
then = "deny"
reason = "users below 10 are ours"

[[rules]]
when = "change.path == '/requested_action' && change.after == 'refund'"
then = "hold"
reason = "a refund needs approval"

[[rules]]
name = "parser first"
when = "change.path == '/requested_action' && change.after == 'update_email' && !('input_parser' in thread.committed_nodes)"
then = "deny"
reason = "nothing is done before the parser has committed"

[[rules]]
name = "platform only"
when = "principal.owner != 'platform' && node == 'planner'"
then = "deny"
reason = "planners are the platform's"

[approval]
"#,
    )
}

fn on_violation(what: &str) -> String {
    policy_with("trust_initial = true\n", &format!("trust_initial = true\non_violation = \"{what}\"\n"))
}

/// Sends the planner's patch as this attempt.
async fn tries(g: &TestGateway, thread: &Value, parent: &Value, patch: Value, attempt: u32) -> ApiResponse {
    let body = json!({"node": "planner", "parent": parent, "patch": patch, "attempt": attempt});
    g.post(&format!("/v1/threads/{}/transitions", thread.as_str().unwrap()), &g.planner, body).await
}

pub fn codes(answer: &ApiResponse) -> Vec<&str> {
    answer.body["errors"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect()
}

async fn denial_by_a_rule_has_its_name_reason_and_value(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let denied = tries(g, id, head, json!({"target_user_id": 5}), 1).await;
    assert_eq!((denied.status, denied.code()), (422, "rejected"));
    let error = json!({
        "pointer": "/target_user_id", "code": "rule_denied", "detail": "users below 10 are ours",
        "rule": "small users", "value": 5,
    });
    assert_eq!(denied.body["errors"], json!([error]));
    let again = tries(g, id, head, json!({"target_user_id": 5}), 1).await;
    assert_eq!(
        (&again.body["errors"], &again.body["instruction"]),
        (&denied.body["errors"], &denied.body["instruction"])
    );
    let hidden = g.propose(id, head, (&g.planner, "planner"), json!({"payment": {"card": "4999888877776666"}})).await;
    assert!(!hidden.body.to_string().contains("4999888877776666"), "{}", hidden.body);
}

async fn holding_rule_requires_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = tries(g, &thread["thread"], &thread["transition"], json!({"requested_action": "refund"}), 1).await;
    let held = held.expect(202);
    assert_eq!(held["reasons"][0]["text"], "a refund needs approval", "{held}");
    g.approved(&held).await;
}

async fn a_value_waits_until_another_node_has_committed(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let early = tries(g, id, head, json!({"requested_action": "update_email"}), 1).await;
    assert_eq!(early.body["errors"][0]["rule"], "parser first", "{}", early.body);
    let next = g.propose(id, head, (&g.parser, "input_parser"), json!({"raw_text": "x"})).await.expect(201);
    tries(g, id, &next["transition"], json!({"requested_action": "update_email"}), 1).await.expect(201);
}

async fn rule_reads_the_owner_of_the_caller(scene: ApiScenario) {
    let g = &scene.gateway;
    let stranger = owned_token(&g.service, "stranger", MachineRole::Agent, &["planner"], "strangers").await;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let denied = g.propose(id, head, (&stranger, "planner"), json!({"requested_action": "none"})).await;
    assert_eq!(denied.body["errors"][0]["rule"], "platform only", "{}", denied.body);
    g.propose(id, head, (&g.planner, "planner"), json!({"requested_action": "none"})).await.expect(201);
}

async fn second_violation_ends_only_the_nodes_attempts_on_that_head(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let first = tries(g, id, head, json!({"result_ref": "x"}), 1).await;
    assert_eq!(
        (codes(&first), &first.body["instruction"]["action"]),
        (vec!["write_not_allowed"], &json!("retry_once"))
    );
    let same = tries(g, id, head, json!({"result_ref": "x"}), 1).await;
    assert_eq!(same.body["instruction"]["action"], "retry_once", "asking twice is one violation");
    let second = tries(g, id, head, json!({"result_ref": "y"}), 1).await;
    assert_eq!(codes(&second), ["write_not_allowed", "attempts_exhausted"]);
    assert_eq!(second.body["instruction"]["action"], "no_more_tries");
    for (patch, attempt) in
        [(json!({"requested_action": "update_email"}), 1), (json!({"requested_action": "update_email"}), 2)]
    {
        let right = tries(g, id, head, patch, attempt).await;
        assert_eq!((right.status, codes(&right)), (422, vec!["attempts_exhausted"]), "{}", right.body);
    }
    let other = owned_token(&g.service, "planner2", MachineRole::Agent, &["planner"], "platform").await;
    let same_node = g.propose(id, head, (&other, "planner"), json!({"requested_action": "update_email"})).await;
    assert_eq!(codes(&same_node), ["attempts_exhausted"], "another token is the same node");
    let next = g.propose(id, head, (&g.parser, "input_parser"), json!({"raw_text": "x"})).await.expect(201);
    tries(g, id, &next["transition"], json!({"requested_action": "update_email"}), 1).await.expect(201);
    scene.passes_an_audit().await;
}

async fn concurrent_violations_get_no_extra_attempt(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    for _ in 0..4 {
        let answers =
            join_all((0..4).map(|turn| tries(g, id, head, json!({"result_ref": format!("x{turn}")}), 1))).await;
        let told: Vec<_> = answers.iter().filter(|it| it.status == 422).map(codes).collect();
        let judged = told.iter().filter(|it| it[0] == "write_not_allowed").count();
        assert!(judged <= 2, "{told:?}");
    }
    let answers = join_all((4..12).map(|turn| tries(g, id, head, json!({"result_ref": format!("x{turn}")}), 1))).await;
    assert!(answers.iter().filter(|it| it.status == 422).all(|it| codes(it) == ["attempts_exhausted"]));
    let right = tries(g, id, head, json!({"requested_action": "update_email"}), 1).await;
    assert_eq!(codes(&right), ["attempts_exhausted"]);
    scene.passes_an_audit().await;
}

async fn corrected_retry_commits(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let wrong = tries(g, id, head, json!({"result_ref": "x", "requested_action": "update_email"}), 1).await;
    assert_eq!(wrong.body["instruction"]["action"], "retry_once");
    let right = tries(g, id, head, json!({"requested_action": "update_email"}), 1).await.expect(201);
    let later = tries(g, id, &right["transition"], json!({"result_ref": "x"}), 1).await;
    assert_eq!(later.body["instruction"]["action"], "retry_once", "a new head, a new count");
    scene.passes_an_audit().await;
}

async fn proposal_without_eligible_reviewers_uses_no_attempt(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    for user in [42, 43, 44] {
        let nobody = tries(g, id, head, json!({"target_user_id": user}), 1).await;
        assert_eq!((codes(&nobody), &nobody.body["instruction"]), (vec!["nobody_can_approve"], &Value::Null));
    }
    tries(g, id, head, json!({"requested_action": "update_email"}), 1).await.expect(201);
    scene.passes_an_audit().await;
}

async fn a_patch_is_dropped_whole_and_its_node_skipped(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    for attempt in 1..4 {
        let mixed = json!({"requested_action": "update_email", "result_ref": "x"});
        let skipped = tries(g, id, head, mixed, attempt).await;
        assert_eq!((skipped.status, &skipped.body["instruction"]["action"]), (422, &json!("skip_node")));
    }
    let now = g.get(&format!("/v1/threads/{}", id.as_str().unwrap()), &g.host).await.expect(200);
    assert_eq!((&now["version"], &now["transition"]), (&json!(0), head));
    let path = format!("/v1/threads/{}/state?node=planner", id.as_str().unwrap());
    assert_eq!(g.get(&path, &g.planner).await.expect(200)["state"]["requested_action"], "none", "in no part");
    scene.passes_an_audit().await;
}

async fn fail_fast_rejection_instructs_the_node_to_stop(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let stopped = tries(g, &thread["thread"], &thread["transition"], json!({"result_ref": "x"}), 1).await;
    assert_eq!(stopped.body["instruction"]["action"], "stop");
    assert!(stopped.body["instruction"]["detail"].as_str().unwrap().contains("Nothing was applied"));
}
