//! Guesses in the comment of a vote on an interrupt, which its answer quotes.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::InterruptId;
use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use super::{CARDS, GuessWorld};
use crate::gateway::{ballot, owned_token, person};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voters_host_learns_nothing_from_guesses_in_the_comment() {
    for which in 0..2 {
        let world = GuessWorld::new(which).await;
        let g = &world.g;
        let erin = person(&g.service, "erin", &["reviewers"]).await;
        let host = owned_token(&g.service, "erins-host", MachineRole::Host, &[], "erin").await;
        let interrupt = json!({
            "kind": "state_transition_review", "transition_digest": "d".repeat(64), "interrupt_id": "7652e9dcf1db4576",
            "changed_keys": ["payment"], "redacted_diff": {"payment": {"card": world.own[0]}},
        });
        let taken = g.post("/v1/interrupts", &g.host, interrupt).await.expect(202);
        let id = InterruptId::try_from(taken["id"].as_str().unwrap()).unwrap();
        let words = format!("{} or {}", CARDS[0], CARDS[1]);
        for voter in [&g.alice, &erin] {
            let mut vote = ballot(&json!({"transition": taken["digest"]}), VoteVerdict::Deny);
            vote.comment = Some(words.clone());
            g.service.interrupts.vote_on_interrupt(&voter.id, &id, &vote, None).await.unwrap();
        }
        let path = format!("/v1/interrupts/{id}");
        assert_eq!(g.get(&path, &host).await.expect(200)["comment"], words.as_str());
        let masked = words.replace(world.own[0], "[hidden]");
        assert_eq!(g.get(&path, &g.host).await.expect(200)["comment"], masked.as_str());
        while g.service.log.sequence().await.unwrap() > 0 {}
        for token in [&host, &g.host] {
            let log = g.get("/v1/events?limit=500", token).await.expect(200);
            let denied = |it: &&Value| it["type"] == "interrupt.denied";
            let event = log["events"].as_array().unwrap().iter().find(denied).unwrap();
            assert_eq!(event["data"]["answer"]["comment"], "[shown on the interrupt's page]");
        }
        // The signed answer contains the digest, which covers the redacted diff without a salt.
        let answer = g.get(&path, &g.host).await.expect(200)["answer"].clone();
        let auditor = owned_token(&g.service, "eye", MachineRole::Auditor, &[], "platform").await;
        let eye = g.service.identity.token_of(&auditor).await.unwrap().record;
        let told = g.service.interrupts.interrupt_answer(&id, &eye).await.unwrap().unwrap();
        assert_eq!(told.answer.as_deref(), answer.as_str());
        assert_eq!(g.get(&path, &host).await.expect(200).get("answer"), None);
        let digest = taken["digest"].as_str().unwrap();
        for (token, own) in [(&host, false), (&g.host, true), (&auditor, true)] {
            let log = g.get("/v1/events?limit=500", token).await.expect(200).to_string();
            assert_eq!(log.contains(answer.as_str().unwrap()), own);
            assert_eq!(log.contains(digest), own, "{log}");
        }
    }
}
