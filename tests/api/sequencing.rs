//! Tests the sequencing of events. An event whose predecessor was deleted is reported and does not delay other threads.
//! On both databases.

use countersign_domain::log::event::Event;

use countersign_service::error::Error;
use countersign_store::change::Draft;
use countersign_store::record::{RecordReader, Stored};
use countersign_store::records::UnsequencedEvent;
use countersign_store::{LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

use crate::gateway::{POLICY, TestGateway};
use crate::rules::ApiScenario;

on_both! {
    event_after_a_deleted_event_does_not_delay_other_threads(super::POLICY),
}

/// So many that one read of the oldest unsequenced events finds no others.
const STUCK: usize = 260;

async fn says(g: &TestGateway, thread: &Value, head: &mut Value, text: &str) {
    let done = g.propose(thread, head, (&g.parser, "input_parser"), json!({"raw_text": text})).await.expect(201);
    *head = done["transition"].clone();
}

async fn placed(g: &TestGateway) -> Vec<Event> {
    g.service.log.events_after(0, None, 1000).await.unwrap().0.into_iter().map(|it| it.event).collect()
}

async fn event_after_a_deleted_event_does_not_delay_other_threads(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    while g.service.log.sequence().await.unwrap() > 0 {}
    let mut head = made["transition"].clone();
    says(g, &made["thread"], &mut head, "what nobody is to be told").await;
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let waiting: Vec<Stored<UnsequencedEvent>> = reader.list(RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let mut draft = Draft::new(keys.row(), g.service.core.now());
    draft.remove(&waiting[0]);
    scene.store().commit(draft.finish().change).await.unwrap();
    for number in 0..STUCK {
        says(g, &made["thread"], &mut head, &format!("text {number}")).await;
    }
    let other = g.thread().await;
    assert!(g.service.log.sequence().await.unwrap() > 0);
    assert!(placed(g).await.iter().any(|it| json!(it.thread) == other["thread"]), "others are told of");
    let said = g.service.log.sequence().await;
    assert!(matches!(said, Err(Error::Broken("the log"))), "{said:?}");
    let of_it = placed(g).await.into_iter().filter(|it| json!(it.thread) == made["thread"]).count();
    assert_eq!(of_it, 1, "nothing of a thread comes before what came before it");
    assert!(!scene.findings().await.is_empty());
}
