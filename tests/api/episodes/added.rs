//! Tests the events that agents add to a run: who may add them, how many, and until when.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::episode::agent_event::Phase;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::PrincipalId;
use countersign_service::episodes::record::NewEvent;
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::actor::Actor;
use countersign_service::operations::halt::HaltScope;
use countersign_service::operations::halt_request::HaltRequest;

use super::*;
use crate::gateway::{source, spawn_gateway};
use crate::meanwhile::{InterleavedAction, second_gateway};

on_both! {
    invalid_events_of_agents_are_refused(crate::gateway::POLICY),
    run_is_unknown_to_tokens_of_another_flow(crate::gateway::POLICY),
    ended_run_accepts_no_events(crate::gateway::POLICY),
    concurrent_events_get_distinct_numbers(crate::gateway::POLICY),
    full_run_accepts_only_its_end(crate::gateway::POLICY),
}

async fn invalid_events_of_agents_are_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let events = path(&thread, "events");
    let event = |member: &str, value: Value| {
        let mut event = json!({"node": "planner", "phase": "observe", "payload": {}});
        event[member] = value;
        event
    };
    for (member, value, place) in [
        ("payload", json!([]), ""),
        ("payload", json!({"a": "x".repeat(17 * 1024)}), "/payload"),
        ("phase", json!("start"), ""),
        ("phase", json!("runtime"), ""),
        ("evidence_ids", json!([""]), "/evidence_ids"),
        ("caused_by", json!("no-such-event"), "/caused_by"),
        ("agent_id", json!("countersign"), ""),
    ] {
        let refused = g.post(&events, &g.planner, event(member, value)).await;
        assert_eq!(refused.status, 400, "{member}: {}", refused.body);
        assert_eq!(refused.body["errors"][0]["pointer"], place, "{}", refused.body);
    }
    let plan = json!({"node": "planner", "phase": "plan", "payload": {"step_records": [{"id": "a"}]}});
    let refused = g.post(&events, &g.planner, plan).await;
    assert_eq!(
        (refused.status, refused.body["errors"][0]["pointer"].as_str()),
        (400, Some("/payload/step_records/0/kind"))
    );
    let other_node = g.post(&events, &g.parser, event("phase", json!("observe"))).await;
    assert_eq!((other_node.status, other_node.code()), (403, "forbidden"));
    for token in [&g.host, &g.writer, &g.auditor, &g.admin] {
        assert_eq!(g.post(&events, token, event("phase", json!("observe"))).await.status, 403);
    }
    let nowhere =
        g.post("/v1/threads/no-such-thread/episode/events", &g.planner, event("phase", json!("observe"))).await;
    assert_eq!((nowhere.status, nowhere.code()), (404, "not_found"));
    let plain = g.thread().await;
    assert_eq!(add(g, &plain, "observe", json!({})).await.code(), "wrong_state");
    let theirs = add(g, &plain, "observe", json!({})).await;
    assert_eq!(theirs.status, 409);
    let other = begun(g).await;
    let saw = add(g, &other, "observe", json!({})).await.expect(201);
    let stranger = g.post(&events, &g.planner, event("caused_by", saw["event"].clone())).await;
    assert_eq!(stranger.status, 400, "a cause is an event of the same run");
    g.service.log.sequence().await.unwrap();
    assert_eq!(words(g, &thread).await, ["start", "run.state_projection"], "nothing of all that was taken");
    scene.passes_an_audit().await;
}

async fn run_is_unknown_to_tokens_of_another_flow(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let other = crate::gateway::POLICY.replacen("flow = \"payments\"", "flow = \"refunds\"", 1);
    let by = PrincipalId::try_from("tests").unwrap();
    g.service.policy_changes.activate_policy(&by, None, source(&other), BTreeSet::new()).await.unwrap();
    let new = NewToken {
        name: "elsewhere".to_owned(),
        role: MachineRole::Agent,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some("refunds".try_into().unwrap()),
        nodes: BTreeSet::from(["planner".try_into().unwrap()]),
    };
    let (_, elsewhere) = g.service.identity.add_token(&new).await.unwrap();
    let event = json!({"node": "planner", "phase": "observe", "payload": {}});
    let refused = g.post(&path(&thread, "events"), &elsewhere, event).await;
    assert_eq!((refused.status, refused.code()), (404, "not_found"), "nor is it told that it is there");
}

