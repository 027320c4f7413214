//! Two runs: one that was planned, held, approved and ended, and one that goes on. And two that were imported.

use std::path::Path;

use countersign_domain::episode::agent_event::{AgentEvent, Phase};
use countersign_domain::episode::verify::{FileContent, Folder};
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::{EventId, NodeId};
use countersign_domain::reviews::VoteVerdict;

use countersign_service::Service;
use countersign_service::episodes::import::ImportOutcome;
use countersign_service::episodes::record::NewEvent;
use countersign_service::threads::create::NewThread;
use serde_json::{Value, json};

use super::{HistoryActors, admin, ballot, first_state, held, propose, thread};

pub async fn begins(service: &Service, cast: &HistoryActors, name: &str) {
    let episode = json!({"goal": {"task": "Pay Eva", "type": "payment"}, "seed": 7, "tags": {"team": "platform"},
        "using": "graph", "intuition_mode": "advisory"});
    let new = NewThread {
        flow: cast.host.record.flow.clone().unwrap(),
        thread: Some(thread(name)),
        state: first_state(),
        context: Default::default(),
        episode: serde_json::from_value(episode).unwrap(),
    };
    service.threads.create_thread(&cast.host, &new).await.unwrap();
}

pub async fn says(service: &Service, cast: &HistoryActors, name: &str, (phase, payload): (Phase, Value)) -> AgentEvent {
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    let new = NewEvent {
        thread: thread(name),
        node: NodeId::try_from("planner").unwrap(),
        phase,
        payload,
        caused_by: None,
        evidence_ids: vec!["mail-1".to_owned()],
    };
    service.episodes.add_episode_event(&cast.agent, &new).await.unwrap()
}

pub async fn runs(service: &Service, cast: &HistoryActors) {
    for name in ["run", "running"] {
        begins(service, cast, name).await;
        let plan = json!({"step_records": [{"id": "pay", "kind": "act", "description": "Pay"}]});
        says(service, cast, name, (Phase::Plan, plan)).await;
    }
    let asked = propose(service, &cast.agent, "run", "planner", json!({"target_user_id": 42})).await;
    let (transition, review) = held(&asked);
    let plan: EventId = says(service, cast, "run", (Phase::Observe, json!({"note": "they were asked"}))).await.id;
    service.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
    let act = NewEvent {
        thread: thread("run"),
        node: NodeId::try_from("planner").unwrap(),
        phase: Phase::Act,
        payload: serde_json::from_value(json!({"step_id": "pay", "step_status": "done", "outcome": "ok"})).unwrap(),
        caused_by: Some(plan),
        evidence_ids: Vec::new(),
    };
    service.episodes.add_episode_event(&cast.agent, &act).await.unwrap();
    says(service, cast, "run", (Phase::Terminate, json!({"status": "ok", "message": "Eva is paid."}))).await;
}

/// The first of them as it was exported, and the published golden run.
pub async fn imports(service: &Service) {
    let files = service.episodes.files_of_run("tests", &Party::Receiver, &thread("run")).await.unwrap();
    let own = Folder { entries: files.into_iter().map(|(name, bytes)| (name, FileContent::Bytes(bytes))).collect() };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode/golden");
    for folder in [own, countersign::episode_folder::read(&golden).unwrap()] {
        let done = service.episodes.import_episode(&admin(), &folder, None).await.unwrap();
        assert!(matches!(done, ImportOutcome::Kept(..)), "{done:?}");
    }
}
