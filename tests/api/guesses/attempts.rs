//! Guesses at a value in a request of another party that was denied or cancelled, by the number of attempts left.

use serde_json::{Value, json};

use super::CARDS;
use super::steps::{BlindParties, policy};
use crate::gateway::ApiResponse;
use crate::rules::ApiScenario;

on_both_in_full! {
    attempts_at_an_unread_value_count_for_their_party_only(super::two_attempts()),
    attempts_at_a_tool_call_count_for_their_party_only(super::two_attempts()),
    attempts_at_a_readable_value_count_for_every_party_of_the_node(super::two_attempts()),
}

/// Two attempts for each change, of which the card is one.
fn two_attempts() -> String {
    policy()
        .replace("attempts = 10", "attempts = 2")
        .replace("[\"target_user_id\"]\n\n[nodes.planner]", "[\"target_user_id\", \"payment\"]\n\n[nodes.planner]")
}

struct AttemptGuesses<'a> {
    parties: BlindParties<'a>,
    head: Value,
    moves: u32,
}

impl<'a> AttemptGuesses<'a> {
    async fn new(scene: &'a ApiScenario) -> Self {
        let parties = BlindParties::new(&scene.gateway).await;
        let head = parties.thread["transition"].clone();
        Self { parties, head, moves: 0 }
    }

    /// Sends a request on a new head, where the node has opened no review yet.
    async fn asks(&mut self, token: &str, ask: Value) -> ApiResponse {
        let g = self.parties.g;
        self.moves += 1;
        let patch = json!({"raw_text": format!("harmless {}", self.moves)});
        let moved = g.propose(&self.parties.thread["thread"], &self.head, (&g.planner, "planner"), patch).await;
        self.head = moved.expect(201)["transition"].clone();
        self.parties.asks(token, &self.head, ask).await
    }

    async fn is_cancelled(&mut self, token: &str, ask: Value) {
        let held = self.asks(token, ask).await.expect(202);
        self.parties.cancels(token, &held).await;
    }

    async fn is_exhausted(&mut self, token: &str, ask: Value) {
        let refused = self.asks(token, ask).await;
        assert_eq!((refused.status, &refused.body["errors"][0]["code"]), (422, &json!("attempts_exhausted")));
    }

    /// Checks that a guess at a request with no attempts left is answered like any other, and that the guesser has its
    /// own attempts.
    async fn counts_by_party(mut self, [right, wrong]: [Value; 2]) {
        let (setter, guesser) = (self.parties.setter.clone(), self.parties.guesser.clone());
        for _ in 0..2 {
            self.is_cancelled(&setter, right.clone()).await;
        }
        for _ in 0..2 {
            self.is_cancelled(&guesser, wrong.clone()).await;
            self.is_cancelled(&guesser, right.clone()).await;
        }
        for (token, ask) in [(&setter, &right), (&guesser, &right), (&guesser, &wrong)] {
            self.is_exhausted(token, ask.clone()).await;
        }
        self.is_cancelled(&setter, wrong).await;
    }
}

async fn attempts_at_an_unread_value_count_for_their_party_only(scene: ApiScenario) {
    let asks = CARDS.map(|card| json!({"patch": {"payment": {"card": card}}}));
    AttemptGuesses::new(&scene).await.counts_by_party(asks).await;
    scene.passes_an_audit().await;
}

async fn attempts_at_a_tool_call_count_for_their_party_only(scene: ApiScenario) {
    let asks = ["0142", "0143"]
        .map(|pin| json!({"patch": {"target_user_id": 17}, "tool": {"name": "crm.set", "arguments": {"pin": pin}}}));
    AttemptGuesses::new(&scene).await.counts_by_party(asks).await;
    scene.passes_an_audit().await;
}

async fn attempts_at_a_readable_value_count_for_every_party_of_the_node(scene: ApiScenario) {
    let mut run = AttemptGuesses::new(&scene).await;
    let (setter, guesser) = (run.parties.setter.clone(), run.parties.guesser.clone());
    let ask = json!({"patch": {"target_user_id": 42}});
    for _ in 0..2 {
        run.is_cancelled(&setter, ask.clone()).await;
    }
    run.is_exhausted(&guesser, ask).await;
    scene.passes_an_audit().await;
}