async fn ended_run_accepts_no_events(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let held = g.held(&thread).await;
    assert_eq!(add(g, &thread, "terminate", json!({"status": "ok"})).await.code(), "thread_held");
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    add(g, &thread, "terminate", json!({"status": "vetoed"})).await.expect(201);
    let before = folder(g, &thread, &g.host).await;
    for phase in ["observe", "terminate"] {
        let late = add(g, &thread, phase, json!({"status": "ok"})).await;
        assert_eq!((late.status, late.code()), (409, "wrong_state"));
    }
    // Later changes of the thread do not belong to the run.
    let patch = json!({"requested_action": "update_email"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    assert_eq!(folder(g, &thread, &g.host).await, before);
    assert_eq!(json_of(g, &thread, "final.json").await["outcome"], "vetoed");
    scene.passes_an_audit().await;
}

async fn concurrent_events_get_distinct_numbers(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    let all = join_all((0..12).map(|at| add(g, &thread, "observe", json!({"at": at})))).await;
    let mut numbers: Vec<u64> =
        all.iter().filter(|it| it.status == 201).map(|it| it.body["number"].as_u64().unwrap()).collect();
    assert!(all.iter().all(|it| it.status == 201 || it.code() == "busy"));
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(!numbers.is_empty());
    assert!(report(g, &folder(g, &thread, &g.host).await).findings.is_empty());
    scene.passes_an_audit().await;
}

async fn full_run_accepts_only_its_end(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = begun(g).await;
    for _ in 0..POSTED_MAX {
        add(g, &thread, "observe", json!({})).await.expect(201);
    }
    let more = add(g, &thread, "observe", json!({})).await;
    assert_eq!((more.status, more.code()), (409, "wrong_state"));
    assert_eq!(words(g, &thread).await.len() as u64, POSTED_MAX + 2);
    let end = add(g, &thread, "terminate", json!({"status": "ok"})).await.expect(201);
    assert_eq!((&end["number"], &end["left"]), (&json!(POSTED_MAX + 1), &json!(0)));
    for phase in ["observe", "terminate"] {
        let late = add(g, &thread, phase, json!({"status": "ok"})).await;
        assert_eq!((late.status, late.code()), (409, "wrong_state"));
    }
    let folder = folder(g, &thread, &g.host).await;
    let report = report(g, &folder);
    assert_eq!((report.verdict(), &report.notes[..]), (RunVerification::Verified, &[][..]), "{report:?}");
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn nothing_is_added_while_its_flow_is_halted() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let thread = begun(g).await;
    let (said, code) = program(g, &["halt", "set", "payments", "--only", "proposing"]);
    assert_eq!(code, Some(0), "{said}");
    let refused = add(g, &thread, "observe", json!({})).await;
    assert_eq!((refused.status, refused.code()), (409, "halted"));
}

#[tokio::test]
async fn event_outside_of_the_run_is_no_cause() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let thread = begun(g).await;
    let said = add(g, &thread, "observe", json!({})).await.expect(201);
    let (id, keys) = (ThreadId::try_from(thread["thread"].as_str().unwrap()).unwrap(), g.service.core.keys().unwrap());
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let by = async |cause: Value| {
        let event = json!({"node": "planner", "phase": "interpret", "payload": {}, "caused_by": cause});
        g.post(&path(&thread, "events"), &g.planner, event).await
    };
    // The log event about the agent's event, and the agent's event itself.
    let line = reader.get_by_alias::<Event>(&event_alias(&id, 2)).await.unwrap().unwrap().record;
    assert_eq!((line.kind.name(), &line.data["event"]), ("episode.event", &said["event"]));
    let refused = by(json!(line.id)).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (400, &json!("/caused_by")));
    by(said["event"].clone()).await.expect(201);
    let begun = reader.get_by_alias::<Event>(&event_alias(&id, 1)).await.unwrap().unwrap().record;
    by(json!(begun.id)).await.expect(201);
}

/// An event that a second gateway adds, while something happens before it is committed.
async fn meanwhile(g: &TestGateway, thread: &Value, happening: InterleavedAction) -> Result<(), Error> {
    let (store, second) = second_gateway(g).await;
    let token = second.identity.token_of(&g.planner).await.unwrap();
    store.watching.by(happening);
    let new = NewEvent {
        thread: thread["thread"].as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        phase: Phase::Observe,
        payload: serde_json::Map::new(),
        caused_by: None,
        evidence_ids: Vec::new(),
    };
    let added = second.episodes.add_episode_event(&token, &new).await.map(drop);
    assert!(store.watching.is_over());
    added
}

#[tokio::test]
async fn event_of_a_flow_halted_before_its_commit_is_refused() {
    let g = spawn_gateway().await;
    let thread = begun(&g).await;
    let (service, alice) = (Arc::clone(&g.service), g.alice.id.clone());
    let stops: InterleavedAction = Box::new(move || {
        Box::pin(async move {
            let person = service.identity.account_row(&alice).await.unwrap();
            let halt = Halt { proposing: true, verifying: false, reason: "drill".to_owned() };
            service
                .operations
                .request_halt(Actor::Person(&person), &HaltScope::All, &HaltRequest::Stop(halt))
                .await
                .unwrap();
        })
    });
    let refused = meanwhile(&g, &thread, stops).await;
    assert!(matches!(refused, Err(Error::Halted)), "{refused:?}");
}

#[tokio::test]
async fn event_of_a_token_revoked_before_its_commit_is_refused() {
    let g = spawn_gateway().await;
    let thread = begun(&g).await;
    let (service, token) = (Arc::clone(&g.service), g.planner.clone());
    let revokes: InterleavedAction = Box::new(move || {
        Box::pin(async move {
            let id = service.identity.token_of(&token).await.unwrap().record.id;
            service.identity.revoke_token(&id).await.unwrap();
        })
    });
    assert!(meanwhile(&g, &thread, revokes).await.is_err());
    let row = g.service.threads.overview(&thread["thread"].as_str().unwrap().try_into().unwrap()).await.unwrap().thread;
    assert_eq!(row.episode.unwrap().events, 0);
}
