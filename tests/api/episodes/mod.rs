//! Tests episodes over HTTP: the events that agents add to a run, and its run artifacts. On both databases.

use std::time::Duration;

use countersign_domain::episode::Artefact;
use countersign_domain::episode::agent_event::{AgentEvent, POSTED_MAX};
use countersign_domain::episode::finding::Note;
use countersign_domain::episode::from_thread::TOLD_MAX;
use countersign_domain::episode::verify::{
    FileContent, Folder, RunReport, RunVerification, SignatureRequirement, verify,
};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::log::event::{Event, EventLink};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::threads::thread::Thread;

use countersign_service::branches::list::BranchStatus;
use countersign_service::error::Error;
use countersign_store::record::RecordReader;
use countersign_store::records::{event_alias, posted_row_id};
use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway, owned_token};
use crate::imports::put;
use crate::rules::ApiScenario;

mod added;
mod exported;
mod sealed;

pub use exported::program;

on_both! {
    a_run_leaves_a_folder_that_verifies(crate::gateway::POLICY),
    waiting_run_has_only_its_available_artifacts(crate::gateway::POLICY),
    closed_run_is_aborted(crate::gateway::POLICY),
    a_run_with_a_write_of_unknown_outcome_is_not_verified(crate::gateway::POLICY),
    redacted_value_is_in_no_run_artifact(super::reading_the_card()),
    run_with_invalid_metadata_is_not_started(crate::gateway::POLICY),
    run_artifacts_are_only_for_the_host_and_auditors(crate::gateway::POLICY),
    run_records_forks_and_joins_and_its_branches_are_threads(super::forking()),
}

fn forking() -> String {
    crate::gateway::POLICY.replacen("[nodes.planner]\n", "[nodes.planner]\nfork = true\n", 1)
}

/// Returns a policy under which the planner reads the card. A node copies only values that it can read, and stored text
/// is not compared with other values.
fn reading_the_card() -> String {
    crate::gateway::POLICY.replacen("\"payment.amount\"]\nwrites", "\"payment\"]\nwrites", 1)
}

const CARD: &str = "4111111111111111";

fn goal() -> Value {
    json!({"goal": {"task": "Change an address", "type": "support"}, "seed": 7, "tags": {"team": "platform"},
        "using": "graph", "intuition_mode": "advisory"})
}

pub async fn begun(g: &TestGateway) -> Value {
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": CARD}});
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state, "episode": goal()})).await.expect(201)
}

fn path(thread: &Value, rest: &str) -> String {
    format!("/v1/threads/{}/episode/{rest}", thread["thread"].as_str().unwrap())
}

pub async fn add(g: &TestGateway, thread: &Value, phase: &str, payload: Value) -> ApiResponse {
    let event = json!({"node": "planner", "phase": phase, "payload": payload});
    g.post(&path(thread, "events"), &g.planner, event).await
}

fn plan() -> Value {
    json!({"rationale": "one step", "step_records": [
        {"id": "ask", "kind": "review", "description": "Ask whether it may be changed", "status": "running"},
        {"id": "write", "kind": "act", "description": "Change it"}]})
}

/// Returns the bytes of a file, or none if it does not exist.
async fn bytes(g: &TestGateway, thread: &Value, file: &str, token: &str) -> Option<Vec<u8>> {
    let url = format!("{}{}", g.url, path(thread, file));
    let answer = g.http.get(url).bearer_auth(token).send().await.unwrap();
    match answer.status() {
        StatusCode::OK => Some(answer.bytes().await.unwrap().to_vec()),
        StatusCode::NOT_FOUND => None,
        other => panic!("{file}: {other}"),
    }
}

pub async fn folder(g: &TestGateway, thread: &Value, token: &str) -> Folder {
    let mut folder = Folder::default();
    for file in Artefact::ALL.map(Artefact::file) {
        if let Some(bytes) = bytes(g, thread, file, token).await {
            folder.entries.push((file.to_owned(), FileContent::Bytes(bytes)));
        }
    }
    folder
}

fn report(g: &TestGateway, folder: &Folder) -> RunReport {
    verify(folder, SignatureRequirement::By(g.service.core.keys().unwrap().trusted())).1
}

async fn json_of(g: &TestGateway, thread: &Value, file: &str) -> Value {
    g.get(&path(thread, file), &g.host).await.expect(200)
}

/// Returns the timeline, one word for each event.
async fn words(g: &TestGateway, thread: &Value) -> Vec<String> {
    let lines = bytes(g, thread, "events.jsonl", &g.host).await.unwrap();
    let word = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event_type"].as_str().or(event["phase"].as_str()).unwrap().to_owned()
    };
    std::str::from_utf8(&lines).unwrap().lines().map(word).collect()
}

