//! Guesses of one person whose tokens have different owners: the person, and a group of the person.

use countersign_domain::identity::account::MachineRole;
use serde_json::json;

use super::{CARDS, GuessTexts, GuessWorld};
use crate::gateway::owned_token;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_a_person_and_of_their_group_are_one_party() {
    for which in 0..2 {
        let world = GuessWorld::new(which).await;
        let (g, party) = (&world.g, world.party().await);
        let teams = owned_token(&g.service, "teams-agent", MachineRole::Agent, &["planner"], "reviewers").await;
        let thread = world.thread(&party.host, &GuessTexts::PLAIN).await;
        let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
        let ask = json!({"node": "planner", "parent": thread["transition"], "patch": {"raw_text": CARDS[0]}});
        let set = g.post(&path, &teams, ask).await.expect(201);
        let path = format!("/v1/transitions/{}", set["transition"].as_str().unwrap());
        let shown = g.get(&path, &party.host).await.expect(200);
        assert_eq!(shown["diff"][0]["after"], CARDS[0], "{}", shown["diff"]);
    }
}
