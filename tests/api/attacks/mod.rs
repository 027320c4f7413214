//! Tests that no attack reaches the write. One harness runs every case.
//!
//! The harness starts a real gateway and a writer in its own process. The writer calls `verify` over HTTP and inserts a
//! row into a real table only on a 200 that allows it. The harness counts the rows. Every case spoils one thing and
//! must leave no row and its stated code. In the same test its unspoiled twin writes exactly one row. Bad states come
//! about through public calls only.

mod between;
mod claims;
mod forge;
mod heads;
mod keys;
mod proposals;
mod races;
mod stops;
mod tokens;
mod votes;
mod writer;
mod writes;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_adapters::clock::ClockOffset;
use countersign_store::postgres::PostgresStore;
pub use futures_util::future::BoxFuture;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, spawn_on, spawn_with_policy};

/// A thread with an approved change of the target user, and its receipt.
#[derive(Clone)]
pub struct ApprovedChange {
    pub thread: Value,
    pub held: Value,
    pub decision: Value,
}

impl ApprovedChange {
    /// Returns the request that an honest writer sends.
    pub fn ask(&self, write_id: &str) -> Value {
        json!({
            "thread": self.thread["thread"], "transition": self.held["transition"],
            "receipt": self.decision["receipt"], "write_id": write_id,
        })
    }

    pub fn receipt(&self) -> &str {
        self.decision["receipt"].as_str().unwrap()
    }

    pub fn id(&self) -> &Value {
        &self.thread["thread"]
    }
}

/// A gateway, a target table, and the thread under attack.
pub struct AttackScenario {
    pub g: TestGateway,
    pub case: ApprovedChange,
    target: Mutex<Connection>,
}

impl AttackScenario {
    pub async fn new(policy: &str) -> Self {
        Self::around(spawn_with_policy(policy).await).await
    }

    /// Starts the same scenario on its own PostgreSQL database.
    pub async fn on_postgres(policy: &str) -> Self {
        let clock = ClockOffset::default();
        let options = crate::up_to_date::patient(&clock);
        let store = PostgresStore::open(&crate::up_to_date::database().await, options).await.unwrap();
        Self::around(spawn_on(tempfile::tempdir().unwrap(), clock, Arc::new(store), policy).await).await
    }

    async fn around(g: TestGateway) -> Self {
        let target = Connection::open(target_of(&g)).unwrap();
        target
            .execute_batch(
                "CREATE TABLE users_changed (thread TEXT, fence INTEGER, view TEXT, PRIMARY KEY (thread, fence))",
            )
            .unwrap();
        let case = approve(&g).await;
        Self { g, case, target: Mutex::new(target) }
    }

    /// Sends the writer's request. Every response except a 200 that allows the write is a refusal.
    pub async fn write_as(&self, token: &str, ask: &Value) -> ApiResponse {
        writer::tries(&self.g, token, ask, &target_of(&self.g)).await
    }

    pub async fn write(&self, ask: &Value) -> ApiResponse {
        self.write_as(&self.g.writer, ask).await
    }

    /// Returns the number of rows that were written for a thread.
    pub fn rows(&self, thread: &Value) -> i64 {
        let target = self.target.lock().unwrap();
        let count = "SELECT count(*) FROM users_changed WHERE thread = ?1";
        target.query_row(count, [thread.as_str().unwrap()], |row| row.get(0)).unwrap()
    }

    /// Returns the number of all rows.
    pub fn rows_all(&self) -> i64 {
        self.target.lock().unwrap().query_row("SELECT count(*) FROM users_changed", [], |row| row.get(0)).unwrap()
    }

    pub async fn agent_path(&self, path: &str, body: Value) -> ApiResponse {
        let thread = self.case.id().as_str().unwrap();
        self.g.post(&format!("/v1/threads/{thread}/{path}"), &self.g.planner, body).await
    }

    /// Commits a harmless change on top of a head, by another agent.
    pub async fn harmless(&self, parent: &Value, text: &str) -> Value {
        let node = (self.g.parser.as_str(), "input_parser");
        self.g.propose(self.case.id(), parent, node, json!({"raw_text": text})).await.expect(201)
    }

