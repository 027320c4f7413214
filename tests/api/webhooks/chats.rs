//! Tests Slack and Teams notifications. They contain only the fact that a review waits, and are sent only while a
//! reviewer can decide it.

use std::time::Duration;

use countersign_domain::primitives::id::InterruptId;
use countersign_domain::reviews::VoteVerdict;

use countersign_service::identity::revocation::SignInAccess;
use serde_json::{Value, json};

use super::receiver::{BROKEN, FINE, ReceiverReply, WebhookReceiver};
use super::scene::{WebhookScenario, path};
use crate::gateway::ballot;
use crate::interrupts::asked;
use crate::mail::PATIENCE;
use crate::under_new_policy;

const TOOLS: &str = r#"flow = "payments"

[nodes.planner]
reads = ["$"]
tools = ["issue_refund", "crm.*"]

[tools.issue_refund]
title = "Refund a payment"

[[rules]]
tools = ["*"]
when = "true"
then = "hold"
reason = "a call requires approval"

[[approval.stages]]
groups = ["reviewers"]
"#;

on_both! {
    chat_message_about_a_review_has_no_proposed_values,
    chat_message_names_a_tool_only_if_the_policy_does,
    chat_message_about_an_interrupt_has_no_text_of_its_host,
    review_without_eligible_reviewers_is_sent_to_no_chat,
    decided_review_does_not_change_the_health_of_a_chat,
    chat_is_tested_by_a_message_and_has_no_secret,
}

async fn chat(s: &WebhookScenario, receiver: &WebhookReceiver, kind: &str) -> Value {
    s.endpoint_with(receiver, json!({"kind": kind})).await
}

async fn chat_message_about_a_review_has_no_proposed_values(s: WebhookScenario) {
    for kind in ["slack", "teams"] {
        let receiver = WebhookReceiver::start().await;
        let endpoint = chat(&s, &receiver, kind).await;
        let thread = s.g.thread().await;
        let patch = json!({"target_user_id": 918_273_645, "requested_action": "update_email"});
        let asker = (s.g.planner.as_str(), "planner");
        let held = s.g.propose(&thread["thread"], &thread["transition"], asker, patch).await.expect(202);
        s.send().await;
        assert_eq!(receiver.got().len(), 0, "{kind}: somebody may be looking already");
        s.g.pass(PATIENCE);
        s.send().await;
        s.send().await;
        let got = receiver.got();
        assert_eq!(got.len(), 1, "{kind}");
        let review = held["review"]["id"].as_str().unwrap();
        let (page, ends) = (format!("{}/reviews/{review}", s.g.url), held["review"]["expires_at"].as_str().unwrap());
        for told in ["payments", "target_user_id", review, page.as_str(), ends] {
            assert!(got[0].body.replace('\\', "").contains(told), "{told}: {}", got[0].body);
        }
        let body = got[0].body.replace(review, "");
        let names = [thread["thread"].as_str().unwrap(), held["transition"].as_str().unwrap()];
        for never in
            ["918273645", "update_email", "4111111111111111", "approve", "/decision", "csrf", names[0], names[1]]
        {
            assert!(!body.contains(never), "{never}: {body}");
        }
        assert!(got[0].headers.keys().all(|it| !it.starts_with("webhook-")), "{:?}", got[0].headers);
        let shown = s.deliveries(&endpoint).await[0]["delivery"].clone();
        let shown = s.g.get(&path(&endpoint, &format!("/deliveries/{shown}")), &s.g.auditor).await.expect(200);
        assert_eq!(shown["body"].as_str().unwrap(), got[0].body);
        s.g.vote(&s.g.bob, &held, VoteVerdict::Deny).await.unwrap();
        s.g.pass(PATIENCE);
        s.send().await;
        assert_eq!(receiver.got().len(), 1, "{kind}: nor what people decided");
    }
    s.is_sound().await;
}

async fn chat_message_names_a_tool_only_if_the_policy_does(s: WebhookScenario) {
    under_new_policy::activate(&s.g, TOOLS, &[]).await;
    let receiver = WebhookReceiver::start().await;
    chat(&s, &receiver, "slack").await;
    for (name, told) in [
        ("issue_refund", "Call: planner wants to call issue_refund (Refund a payment)"),
        ("crm.ignore_the_rules", "Call: planner wants to call a tool"),
    ] {
        let new = json!({"flow": "payments", "state": {}});
        let thread = s.g.post("/v1/threads", &s.g.host, new).await.expect(201);
        let tool = json!({"name": name, "arguments": {"amount": 918_273_645}});
        let body = json!({"node": "planner", "parent": thread["transition"], "patch": {}, "format": "merge-patch", "tool": tool});
        let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
        let held = s.g.post(&path, &s.g.planner, body).await.expect(202);
        s.g.pass(PATIENCE);
        s.send().await;
        let got = receiver.got();
        let body = &got.last().unwrap().body;
        assert!(body.contains(told), "{told}: {body}");
        assert!(!body.contains("918273645") && !body.contains("ignore_the_rules"), "{body}");
        s.g.vote(&s.g.bob, &held, VoteVerdict::Deny).await.unwrap();
    }
}