async fn a_run_leaves_a_folder_that_verifies(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let saw = add(g, &thread, "observe", json!({"message": "they ask for it"})).await.expect(201);
    assert_eq!((&saw["number"], &saw["left"]), (&json!(1), &json!(POSTED_MAX - 1)));
    let event = json!({"node": "planner", "phase": "plan", "payload": plan(), "caused_by": saw["event"],
        "evidence_ids": ["mail-1"]});
    g.post(&path(&thread, "events"), &g.planner, event).await.expect(201);
    let held = g.held(&thread).await;
    g.pass(Duration::from_secs(60));
    let receipt = g.approved(&held).await["receipt"].clone();
    add(g, &thread, "act", json!({"step_id": "ask", "step_status": "done", "outcome": "ok"})).await.expect(201);
    g.verify(&thread["thread"], &held["transition"], &receipt, "w1").await.expect(200);
    let early = add(g, &thread, "terminate", json!({"status": "ok"})).await;
    assert_eq!((early.status, early.code()), (409, "write_in_progress"));
    g.confirm("w1").await.expect(200);
    add(g, &thread, "act", json!({"step_id": "write", "step_status": "done", "outcome": "ok"})).await.expect(201);
    add(g, &thread, "learn", json!({"proposal": []})).await.expect(201);
    add(g, &thread, "terminate", json!({"status": "ok", "message": "Changed."})).await.expect(201);

    let folder = folder(g, &thread, &g.host).await;
    assert_eq!(folder.entries.len(), 6);
    let report = report(g, &folder);
    assert_eq!((report.verdict(), &report.notes[..]), (RunVerification::Verified, &[][..]), "{report:?}");
    let expected = [
        "start",
        "observe",
        "plan",
        "transition.held",
        "run.state_projection",
        "transition.approved",
        "transition.committed",
        "act",
        "write.reserved",
        "transition.committed",
        "write.confirmed",
        "act",
        "learn",
        "terminate",
        "run.state_projection",
    ];
    let told = words(g, &thread).await;
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for word in expected {
        assert!(told.iter().any(|it| it == word), "{word}: {told:?}");
    }
    let state = json_of(g, &thread, "state.json").await;
    assert_eq!(state["outcomes"]["status"], "ok");
    assert_eq!(state["outcomes"]["x-gateway"]["write.confirmed"], 1);
    assert_eq!(state["plan"]["steps"][1]["status"], "done");
    assert_eq!(state["episode"]["id"], thread["thread"]);
    assert_eq!(state["process"], json!({"id": "payments", "name": "payments", "run_index": 1}));
    let marker = json_of(g, &thread, "final.json").await;
    assert_eq!((&marker["outcome"], &marker["verification_status"]), (&json!("success"), &json!("verified")));
    assert_eq!(self::folder(g, &thread, &g.auditor).await, folder, "the same bytes for whoever may read them");
    g.pass(Duration::from_secs(3600));
    assert_eq!(self::folder(g, &thread, &g.host).await, folder, "and whenever they are asked for");
    scene.passes_an_audit().await;
}

async fn waiting_run_has_only_its_available_artifacts(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    add(g, &thread, "plan", plan()).await.expect(201);
    let held = g.held(&thread).await;
    let early = folder(g, &thread, &g.host).await;
    let names: Vec<&str> = early.entries.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, ["events.jsonl", "learn.jsonl", "state.json"]);
    let paused = json_of(g, &thread, "state.json").await;
    assert_eq!(paused["outcomes"]["status"], "pending");
    assert_eq!(paused["links"], json!({"events": "events.jsonl", "learn": "learn.jsonl"}));
    let found = report(g, &early);
    assert_eq!(found.verdict(), RunVerification::CouldNotTell, "{found:?}");
    assert!(found.findings.is_empty() && found.notes.iter().any(|it| it.code == Note::NotFinished));
    g.pass(Duration::from_secs(60));
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let late = folder(g, &thread, &g.host).await;
    assert!(report(g, &late).findings.is_empty());
    let lines = |it: &Folder| it.bytes(Artefact::Events).unwrap().to_vec();
    assert!(lines(&late).starts_with(&lines(&early)), "what was exported at the pause is the beginning");
    let resumed = json_of(g, &thread, "state.json").await;
    assert_eq!(resumed["episode"]["started_at"], paused["episode"]["started_at"]);
    assert_eq!(words(g, &thread).await.iter().filter(|it| *it == "start").count(), 1);
}

