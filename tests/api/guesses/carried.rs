//! Guesses that another party carries on, where the state has more than one possible source of a text.

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use super::{CARDS, GuessTexts, GuessWorld, GuessingParty, POLICY, told_apart};
use crate::gateway::owned_token;

/// A node that guesses, also at a path that it does not read, and a node of another party that reads everything.
fn policy() -> String {
    let nodes = "[nodes.guesser]\nreads = [\"notes\"]\nwrites = [\"notes\", \"drop\"]\n\n\
        [nodes.lead]\nreads = [\"$\"]\nwrites = [\"$\"]\nfork = true\n\n[nodes.database_writer]";
    POLICY.replace("[nodes.database_writer]", nodes)
}

struct Carrying<'w> {
    world: &'w GuessWorld,
    party: GuessingParty,
    guesser: String,
    lead: String,
    thread: Value,
}

impl<'w> Carrying<'w> {
    async fn new(world: &'w GuessWorld) -> Self {
        let (g, party) = (&world.g, world.party().await);
        let guesser = owned_token(&g.service, "olgas-guesser", MachineRole::Agent, &["guesser"], "olga").await;
        let lead = owned_token(&g.service, "lead", MachineRole::Agent, &["lead"], "platform").await;
        let thread = world.thread(&party.host, &GuessTexts::PLAIN).await;
        Self { world, party, guesser, lead, thread }
    }

    /// Commits guesses and returns the new head.
    async fn guess(&self, thread: &Value, parent: &Value, patch: Value) -> Value {
        let by = (self.guesser.as_str(), "guesser");
        self.world.g.propose(thread, parent, by, patch).await.expect(201)["transition"].clone()
    }

    /// Returns the transition as the guessing party's host gets it.
    async fn shown(&self, transition: &Value) -> Value {
        let path = format!("/v1/transitions/{}", transition.as_str().unwrap());
        self.world.g.get(&path, &self.party.host).await.expect(200)
    }
}

/// Fails if the two worlds differ in what `step` returns.
async fn assert_alike(step: impl AsyncFn(&Carrying<'_>) -> Value) {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::with_policy(which, &policy()).await;
        let carrying = Carrying::new(&world).await;
        seen.push(vec![("shown".to_owned(), step(&carrying).await["diff"].to_string())]);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

#[tokio::test]
async fn a_node_that_reads_the_value_moves_items_of_a_list() {
    assert_alike(async |it| {
        let head = it.guess(&it.thread["thread"], &it.thread["transition"], json!({"notes": {"list": CARDS}})).await;
        let patch = json!([{"op": "add", "path": "/notes/list/0", "value": "first"}]);
        let ask = json!({"node": "lead", "parent": head, "format": "json-patch", "patch": patch});
        let path = format!("/v1/threads/{}/transitions", it.thread["thread"].as_str().unwrap());
        let moved = it.world.g.post(&path, &it.lead, ask).await.expect(201);
        it.shown(&moved["transition"]).await
    })
    .await;
}

#[tokio::test]
async fn a_node_that_reads_the_value_moves_guesses_to_another_path() {
    assert_alike(async |it| {
        let guesses = json!({"notes": {"old": {"one": CARDS[0], "other": CARDS[1]}}});
        let head = it.guess(&it.thread["thread"], &it.thread["transition"], guesses).await;
        let patch = json!([{"op": "move", "from": "/notes/old", "path": "/notes/new"}]);
        let ask = json!({"node": "lead", "parent": head, "format": "json-patch", "patch": patch});
        let path = format!("/v1/threads/{}/transitions", it.thread["thread"].as_str().unwrap());
        let moved = it.world.g.post(&path, &it.lead, ask).await.expect(201);
        it.shown(&moved["transition"]).await
    })
    .await;
}

/// A call of another party has a redacted argument. The guesses stand in the state and in events beside it.
#[tokio::test]
async fn a_call_of_another_party_does_not_show_which_guess_is_right() {
    for which in 0..2 {
        let policy = policy().replace("allow = [\"crm.*\"]", "allow = [\"crm.*\"]\nhide = [\"pin\"]");
        let world = GuessWorld::with_policy(which, &policy).await;
        let it = Carrying::new(&world).await;
        let (g, id) = (&world.g, it.thread["thread"].as_str().unwrap());
        let head = it.guess(&it.thread["thread"], &it.thread["transition"], json!({"notes": {"list": CARDS}})).await;
        let call = |patch: Value, parent: &Value| {
            let tool = json!({"name": "crm.set", "arguments": {"pin": world.own[0]}});
            json!({"node": "lead", "parent": parent, "patch": patch, "tool": tool})
        };
        let path = format!("/v1/threads/{id}/transitions");
        let called = g.post(&path, &it.lead, call(json!({"requested_action": "set"}), &head)).await.expect(201);
        let thread = id.try_into().unwrap();
        let compared = g.service.threads.compare(&thread, 1, 3, &(&it.party.owner).into()).await.unwrap();
        let compared = format!("{:?}", compared.differing.opening);
        assert!(CARDS.iter().all(|it| compared.contains(*it)), "{which}: {compared}");
        let held = call(json!({"target_user_id": 42}), &called["transition"]);
        g.post(&path, &it.lead, held).await.expect(202);
        for guess in CARDS {
            let event = json!({"node": "guesser", "phase": "plan", "payload": {"text": guess}});
            g.post(&format!("/v1/threads/{id}/episode/events"), &it.guesser, event).await.expect(201);
        }
        let run = g.http.get(format!("{}/v1/threads/{id}/episode/events.jsonl", g.url)).bearer_auth(&it.party.host);
        let run = run.send().await.unwrap().text().await.unwrap();
        assert!(CARDS.iter().all(|it| run.contains(&format!(r#""text":"{it}""#))), "{which}: {run}");
    }
}

#[tokio::test]
async fn a_join_takes_guesses_over_that_were_there_before() {
    assert_alike(async |it| {
        let guesses = || json!({"drop": {"one": CARDS[0], "other": CARDS[1]}});
        let head = it.guess(&it.thread["thread"], &it.thread["transition"], guesses()).await;
        let (g, id) = (&it.world.g, it.thread["thread"].as_str().unwrap());
        let fork = json!({"node": "lead", "branches": ["one"]});
        let forked = g.post(&format!("/v1/threads/{id}/forks"), &it.lead, fork).await.expect(201);
        let branch = &forked["branches"][0];
        it.guess(&branch["thread"], &branch["transition"], guesses()).await;
        let join = json!({"node": "lead", "parent": head, "branches": ["one"], "strategy": "union"});
        let joined = g.post(&format!("/v1/threads/{id}/joins"), &it.lead, join).await.expect(201);
        it.shown(&joined["transition"]).await
    })
    .await;
}

/// The guesses are possible sources of the copy, but so is the redacted value.
#[tokio::test]
async fn many_copies_of_a_guess_do_not_show_a_copy_by_another_party() {
    let world = GuessWorld::with_policy(0, &policy()).await;
    let it = Carrying::new(&world).await;
    let guesses = json!({"notes": {"list": vec![CARDS[0]; 40]}});
    let head = it.guess(&it.thread["thread"], &it.thread["transition"], guesses).await;
    let by = (it.lead.as_str(), "lead");
    let copied = world.g.propose(&it.thread["thread"], &head, by, json!({"raw_text": CARDS[0]})).await.expect(201);
    let shown = it.shown(&copied["transition"]).await;
    assert!(!shown["diff"].to_string().contains(CARDS[0]), "{}", shown["diff"]);
}
