//! Tests rows of a run that an attacker sealed again.

use countersign_domain::episode::goal::{Episode, EpisodeEnd};
use countersign_domain::episode::state::RunStatus;
use countersign_domain::identity::party::Party;
use countersign_store::row::Table;

use super::*;
use crate::imports::{found, sealed};

#[tokio::test]
async fn run_with_resealed_rows_is_not_returned() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let begun = begun(g).await;
    for at in 0..3 {
        add(g, &begun, "observe", json!({"at": at})).await.expect(201);
    }
    let thread: ThreadId = serde_json::from_value(begun["thread"].clone()).unwrap();
    let (row, keys) = (g.service.threads.overview(&thread).await.unwrap().thread, g.service.core.keys().unwrap());
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let posted = reader.get::<AgentEvent>(&posted_row_id(&thread, 2)).await.unwrap().unwrap().record;
    let event = reader.get_by_alias::<Event>(&event_alias(&thread, 2)).await.unwrap().unwrap().record;
    let refused = async |what: &str| {
        let told = g.service.episodes.files_of_run("tests", &Party::Receiver, &thread).await;
        assert!(matches!(told, Err(Error::Broken(_))), "{what}: {told:?}");
    };
    put(g, &AgentEvent { payload: serde_json::from_value(json!({"at": 7})).unwrap(), ..posted.clone() });
    refused("an event says something else than its digest").await;
    put(g, &posted);
    g.service.episodes.files_of_run("tests", &Party::Receiver, &thread).await.unwrap();
    put(g, &Event { at: g.service.core.now().plus(Duration::from_secs(1)), ..event.clone() });
    refused("what comes after it links to another event").await;
    put(g, &event);
    let link = row.last_event.unwrap();
    put(g, &Thread { last_event: Some(EventLink { hash: event.hash(), ..link }), ..row.clone() });
    refused("the thread's last event is another").await;
    let mut episode = row.episode.clone().unwrap();
    episode.terms.seed += 1;
    put(g, &Thread { episode: Some(episode), ..row.clone() });
    refused("it was begun with something else").await;
    let mut episode = row.episode.clone().unwrap();
    episode.events += 1;
    put(g, &Thread { episode: Some(episode), ..row.clone() });
    put(g, &AgentEvent { number: 4, id: "another".try_into().unwrap(), ..posted });
    refused("nothing tells of one of its events").await;
    put(g, &Thread { last_event: Some(EventLink { seq: TOLD_MAX + 1, ..link }), ..row.clone() });
    let longer = g.service.episodes.files_of_run("tests", &Party::Receiver, &thread).await;
    assert!(matches!(longer, Err(Error::WrongState(_))), "more events than are told: {longer:?}");
    put(g, &row);
    g.service.episodes.files_of_run("tests", &Party::Receiver, &thread).await.unwrap();
}

#[tokio::test]
async fn audit_finds_every_resealed_row_of_a_run() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let begun = begun(g).await;
    for at in 0..2 {
        add(g, &begun, "observe", json!({"at": at})).await.expect(201);
    }
    g.pass(Duration::from_secs(5));
    add(g, &begun, "terminate", json!({"status": "partial"})).await.expect(201);
    scene.passes_an_audit().await;
    let thread: ThreadId = serde_json::from_value(begun["thread"].clone()).unwrap();
    let (row, keys) = (g.service.threads.overview(&thread).await.unwrap().thread, g.service.core.keys().unwrap());
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let posted = reader.get::<AgentEvent>(&posted_row_id(&thread, 2)).await.unwrap().unwrap().record;
    let whole = found(&scene).await;
    let told = async |what: &str, finding: &str| {
        let found = found(&scene).await;
        assert!(found.iter().any(|it| it.contains(finding)), "{what}: {found:?}");
    };
    put(g, &AgentEvent { payload: serde_json::from_value(json!({"at": 7})).unwrap(), ..posted.clone() });
    told("it says something else", "the row differs from the event that records it").await;
    sealed(g, &posted, 2);
    told("it was replaced", "the row differs from the event that records it").await;
    put(g, &posted);
    put(g, &AgentEvent { number: 9, id: "another".try_into().unwrap(), ..posted.clone() });
    told("one more", "the agent event belongs to no episode that counts it").await;
    removed(g, Table::EpisodeEvents, &posted_row_id(&thread, 9));
    removed(g, Table::EpisodeEvents, &posted_row_id(&thread, 2));
    told("one less", "the row is missing, but an event records it").await;
    put(g, &posted);
    let episode = row.episode.clone().unwrap();
    let ended = episode.ended.clone().unwrap();
    let mut terms = episode.terms.clone();
    terms.seed += 1;
    let as_said = "the end of the episode differs from its events";
    for (what, altered, finding) in [
        (
            "other terms",
            Some(Episode { terms, ..episode.clone() }),
            "the terms of the episode differ from the event that created the thread",
        ),
        ("no run", None, "the terms of the episode differ from the event that created the thread"),
        (
            "another count",
            Some(Episode { events: 2, ..episode.clone() }),
            "the thread does not count the agent events of its episode",
        ),
        ("no end", Some(Episode { ended: None, ..episode.clone() }), as_said),
        (
            "ended well",
            Some(Episode { ended: Some(EpisodeEnd { status: RunStatus::Ok, ..ended.clone() }), ..episode.clone() }),
            as_said,
        ),
        (
            "ended later",
            Some(Episode {
                ended: Some(EpisodeEnd { at: g.service.core.now().plus(Duration::from_secs(9)), ..ended.clone() }),
                ..episode.clone()
            }),
            as_said,
        ),
        (
            "ended elsewhere",
            Some(Episode { ended: Some(EpisodeEnd { seq: ended.seq - 1, ..ended.clone() }), ..episode.clone() }),
            as_said,
        ),
    ] {
        put(g, &Thread { episode: altered, ..row.clone() });
        told(what, finding).await;
    }
    put(g, &row);
    assert_eq!(found(&scene).await, whole, "put back, it is as it was");
}

fn removed(g: &TestGateway, table: Table, id: &str) {
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    assert_eq!(database.execute(&format!("DELETE FROM {} WHERE id = ?1", table.name()), [id]).unwrap(), 1);
}