    /// Proposes to reaffirm the head and has it approved. Returns (held, decision).
    pub async fn reaffirmed(&self, parent: &Value) -> (Value, Value) {
        let body = json!({"node": "planner", "parent": parent, "patch": {}, "reaffirm": true});
        let held = self.agent_path("transitions", body).await.expect(202);
        let decision = self.g.approved(&held).await;
        (held, decision)
    }

    /// Activates a policy over HTTP. Returns its digest.
    pub async fn activate(&self, policy: &str, accepts: Value) -> Value {
        let schemas = json!({"payments.schema.json": crate::gateway::SCHEMA});
        let body = json!({"policy": policy, "schemas": schemas, "accepts": accepts});
        self.g.post("/v1/flows/payments/policies", &self.g.admin, body).await.expect(200)["policy"].clone()
    }

    pub async fn halt(&self, scope: &str, proposing: bool, verifying: bool) {
        let body = json!({"proposing": proposing, "verifying": verifying, "reason": "an exercise"});
        let path = format!("/v1/halts/{scope}");
        self.g.send(reqwest::Method::PUT, &path, &self.g.admin, Some(body)).await.expect(200);
    }

    pub fn pass_seconds(&self, seconds: u64) {
        self.g.pass(Duration::from_secs(seconds));
    }
}

/// The database that the writer writes to.
fn target_of(g: &TestGateway) -> PathBuf {
    g.folder.path().join("target.db")
}

/// A thread with an approved change.
pub async fn approve(g: &TestGateway) -> ApprovedChange {
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let decision = g.approved(&held).await;
    ApprovedChange { thread, held, decision }
}

/// Selects the thread that writes the unspoiled twin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ControlCase {
    /// The attacked head itself is valid for exactly one write afterwards.
    Same,
    /// The attack spoils the head permanently. Its twin is another thread of the same gateway, written before.
    Before,
}

/// One attack that must be refused.
pub struct AttackCase {
    pub name: &'static str,
    pub policy: &'static str,
    pub status: u16,
    pub code: &'static str,
    pub twin: ControlCase,
    /// Creates the bad state and returns the writer's request.
    pub spoil: for<'a> fn(&'a mut AttackScenario) -> BoxFuture<'a, Value>,
}

/// Runs a case. The spoiled request must leave no row, and its twin exactly one.
pub async fn run(case: AttackCase) {
    let mut scene = AttackScenario::new(case.policy).await;
    if case.twin == ControlCase::Before {
        let twin = approve(&scene.g).await;
        scene.write(&twin.ask("twin")).await.expect(200);
        assert_eq!(scene.rows(twin.id()), 1, "{}: the twin", case.name);
    }
    let before = scene.rows_all();
    let ask = (case.spoil)(&mut scene).await;
    let (honest, written) = (scene.case.ask("twin-of-the-same"), scene.rows_all());
    let answer = scene.write(&ask).await;
    assert_eq!((answer.status, answer.code()), (case.status, case.code), "{}: {:#}", case.name, answer.body);
    assert_eq!(scene.rows_all(), written, "{}: a row was written", case.name);
    if case.twin == ControlCase::Same {
        assert_eq!(written, before, "{}: a row was written while spoiling", case.name);
        scene.write(&honest).await.expect(200);
        assert_eq!(scene.rows(scene.case.id()), 1, "{}: the twin", case.name);
        scene.write(&scene.case.ask("once-more")).await.expect(403);
        assert_eq!(scene.rows(scene.case.id()), 1, "{}: written twice", case.name);
    }
}

/// Turns each case of a table into a test with the case's name.
macro_rules! cases {
    ($($name:ident: $code:literal, $twin:ident, |$scene:ident| $body:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            fn spoil($scene: &mut $crate::attacks::AttackScenario) -> $crate::attacks::BoxFuture<'_, serde_json::Value> {
                Box::pin(async move { $body })
            }
            $crate::attacks::run($crate::attacks::AttackCase {
                name: stringify!($name),
                policy: $crate::gateway::POLICY,
                status: 403,
                code: $code,
                twin: $crate::attacks::ControlCase::$twin,
                spoil,
            })
            .await;
        }
    )*};
}
pub(crate) use cases;

/// Returns the payments policy with one text replaced.
pub fn policy_with(from: &str, to: &str) -> String {
    assert!(POLICY.contains(from), "the policy has no {from}");
    POLICY.replace(from, to)
}