async fn a_run_with_a_write_of_unknown_outcome_is_not_verified(scene: ApiScenario) {
    let g = &scene.gateway;
    for goes_on in [false, true] {
        let thread = begun(g).await;
        let head = thread["transition"].clone();
        g.verify(&thread["thread"], &head, &Value::Null, &format!("lost-{goes_on}")).await.expect(200);
        // Its writer died. No worker runs before the thread is changed again.
        g.pass(Duration::from_secs(31));
        if goes_on {
            let patch = json!({"requested_action": "refund"});
            let next = g.propose(&thread["thread"], &head, (&g.planner, "planner"), patch).await.expect(201);
            g.verify(&thread["thread"], &next["transition"], &Value::Null, "w2").await.expect(200);
            g.confirm("w2").await.expect(200);
        }
        add(g, &thread, "terminate", json!({"status": "ok"})).await.expect(201);
        let marker = json_of(g, &thread, "final.json").await;
        assert_eq!(marker["verification_status"], "unverified", "{goes_on}: {marker}");
    }
    scene.passes_an_audit().await;
}

async fn closed_run_is_aborted(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let name = thread["thread"].as_str().unwrap();
    g.post(&format!("/v1/threads/{name}/closing"), &g.admin, json!({"reason": "enough"})).await.expect(200);
    assert_eq!(json_of(g, &thread, "state.json").await["outcomes"]["status"], "aborted");
    assert_eq!(json_of(g, &thread, "final.json").await["outcome"], "cancelled");
    assert_eq!(report(g, &folder(g, &thread, &g.host).await).verdict(), RunVerification::Verified);
    assert_eq!(add(g, &thread, "observe", json!({})).await.code(), "closed");
    scene.passes_an_audit().await;
}

async fn redacted_value_is_in_no_run_artifact(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let text = format!("the card is {CARD}.");
    let payload = json!({"message": text, CARD: [{"deep": text}], "number": 4_111_111_111_111_111_i64});
    let event = json!({"node": "planner", "phase": "observe", "payload": payload, "evidence_ids": [text]});
    let answer = g.post(&path(&thread, "events"), &g.planner, event).await.expect(201);
    assert!(!answer.to_string().contains(CARD), "and the agent is not told what was hidden of it");
    add(g, &thread, "memory", json!({"facts": [{"key": "card", "value": CARD}], "scratchpad": text})).await.expect(201);
    let step = json!({"id": "a", "kind": "act", "description": text, "inputs": {"card": CARD}});
    add(g, &thread, "plan", json!({"rationale": text, "step_records": [step]})).await.expect(201);
    add(g, &thread, "learn", json!({"basis": [text]})).await.expect(201);
    add(g, &thread, "terminate", json!({"status": "error", "message": text})).await.expect(201);
    g.service.log.sequence().await.unwrap();
    // The value is not stored either, whatever the policy redacts by then.
    let (id, keys) = (ThreadId::try_from(thread["thread"].as_str().unwrap()).unwrap(), g.service.core.keys().unwrap());
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let kept: Vec<String> = (1..=5).map(|it| posted_row_id(&id, it)).collect();
    let kept = reader.get_many::<AgentEvent>(&kept).await.unwrap();
    assert_eq!(kept.len(), 5);
    for row in kept {
        assert!(!json!(row.record).to_string().contains(CARD), "{:?}", row.record.phase);
    }
    for token in [&g.host, &g.auditor] {
        for (file, content) in folder(g, &thread, token).await.entries {
            let FileContent::Bytes(bytes) = content else { panic!("it is a file") };
            assert!(!String::from_utf8(bytes).unwrap().contains(CARD), "{file}");
        }
        let events = g.get("/v1/events?limit=500", token).await.expect(200).to_string();
        assert!(!events.contains(CARD) && !events.contains("the card is"), "the log tells that something was said");
    }
    assert_eq!(report(g, &folder(g, &thread, &g.host).await).verdict(), RunVerification::Verified);
    scene.passes_an_audit().await;
}

