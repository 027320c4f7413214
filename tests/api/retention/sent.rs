//! Tests the events of archived versions that are sent to endpoints with history.

use countersign::worker::{deliver, sequence};

use super::*;
use crate::webhooks::receiver::WebhookReceiver;

on_both! {
    unreadable_version_is_not_sent_and_delays_no_other(super::retaining("versions = 10")),
}

async fn sends(scene: &ApiScenario) {
    let g = &scene.gateway;
    while sequence::run_once(&g.service).await.unwrap() > 0 {}
    let sender = deliver::DeliveryWorker::new(&g.service);
    sender.round().await.unwrap();
    sender.rest().await.unwrap();
}

async fn unreadable_version_is_not_sent_and_delays_no_other(scene: ApiScenario) {
    let g = &scene.gateway;
    // The first version existed before any commit.
    let heads = grown(g, VERSIONS).await.1.split_off(1);
    works(g).await;
    let archives = archives(&scene).await;
    let first = archives.iter().min_by_key(|it| it.from).unwrap();
    let (file, gone) = (path(g, first), first.to);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let receiver = WebhookReceiver::start().await;
    let endpoint = json!({"name": "past", "url": receiver.url, "events": ["transition.committed"], "after": 0});
    let endpoint = g.post("/v1/endpoints", &g.admin, endpoint).await.expect(201);
    sends(&scene).await;
    let told = || receiver.got().iter().map(|it| it.json()["data"]["transition"].clone()).collect::<Vec<_>>();
    let missing: Vec<&Value> = heads.iter().filter(|it| !told().contains(it)).collect();
    assert_eq!(missing.len() as u64, gone, "all but those of the file: {missing:?}");
    let path = format!("/v1/endpoints/{}/deliveries", endpoint["id"].as_str().unwrap());
    let deliveries = g.get(&path, &g.auditor).await.expect(200)["deliveries"].clone();
    let failed = |it: &Value| it["attempts"].as_array().unwrap().last().unwrap()["failure"] == "unsendable";
    assert!(deliveries.as_array().unwrap().iter().any(failed), "{deliveries:#}");
    std::fs::write(&file, bytes).unwrap();
    for _ in 0..VERSIONS {
        if heads.iter().all(|it| told().contains(it)) {
            break;
        }
        g.pass(Duration::from_secs(600));
        sends(&scene).await;
    }
    assert!(heads.iter().all(|it| told().contains(it)), "with the file back, all of it is told");
    scene.passes_an_audit().await;
}