async fn chat_message_about_an_interrupt_has_no_text_of_its_host(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    chat(&s, &receiver, "slack").await;
    let taken = s.g.post("/v1/interrupts", &s.g.host, asked()).await.expect(202);
    let mut other = asked();
    other["transition_digest"] = json!("e".repeat(64));
    let over = s.g.post("/v1/interrupts", &s.g.host, other).await.expect(202);
    let denial = ballot(&json!({"transition": over["digest"]}), VoteVerdict::Deny);
    let id = InterruptId::try_from(over["id"].as_str().unwrap()).unwrap();
    s.g.service.interrupts.vote_on_interrupt(&s.g.bob.id, &id, &denial, None).await.unwrap();
    s.send().await;
    s.g.pass(PATIENCE);
    s.send().await;
    let got = receiver.got();
    assert_eq!(got.len(), 1);
    assert!(got[0].body.contains(&format!("{}/interrupts/{}", s.g.url, taken["id"].as_str().unwrap())));
    for never in ["target_user_id", "order-8812", "Another user", "the customer wrote so", "7652e9dcf1db4576"] {
        assert!(!got[0].body.contains(never), "{never}: {}", got[0].body);
    }
}

async fn review_without_eligible_reviewers_is_sent_to_no_chat(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = chat(&s, &receiver, "teams").await;
    let held = s.g.held(&s.g.thread().await).await;
    s.send().await;
    s.g.vote(&s.g.alice, &held, VoteVerdict::Deny).await.unwrap();
    s.g.held(&s.g.thread().await).await;
    s.send().await;
    for name in ["alice", "bob"] {
        s.g.service.identity.set_admission(name, SignInAccess::Barred).await.unwrap();
    }
    s.g.pass(PATIENCE);
    s.send().await;
    assert_eq!(receiver.got().len(), 0);
    let deliveries = s.deliveries(&endpoint).await;
    assert_eq!(deliveries.len(), 2);
    for delivery in deliveries {
        assert_eq!(delivery["state"], "delivered");
        assert!(delivery["attempts"][0]["detail"].as_str().unwrap().contains("Nothing was sent"), "{delivery}");
    }
    s.is_sound().await;
}

async fn decided_review_does_not_change_the_health_of_a_chat(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = chat(&s, &receiver, "slack").await;
    receiver.now(BROKEN);
    let (first, other) = (s.g.held(&s.g.thread().await).await, s.g.held(&s.g.thread().await).await);
    s.send().await;
    s.g.pass(PATIENCE);
    s.send().await;
    assert_eq!(receiver.got().len(), 2);
    let failing = s.now(&endpoint).await["failing_since"].clone();
    assert!(failing.is_string());
    s.g.vote(&s.g.alice, &first, VoteVerdict::Deny).await.unwrap();
    s.g.pass(Duration::from_secs(10));
    receiver.now(ReceiverReply::Says("410 Gone"));
    s.send().await;
    assert_eq!(receiver.got().len(), 3, "what was decided meanwhile is not sent again");
    let now = s.now(&endpoint).await;
    assert_eq!((&now["state"], &now["failing_since"]), (&json!("disabled"), &failing));
    // A redelivery of a decided review does not enable the endpoint again, since nothing was sent.
    receiver.now(FINE);
    s.g.vote(&s.g.alice, &other, VoteVerdict::Deny).await.unwrap();
    for delivery in s.deliveries(&endpoint).await {
        let again = path(&endpoint, &format!("/deliveries/{}/redelivery", delivery["delivery"]));
        s.g.post(&again, &s.g.admin, json!({})).await.expect(202);
    }
    assert_eq!(s.send().await, 2);
    assert_eq!((receiver.got().len(), &s.now(&endpoint).await["state"]), (3, &json!("disabled")));
    s.is_sound().await;
}

async fn chat_is_tested_by_a_message_and_has_no_secret(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = chat(&s, &receiver, "slack").await;
    assert!(endpoint.get("secret").is_none(), "{endpoint}");
    let tried = s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    assert_eq!(tried["arrived"], true);
    let body = &receiver.got()[0].body;
    assert!(
        body.contains("Test: Countersign posts pending reviews here") && body.contains(&path(&endpoint, "")[3..]),
        "{body}"
    );
    s.g.post(&path(&endpoint, "/secret"), &s.g.admin, json!({})).await.expect(409);
}
