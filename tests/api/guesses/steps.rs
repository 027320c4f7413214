//! Guesses at the content of another party's step, which sets a redacted value or has a redacted argument.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::TokenId;
use serde_json::{Value, json};

use super::{CARDS, blind_writes};
use crate::gateway::{ApiResponse, TestGateway, owned_token, person};
use crate::rules::ApiScenario;

on_both_in_full! {
    a_right_guess_at_another_partys_step_is_answered_like_a_wrong_one(super::policy()),
    a_right_guess_at_another_partys_ended_step_is_judged_like_a_wrong_one(super::policy()),
    a_step_answers_every_token_of_its_party(super::policy()),
    a_step_whose_attempts_were_rejected_is_open_to_another_party(super::policy()),
}

/// The policy of blind writes, in which a rule holds tool calls and one of their arguments is redacted.
pub fn policy() -> String {
    let tools = "[[rules]]\nname = \"calls\"\nwhen = \"has(tool.name)\"\nthen = \"hold\"\nreason = \"a call\"\n\n\
                 [tools]\nhide = [\"pin\"]\n";
    blind_writes::policy().replace("[tools]\n", tools)
}

/// Two tokens of one node with different owners.
pub struct BlindParties<'a> {
    pub g: &'a TestGateway,
    pub thread: Value,
    /// The token of the party that sets the redacted value.
    pub setter: String,
    /// The token of the party that guesses.
    pub guesser: String,
}

impl<'a> BlindParties<'a> {
    pub async fn new(g: &'a TestGateway) -> Self {
        for name in ["carl", "dora", "olga"] {
            person(&g.service, name, &["reviewers"]).await;
        }
        let pinner = async |name, owner| owned_token(&g.service, name, MachineRole::Agent, &["pinner"], owner).await;
        let (setter, guesser) = (pinner("setter", "platform").await, pinner("guesser", "olga").await);
        Self { g, thread: g.thread().await, setter, guesser }
    }

    /// Sends a request of the node.
    pub async fn asks(&self, token: &str, parent: &Value, mut ask: Value) -> ApiResponse {
        (ask["node"], ask["parent"]) = (json!("pinner"), parent.clone());
        self.g.post(&format!("/v1/threads/{}/transitions", self.thread["thread"].as_str().unwrap()), token, ask).await
    }

    pub async fn cancels(&self, token: &str, held: &Value) {
        let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
        self.g.post(&path, token, json!({"reason": "later"})).await.expect(200);
    }

    /// Checks that the guesser gets the same answer for each of these requests, and that the answer names the step.
    async fn learns_nothing(&self, named: &Value, asks: [Value; 2]) {
        for parent in [&self.thread["transition"], named] {
            let mut answers = Vec::new();
            for ask in &asks {
                let mut answer = self.asks(&self.guesser, parent, ask.clone()).await;
                assert_eq!((answer.status, answer.code()), (409, "step_reused"), "{}", answer.body);
                assert_eq!(&answer.body["transition"], named);
                answer.body["request_id"].take();
                answers.push(answer.body);
            }
            assert_eq!(answers[0], answers[1]);
        }
    }
}

fn sets(card: &str) -> Value {
    json!({"step": "set-card", "patch": {"payment": {"card": card}}})
}

fn calls(pin: &str) -> Value {
    json!({"step": "call", "patch": {"target_user_id": 17}, "tool": {"name": "crm.set", "arguments": {"pin": pin}}})
}

async fn a_right_guess_at_another_partys_step_is_answered_like_a_wrong_one(scene: ApiScenario) {
    let run = BlindParties::new(&scene.gateway).await;
    let set = run.asks(&run.setter, &run.thread["transition"], sets(CARDS[0])).await.expect(201);
    run.learns_nothing(&set["transition"], CARDS.map(sets)).await;
    let held = run.asks(&run.setter, &set["transition"], calls("0142")).await.expect(202);
    run.learns_nothing(&held["transition"], ["0142", "0143"].map(calls)).await;
    scene.passes_an_audit().await;
}

async fn a_right_guess_at_another_partys_ended_step_is_judged_like_a_wrong_one(scene: ApiScenario) {
    let run = BlindParties::new(&scene.gateway).await;
    let held = run.asks(&run.setter, &run.thread["transition"], calls("0142")).await.expect(202);
    run.cancels(&run.setter, &held).await;
    for guess in ["0142", "0143"] {
        // A step of another party that has ended must not block the name.
        let asked = run.asks(&run.guesser, &run.thread["transition"], calls(guess)).await.expect(202);
        assert_ne!(asked["review"]["id"], held["review"]["id"], "{guess} is a new request");
        run.cancels(&run.guesser, &asked).await;
    }
    scene.passes_an_audit().await;
}

async fn a_step_answers_every_token_of_its_party(scene: ApiScenario) {
    let g = &scene.gateway;
    let run = BlindParties::new(g).await;
    let set = run.asks(&run.setter, &run.thread["transition"], sets(CARDS[0])).await.expect(201);
    let twin = owned_token(&g.service, "twin", MachineRole::Agent, &["pinner"], "platform").await;
    let id = TokenId::try_from(run.setter.split('_').nth(1).unwrap()).unwrap();
    for is_revoked in [false, true] {
        if is_revoked {
            g.service.identity.revoke_token(&id).await.unwrap();
        }
        let again = run.asks(&twin, &set["transition"], sets(CARDS[0])).await.expect(201);
        assert_eq!(again, set);
        let other = run.asks(&twin, &set["transition"], sets(CARDS[1])).await;
        assert_eq!((other.status, other.code()), (409, "step_reused"), "{}", other.body);
        run.learns_nothing(&set["transition"], CARDS.map(sets)).await;
    }
}

/// A rejection of another party is never compared, so the name stays free.
async fn a_step_whose_attempts_were_rejected_is_open_to_another_party(scene: ApiScenario) {
    let run = BlindParties::new(&scene.gateway).await;
    let wrong = json!({"step": "set-card", "patch": {"payment": {"card": CARDS[0]}, "raw_text": "not allowed"}});
    let refused = run.asks(&run.setter, &run.thread["transition"], wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    let set = run.asks(&run.guesser, &run.thread["transition"], sets(CARDS[0])).await.expect(201);
    let late = run.asks(&run.setter, &set["transition"], sets(CARDS[0])).await;
    assert_eq!((late.status, late.code()), (409, "step_reused"), "{}", late.body);
    scene.passes_an_audit().await;
}
