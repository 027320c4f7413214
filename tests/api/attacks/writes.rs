//! Tests used receipts and leases, and the ways in which writes end.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use countersign_service::audit::audit;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use super::{AttackScenario, approve, cases};
use crate::gateway::{POLICY, token};
use countersign::worker::expire_leases;

async fn reserve(scene: &AttackScenario) {
    scene.g.post("/v1/verify", &scene.g.writer, scene.case.ask("first")).await.expect(200);
}

async fn abort(scene: &AttackScenario, write_id: &str) -> Value {
    let path = format!("/v1/writes/{write_id}/abort");
    scene.g.post(&path, &scene.g.writer, json!({"reason": "not now"})).await.expect(200)
}

async fn status(scene: &AttackScenario) -> Value {
    scene.g.get(&format!("/v1/threads/{}", scene.case.id().as_str().unwrap()), &scene.g.writer).await.expect(200)
}

cases! {
    a_used_receipt_is_used: "already_used", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        s.g.confirm("first").await.expect(200);
        s.case.ask("first")
    };
    a_used_receipt_is_used_for_another_write_too: "not_head", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        s.g.confirm("first").await.expect(200);
        s.case.ask("second")
    };
    a_reserved_head_is_not_given_to_another_write: "write_in_progress", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        s.case.ask("second")
    };
    a_lapsed_reservation_is_not_repeated: "already_used", Before, |s| {
        reserve(s).await;
        s.pass_seconds(30);
        s.case.ask("first")
    };
    a_lapsed_reservation_frees_no_head: "already_used", Before, |s| {
        reserve(s).await;
        s.pass_seconds(30);
        s.case.ask("second")
    };
    an_aborted_write_is_not_repeated: "already_used", Before, |s| {
        reserve(s).await;
        abort(s, "first").await;
        s.case.ask("first")
    };
    an_abort_uses_the_receipt_up: "already_used", Before, |s| {
        reserve(s).await;
        abort(s, "first").await;
        s.case.ask("second")
    };
    an_abort_after_the_lapse_frees_no_head: "already_used", Before, |s| {
        reserve(s).await;
        s.pass_seconds(31);
        abort(s, "first").await;
        s.case.ask("second")
    };
    a_lapse_resolved_as_not_written_frees_no_head: "already_used", Before, |s| {
        reserve(s).await;
        s.pass_seconds(31);
        let told = s.g.service.identity.token_of(&s.g.writer).await.unwrap();
        let body = json!({"principal": told.record.principal(), "outcome": "not_written", "reason": "looked"});
        let path = format!("/v1/threads/{}/lapses/first/resolution", s.case.id().as_str().unwrap());
        s.g.post(&path, &s.g.admin, body).await.expect(200);
        s.case.ask("second")
    };
    a_write_id_of_another_thread_is_used: "already_used", Same, |s| {
        let other = approve(&s.g).await;
        s.g.post("/v1/verify", &s.g.writer, other.ask("first")).await.expect(200);
        s.case.ask("first")
    };
    a_write_id_with_another_transition_is_no_repetition: "already_used", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        let mut ask = s.case.ask("first");
        ask["transition"] = s.case.thread["transition"].clone();
        ask
    };
    a_repeated_answer_still_compares: "expectation_failed", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        let mut ask = s.case.ask("first");
        ask["expect"] = json!({"/target_user_id": 17});
        ask
    };
    a_verification_is_no_receipt: "receipt_malformed", Same, |s| {
        let other = approve(&s.g).await;
        let allowed = s.g.post("/v1/verify", &s.g.writer, other.ask("first")).await.expect(200);
        super::forge::with_receipt(s, allowed["verification"].as_str().unwrap().to_owned())
    };
}

