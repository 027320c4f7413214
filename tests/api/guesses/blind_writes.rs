//! Guesses that are written to the redacted value itself, by a node that does not read it.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::policy::{RedactedChange, RedactedChangeKind};
use serde_json::json;

use super::fetched::FetchedFacts;
use super::{CARDS, GuessTexts, GuessWorld, GuessingParty, POLICY, told_apart};
use crate::gateway::owned_token;

/// The same policy with a node that writes the card blind, and a writer that reads it.
pub fn policy() -> String {
    let blind = "[nodes.pinner]\nreads = [\"target_user_id\"]\nwrites = [\"target_user_id\", \"payment\"]\nrollback = true\n\n\
        [nodes.lead]\nreads = [\"$\"]\nwrites = [\"$\"]\nfork = true\n\n[nodes.database_writer]";
    let policy = POLICY.replace("[nodes.database_writer]", blind);
    policy.replace(
        r#""target_user_id", "raw_text"]\nwrites = ["result_ref"]"#,
        r#""target_user_id", "payment"]\nwrites = ["result_ref"]"#,
    )
}

/// Holds, cancels, commits and holds again, each with the same guess at the card. Everything is fetched after each step.
async fn write_blind(world: &GuessWorld, party: &GuessingParty, agent: &str) -> Vec<(String, String)> {
    let (g, mut known) = (&world.g, world.known().await);
    let thread = world.thread(&party.host, &GuessTexts::PLAIN).await;
    let name = thread["thread"].as_str().unwrap().to_owned();
    known.threads.push(name.clone());
    let transitions = format!("/v1/threads/{name}/transitions");
    let card = json!({"card": CARDS[0]});
    let ask = |parent, patch| json!({"node": "pinner", "parent": parent, "patch": patch});
    let held = json!({"target_user_id": 42, "payment": card});
    let held = known.answer(g.post(&transitions, agent, ask(&thread["transition"], held)).await, 202);
    fetch(world, party, agent, &mut known).await;
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    known.answer(g.post(&path, agent, json!({"reason": "later"})).await, 200);
    let patch = json!({"payment": card});
    let set = known.answer(g.post(&transitions, agent, ask(&thread["transition"], patch)).await, 201);
    known.answer(g.post(&transitions, agent, ask(&set["transition"], json!({"target_user_id": 43}))).await, 202);
    fetch(world, party, agent, &mut known).await;
    known.seen
}

async fn fetch(world: &GuessWorld, party: &GuessingParty, agent: &str, known: &mut FetchedFacts) {
    known.look_up(&world.g).await;
    known.fetch_as_machine(&world.g, MachineRole::Host, &party.host).await;
    known.fetch_as_machine(&world.g, MachineRole::Agent, agent).await;
    known.fetch_as_person(&world.g, &party.owner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blind_write_of_the_same_value_looks_like_any_other() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::with_policy(which, &policy()).await;
        let party = world.party().await;
        let agent = owned_token(&world.g.service, "olgas-pinner", MachineRole::Agent, &["pinner"], "olga").await;
        seen.push(write_blind(&world, &party, &agent).await);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// The line of a redacted path has the effect `changed`, in the history as in the inbox.
#[tokio::test]
async fn a_blind_write_of_the_same_value_is_a_change() {
    let world = GuessWorld::with_policy(0, &policy()).await;
    let (g, party) = (&world.g, world.party().await);
    let agent = owned_token(&g.service, "olgas-pinner", MachineRole::Agent, &["pinner"], "olga").await;
    let thread = world.thread(&party.host, &GuessTexts::PLAIN).await;
    let patch = json!({"payment": {"card": CARDS[0]}});
    g.propose(&thread["thread"], &thread["transition"], (&agent, "pinner"), patch).await.expect(201);
    let id = thread["thread"].as_str().unwrap().try_into().unwrap();
    let (_, items) = g.service.threads.history(&id, None, 25, &(&party.owner).into()).await.unwrap();
    let [RedactedChange::Hidden { pointer, effect, .. }] = items[0].diff.as_slice() else {
        panic!("{:?}", items[0].diff)
    };
    assert_eq!((pointer.as_str(), *effect), ("/payment/card", RedactedChangeKind::Changed));
}

/// Writes a guess at the card on a branch, before and after a rollback. Another party joins the branch, and the guessing
/// party asks for a rollback of the join. Everything is fetched after each step.
async fn roll_back_and_join(world: &GuessWorld, party: &GuessingParty, agent: &str) -> Vec<(String, String)> {
    let g = &world.g;
    let lead = owned_token(&g.service, "lead", MachineRole::Agent, &["lead"], "platform").await;
    let thread = world.thread(&party.host, &GuessTexts::PLAIN).await;
    let name = thread["thread"].as_str().unwrap().to_owned();
    let guess = || json!({"payment": {"card": CARDS[0]}});
    let fork = json!({"node": "lead", "branches": ["one"]});
    let branch = g.post(&format!("/v1/threads/{name}/forks"), &lead, fork).await.expect(201)["branches"][0].clone();
    // The order of events of the same millisecond is random, so the fork itself is not fetched.
    let mut known = world.known().await;
    let own = branch["thread"].as_str().unwrap().to_owned();
    known.threads.extend([name.clone(), own.clone()]);
    let set = g.propose(&branch["thread"], &branch["transition"], (agent, "pinner"), guess()).await.expect(201);
    let ask = json!({"node": "pinner", "parent": set["transition"], "to_version": 0});
    let back = known.answer(g.post(&format!("/v1/threads/{own}/rollbacks"), agent, ask).await, 201);
    g.propose(&branch["thread"], &back["transition"], (agent, "pinner"), guess()).await.expect(201);
    fetch(world, party, agent, &mut known).await;
    let joins = json!({"node": "lead", "parent": thread["transition"], "branches": ["one"], "strategy": "union"});
    let joined = g.post(&format!("/v1/threads/{name}/joins"), &lead, joins).await.expect(201);
    fetch(world, party, agent, &mut known).await;
    let ask = json!({"node": "pinner", "parent": joined["transition"], "to_version": 1});
    known.answer(g.post(&format!("/v1/threads/{name}/rollbacks"), agent, ask).await, 202);
    fetch(world, party, agent, &mut known).await;
    known.seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_or_join_over_a_blind_write_looks_the_same_for_every_guess() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::with_policy(which, &policy()).await;
        let party = world.party().await;
        let agent = owned_token(&world.g.service, "olgas-pinner", MachineRole::Agent, &["pinner"], "olga").await;
        seen.push(roll_back_and_join(&world, &party, &agent).await);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}