async fn run_with_invalid_metadata_is_not_started(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"requested_action": "none", "target_user_id": 17});
    let ask = |episode: Value| json!({"flow": "payments", "thread": "run-1", "state": state, "episode": episode});
    for (episode, place) in [
        (json!({"goal": {"task": ""}}), "/episode/goal/task"),
        (json!({"goal": {"task": "x"}, "seed": 1e300}), ""),
        (json!({"goal": {"task": "x"}, "seed": 9_007_199_254_740_991_i64, "using": ""}), "/episode/using"),
        (json!({"goal": {"task": "x"}, "tags": {"a": "y".repeat(201)}}), "/episode/tags"),
        (json!({"goal": {"task": "x"}, "started_at": "2020-01-01T00:00:00.000Z"}), ""),
        (json!({"goal": {"task": "x"}, "intuition_mode": "loud"}), ""),
    ] {
        let refused = g.post("/v1/threads", &g.host, ask(episode)).await;
        assert_eq!(refused.status, 400, "{place}: {}", refused.body);
        assert_eq!(refused.body["errors"][0]["pointer"], place, "{}", refused.body);
    }
    let first = g.post("/v1/threads", &g.host, ask(goal())).await.expect(201);
    assert_eq!(g.post("/v1/threads", &g.host, ask(goal())).await.expect(201), first, "the same again is the same");
    let mut other = goal();
    other["seed"] = json!(8);
    assert_eq!(g.post("/v1/threads", &g.host, ask(other)).await.code(), "exists");
    let none = json!({"flow": "payments", "thread": "run-1", "state": state});
    assert_eq!(g.post("/v1/threads", &g.host, none).await.code(), "exists");
    scene.passes_an_audit().await;
}

async fn run_artifacts_are_only_for_the_host_and_auditors(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, plain) = (begun(g).await, g.thread().await);
    for token in [&g.planner, &g.writer, &g.admin, &g.monitor] {
        assert_eq!(g.get(&path(&thread, "state.json"), token).await.status, 403);
    }
    for file in ["state.jsonl", "..%2Fstate.json", "STATE.json", "events"] {
        assert_eq!(g.get(&path(&thread, file), &g.host).await.status, 404, "{file}");
    }
    assert_eq!(g.get(&path(&plain, "state.json"), &g.host).await.code(), "not_found", "a thread that is no run");
    let other = owned_token(&g.service, "stranger", MachineRole::Agent, &["planner"], "platform").await;
    assert_eq!(g.get(&path(&thread, "state.json"), &other).await.status, 403);
}

async fn run_records_forks_and_joins_and_its_branches_are_threads(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let at = |rest: &str| format!("/v1/threads/{}/{rest}", thread["thread"].as_str().unwrap());
    // A branch may have a name that equals a redacted value.
    let names = json!(["left", CARD]);
    let made = g.post(&at("forks"), &g.planner, json!({"node": "planner", "branches": names})).await.expect(201);
    for (branch, patch) in [(0, json!({"requested_action": "refund"})), (1, json!({"target_user_id": 42}))] {
        let branch = &made["branches"][branch];
        g.propose(&branch["thread"], &branch["transition"], (&g.planner, "planner"), patch).await.expect(201);
        assert_eq!(g.get(&path(branch, "state.json"), &g.host).await.code(), "not_found", "it is no run");
        assert_eq!(add(g, branch, "observe", json!({})).await.code(), "wrong_state");
    }
    let join = json!({"node": "planner", "parent": thread["transition"], "branches": names, "strategy": "union"});
    let held = g.post(&at("joins"), &g.planner, join).await.expect(202);
    g.pass(Duration::from_secs(60));
    g.approved(&held).await;
    add(g, &thread, "terminate", json!({"status": "ok"})).await.expect(201);
    let told: Vec<Value> = {
        let lines = bytes(g, &thread, "events.jsonl", &g.host).await.unwrap();
        std::str::from_utf8(&lines).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    let of = |name: &str| told.iter().find(|it| it["event_type"] == name).unwrap()["payload"].clone();
    let fork = of("thread.forked");
    assert_eq!(fork["branches"][0]["thread"], made["branches"][0]["thread"]);
    let names_of = |it: &Value| it.as_array().unwrap().iter().map(|it| it["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names_of(&fork["branches"])[0], "left");
    for name in ["transition.held", "transition.committed"] {
        let join = of(name)["join"].clone();
        assert_eq!((join["branches"].as_array().unwrap().len(), &join["strategy"]), (2, &json!("union")), "{name}");
        assert!(names_of(&join["branches"]).contains(&json!("left")));
    }
    assert!(!json!(told).to_string().contains(CARD), "what an agent chose to call it is masked like all else");
    let state = json_of(g, &thread, "state.json").await;
    assert_eq!(state["outcomes"]["x-gateway"]["thread.forked"], 1);
    assert_eq!(report(g, &folder(g, &thread, &g.host).await).verdict(), RunVerification::Verified);
    let row =
        g.service.threads.overview(&serde_json::from_value(thread["thread"].clone()).unwrap()).await.unwrap().thread;
    let seen = g.service.branches.list_branches(&row, None, 25).await.unwrap();
    assert!(seen.earlier.is_none() && seen.branches.len() == 2);
    assert!(seen.branches.iter().all(|it| it.became == BranchStatus::Joined { version: 1 }), "{seen:?}");
    scene.passes_an_audit().await;
}