#[tokio::test]
async fn another_writer_does_not_get_a_reserved_head_by_the_same_write_id() {
    let scene = AttackScenario::new(POLICY).await;
    let second = token(&scene.g.service, "second", MachineRole::Writer, &["database_writer"]).await;
    scene.write(&scene.case.ask("w1")).await.expect(200);
    let refused = scene.write_as(&second, &scene.case.ask("w1")).await;
    assert_eq!((refused.status, refused.code()), (403, "write_in_progress"));
    for (path, body) in [("confirm", json!({"result": {}})), ("abort", json!({"reason": "mine"}))] {
        let stranger = scene.g.post(&format!("/v1/writes/w1/{path}"), &second, body).await;
        assert_eq!((stranger.status, stranger.code()), (404, "not_found"), "a write is its writer's own");
    }
    scene.g.confirm("w1").await.expect(200);
    assert_eq!(scene.write_as(&second, &scene.case.ask("w1")).await.code(), "not_head");
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn repeated_verify_during_a_lease_is_the_same_write() {
    let scene = AttackScenario::new(POLICY).await;
    let first = scene.write(&scene.case.ask("w1")).await.expect(200);
    for _ in 0..3 {
        let again = scene.write(&scene.case.ask("w1")).await.expect(200);
        assert_eq!(again["replayed"], true);
        assert_eq!((&again["fence"], &again["verification"]), (&first["fence"], &first["verification"]));
    }
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn a_late_confirm_commits_nothing() {
    let scene = AttackScenario::new(POLICY).await;
    scene.write(&scene.case.ask("w1")).await.expect(200);
    scene.pass_seconds(31);
    let top = scene.harmless(&scene.case.held["transition"], "moved on").await;
    let late = scene.g.confirm("w1").await.expect(200);
    assert_eq!(late["outcome"], "late");
    let now = status(&scene).await;
    assert_eq!((&now["version"], &now["transition"]), (&json!(2), &top["transition"]));
    assert_eq!(scene.g.confirm("w1").await.expect(200), late);
    assert_eq!(abort(&scene, "w1").await["outcome"], "late", "an end is never overwritten");
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn confirm_after_an_expired_lease_commits_once_on_the_same_head() {
    let scene = AttackScenario::new(POLICY).await;
    scene.write(&scene.case.ask("w1")).await.expect(200);
    scene.pass_seconds(31);
    let done = scene.g.confirm("w1").await.expect(200);
    assert_eq!((&done["outcome"], &done["version"]), (&json!("confirmed"), &json!(2)));
    assert_eq!(abort(&scene, "w1").await["outcome"], "confirmed");
    assert_eq!(status(&scene).await["version"], 2);
}

#[tokio::test]
async fn active_lease_blocks_commits_and_votes() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    // The pending review does not block the write of the head below it, which requires no approval.
    let ask = json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": "w1"});
    scene.write(&ask).await.expect(200);
    let refused = scene.g.vote(&scene.g.alice, &held, VoteVerdict::Approve).await.unwrap_err();
    assert!(matches!(refused, countersign_service::error::Error::WriteInProgress), "{refused:?}");
    let node = (scene.g.parser.as_str(), "input_parser");
    let other = scene.g.propose(&thread["thread"], &thread["transition"], node, json!({"raw_text": "x"})).await;
    assert_eq!((other.status, other.code()), (409, "write_in_progress"));
    // After the confirmation, the pending review is about a state that is not the head any more.
    scene.g.confirm("w1").await.expect(200);
    assert_eq!(scene.g.decision(&held).await.expect(200)["decision"], "superseded");
    assert!(scene.g.vote(&scene.g.alice, &held, VoteVerdict::Approve).await.is_err());
    assert_eq!(
        scene
            .write(&json!({"thread": thread["thread"], "transition": held["transition"], "write_id": "w2"}))
            .await
            .code(),
        "not_head"
    );
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn an_abort_frees_a_head_that_needs_no_receipt_for_one_write() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let ask =
        |write_id: &str| json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": write_id});
    scene.g.post("/v1/verify", &scene.g.writer, ask("w1")).await.expect(200);
    abort(&scene, "w1").await;
    assert_eq!(scene.write(&ask("w1")).await.code(), "already_used", "an ended write stays ended");
    scene.write(&ask("w2")).await.expect(200);
    assert_eq!(scene.write(&ask("w3")).await.code(), "write_in_progress");
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn only_an_expired_write_of_the_thread_is_resolved_and_once() {
    let scene = AttackScenario::new(POLICY).await;
    let other = scene.g.thread().await;
    scene.write(&scene.case.ask("w1")).await.expect(200);
    let principal = scene.g.service.identity.token_of(&scene.g.writer).await.unwrap().record.principal();
    let resolve = async |thread: &Value, outcome: &str| {
        let path = format!("/v1/threads/{}/lapses/w1/resolution", thread.as_str().unwrap());
        let body = json!({"principal": principal, "outcome": outcome, "reason": "looked"});
        scene.g.post(&path, &scene.g.admin, body).await
    };
    // The writer that the gateway allowed is still writing, so nothing may be committed beside it.
    let refused = resolve(scene.case.id(), "not_written").await;
    assert_eq!((refused.status, refused.code()), (409, "write_in_progress"));
    assert_eq!(status(&scene).await["status"], "writing");
    scene.pass_seconds(31);
    assert_eq!(resolve(&other["thread"], "not_written").await.status, 404);
    resolve(scene.case.id(), "written").await.expect(200);
    let again = resolve(scene.case.id(), "not_written").await;
    assert_eq!((again.status, again.code()), (409, "wrong_state"), "an end is never overwritten");
    assert_eq!(scene.write(&scene.case.ask("w2")).await.code(), "already_used");
    assert_eq!(scene.rows_all(), 1);
}

/// Otherwise its outcome would stay unknown permanently, and no administrator could resolve it.
#[tokio::test]
async fn write_can_end_while_its_thread_is_closed() {
    let scene = AttackScenario::new(POLICY).await;
    let principal = scene.g.service.identity.token_of(&scene.g.writer).await.unwrap().record.principal();
    for (write_id, outcome) in [("w1", "aborted"), ("w2", "late"), ("w3", "written")] {
        let thread = scene.g.thread().await;
        let ask = |write_id: &str| json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": write_id});
        scene.g.post("/v1/verify", &scene.g.writer, ask(write_id)).await.expect(200);
        scene.pass_seconds(31);
        expire_leases::run_once(&scene.g.service).await.unwrap();
        let of_thread = |rest: &str| format!("/v1/threads/{}/{rest}", thread["thread"].as_str().unwrap());
        let why = || json!({"reason": "enough"});
        scene.g.post(&of_thread("closing"), &scene.g.admin, why()).await.expect(200);
        let ended = match outcome {
            "aborted" => abort(&scene, write_id).await,
            "late" => scene.g.confirm(write_id).await.expect(200),
            _ => {
                let body = json!({"principal": principal, "outcome": "written", "reason": "looked"});
                let path = of_thread(&format!("lapses/{write_id}/resolution"));
                scene.g.post(&path, &scene.g.admin, body).await.expect(200)
            }
        };
        assert_eq!(ended["outcome"], outcome);
        expire_leases::run_once(&scene.g.service).await.unwrap();
        scene.g.post(&of_thread("reopening"), &scene.g.admin, why()).await.expect(200);
        expire_leases::run_once(&scene.g.service).await.unwrap();
        let name = thread["thread"].as_str().unwrap().try_into().unwrap();
        let now = scene.g.service.threads.overview(&name).await.unwrap().thread;
        assert!(!now.outcome_unknown(scene.g.service.core.now()), "{outcome}: {:?} {:?}", now.head, now.unresolved);
        // After an abort nothing was written, so the head is still free. The other outcomes used it up.
        let again = scene.g.post("/v1/verify", &scene.g.writer, ask(&format!("{write_id}-again"))).await;
        let refused = if outcome == "aborted" { None } else { Some("already_used") };
        assert_eq!((again.status != 200).then(|| again.code()), refused, "{outcome}");
    }
    let store = SqliteStore::open(scene.g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    while scene.g.service.log.sequence().await.unwrap() > 0 {}
    let report = audit(&store, &scene.g.service.core.keys().unwrap(), scene.g.service.core.now()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test]
async fn expired_lease_does_not_free_a_head_without_receipt() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let ask =
        |write_id: &str| json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": write_id});
    scene.write(&ask("w1")).await.expect(200);
    scene.pass_seconds(31);
    assert_eq!(scene.write(&ask("w2")).await.code(), "already_used");
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn forbidden_result_is_recorded_without_effect() {
    let scene = AttackScenario::new(POLICY).await;
    scene.write(&scene.case.ask("w1")).await.expect(200);
    let results = json!({"result": {"target_user_id": 99, "is_admin": true}});
    let done = scene.g.post("/v1/writes/w1/confirm", &scene.g.writer, results).await.expect(200);
    assert_eq!((&done["outcome"], &done["result_refused"]), (&json!("confirmed"), &json!(true)));
    let id = scene.case.id().as_str().unwrap();
    let state = scene.g.get(&format!("/v1/threads/{id}/state?node=planner"), &scene.g.planner).await.expect(200);
    assert_eq!((&state["version"], &state["state"]["target_user_id"]), (&json!(2), &json!(42)));
}
