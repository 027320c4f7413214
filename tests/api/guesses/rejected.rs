//! Guesses at a value in a rejected request of another party, by the hash of its patch.

use std::collections::BTreeSet;

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use super::CARDS;
use super::steps::{BlindParties, policy};
use crate::gateway::owned_token;
use crate::rules::ApiScenario;

on_both_in_full! {
    a_rejected_patch_of_another_party_has_another_hash(super::policy()),
}

async fn a_rejected_patch_of_another_party_has_another_hash(scene: ApiScenario) {
    let g = &scene.gateway;
    let run = BlindParties::new(g).await;
    let host = owned_token(&g.service, "olgas-host", MachineRole::Host, &[], "olga").await;
    let twin = owned_token(&g.service, "twin", MachineRole::Agent, &["pinner"], "platform").await;
    let ask = json!({"patch": {"payment": {"card": CARDS[0]}, "raw_text": "not allowed"}});
    for token in [&run.setter, &run.guesser, &twin] {
        let refused = run.asks(token, &run.thread["transition"], ask.clone()).await;
        assert_eq!((refused.status, refused.code()), (422, "rejected"), "{}", refused.body);
    }
    while g.service.log.sequence().await.unwrap() > 0 {}
    let log = g.get("/v1/events?limit=500", &host).await.expect(200);
    let rejected = |it: &&Value| it["type"] == "transition.rejected";
    let events: Vec<&Value> = log["events"].as_array().unwrap().iter().filter(rejected).collect();
    let [of_setter, of_guesser, of_twin] = events.as_slice() else { panic!("{events:?}") };
    assert_ne!(of_setter["data"]["patch"], of_guesser["data"]["patch"]);
    assert_eq!(of_setter["data"]["patch"], of_twin["data"]["patch"], "one owner");
    let listed = g.get("/v1/rejections", &g.auditor).await.expect(200);
    let hashes: BTreeSet<String> =
        listed["rejections"].as_array().unwrap().iter().map(|it| it["patch_digest"].to_string()).collect();
    assert_eq!(hashes.len(), 2, "{listed}");
    scene.passes_an_audit().await;
}
