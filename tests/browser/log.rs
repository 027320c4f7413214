//! Audit log pages: filters, access and pages of events.

use countersign_domain::identity::account::PersonRole;
use countersign_domain::primitives::id::{Jti, ReviewId};

use countersign_service::writes::revoke_receipt::Revoker;
use serde_json::{Value, json};

use crate::forms::ManualForm;
use crate::gateway::{BrowserGateway, order, spawn_gateway};
use crate::history::lived;

async fn placed(gateway: &BrowserGateway) {
    while gateway.service.log.sequence().await.unwrap() > 0 {}
}

/// The names of the events on a page, the last first.
async fn names(hand: &ManualForm<'_>, path: &str) -> Vec<String> {
    let text = hand.get(path).await.text;
    text.split("<code class=\"quiet\">").skip(1).filter_map(|it| it.split('<').next().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_found_by_kind_thread_flow_person_and_time() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    lived(&gateway, &payments).await;
    gateway.thread(&payments, "order-1", &order()).await;
    gateway.clock.advance(std::time::Duration::from_secs(7_200));
    gateway.thread(&payments, "order-2", &order()).await;
    placed(&gateway).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let all = names(&ana, "/log").await;
    assert_eq!(all.first().map(String::as_str), Some("thread.created"), "the last first: {all:?}");
    assert_eq!(names(&ana, "/log?kind=write").await, ["write.confirmed", "write.reserved"]);
    assert_eq!(names(&ana, "/log?kind=thread").await.len(), 3);
    assert_eq!(names(&ana, "/log?kind=thread.closed").await, Vec::<String>::new());
    assert_eq!(names(&ana, "/log?thread=order-1").await, ["thread.created"]);
    assert_eq!(names(&ana, "/log?thread=order-8812&kind=review").await, ["review.vote"]);
    assert!(ana.get("/log?thread=order-none").await.text.contains("This thread does not exist."));
    assert_eq!(names(&ana, "/log?who=ana").await, ["review.vote"]);
    assert_eq!(names(&ana, "/log?flow=refunds").await, Vec::<String>::new());
    assert!(names(&ana, "/log?flow=payments").await.contains(&"policy.activated".to_owned()));
    // The very hour of the second thread, though the next one may have begun since.
    let second = "order-2".try_into().unwrap();
    let now = gateway.service.threads.overview(&second).await.unwrap().thread.created_at.to_string();
    let hour = format!("{}:00", &now[..13]);
    assert_eq!(names(&ana, &format!("/log?since={}", hour.replace(':', "%3A"))).await, ["thread.created"]);
    assert_eq!(names(&ana, &format!("/log?until={}&kind=thread", hour.replace(':', "%3A"))).await.len(), 2);
    assert!(ana.get("/log?since=yesterday").await.text.contains("needs a date and time"));
    // The filter `who` matches names only. A reason can contain redacted values, which guesses must not confirm.
    let admin = gateway.token(countersign_domain::identity::account::MachineRole::Admin, "ops", "", &[]).await;
    let closed = gateway.post(&admin, "/v1/threads/order-2/closing", &json!({"reason": "guessed"})).await;
    assert!(closed.status < 300, "{closed:?}");
    placed(&gateway).await;
    assert_eq!(names(&ana, "/log?kind=thread.closed").await, ["thread.closed"]);
    assert_eq!(names(&ana, "/log?who=guessed").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_events_are_on_the_next_page() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.thread(&payments, "first", &order()).await;
    placed(&gateway).await;
    for number in 0..60 {
        gateway.thread(&payments, &format!("order-{number}"), &order()).await;
    }
    placed(&gateway).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let first = ana.get("/log?kind=thread").await.text;
    assert_eq!(first.matches(">thread.created<").count(), 50);
    let more = first.split("Older events").next().unwrap().rsplit("href=\"").next().unwrap().split('"').next().unwrap();
    let more = more.replace("&#38;", "&");
    let second = ana.get(&more).await.text;
    assert_eq!(second.matches(">thread.created<").count(), 11, "{more}");
    assert!(second.contains(">first<") && !second.contains("Older events"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewers_read_neither_access_events_nor_the_whole_audit_log() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    lived(&gateway, &payments).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    placed(&gateway).await;
    let (ana, eve) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "eve").await);
    placed(&gateway).await;
    assert!(!names(&ana, "/log").await.iter().any(|it| it.starts_with("access.")));
    assert_eq!(names(&ana, "/log?kind=access").await, Vec::<String>::new());
    assert!(names(&eve, "/log?kind=access").await.contains(&"access.signed_in".to_owned()));
    let path = eve.get("/log?kind=access").await.text;
    let path = path.split("href=\"/log/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(eve.get(&format!("/log/{path}")).await.status, 200);
    assert_eq!(ana.get(&format!("/log/{path}")).await.status, 404);
    assert_eq!(ana.get("/log.jsonl").await.status, 403);
    let file = eve.get("/log.jsonl?flow=payments").await;
    assert_eq!(file.status, 200);
    assert!(file.headers["content-disposition"].to_str().unwrap().contains("countersign-log.jsonl"));
    let lines: Vec<Value> = file.text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let asked = gateway.service.log.events_after(0, Some(&"payments".try_into().unwrap()), 1_000).await.unwrap().0;
    let indexes: Vec<u64> = asked.iter().rev().map(|it| it.index).collect();
    assert_eq!(lines.iter().map(|it| it["index"].as_u64().unwrap()).collect::<Vec<_>>(), indexes);
    assert_eq!(lines[0]["data"], asked.last().unwrap().event.data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reason_on_an_event_page_is_redacted_for_others_and_sanitized() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let hand = ManualForm::signed_in(&gateway, "ana").await;
    let form = crate::forms::form_of(&hand, &held).await;
    let voted = hand.post(&format!("/reviews/{}/decision", held.review), &crate::forms::with(&form, "", "")).await;
    assert_eq!(voted.status, 303, "{}", voted.text);
    let facts = gateway.service.reviews.review(&ReviewId::try_from(held.review.as_str()).unwrap(), &ana).await.unwrap();
    let jti: Jti = facts.receipt.unwrap().jti;
    let reason = "it was card 4111 1111 1111 1111 <script>alert(1)</script> \u{202e}drawkcab";
    gateway.service.writes.revoke_receipt(&Revoker::Reviewer(ana.id.clone()), &jti, reason).await.unwrap();
    placed(&gateway).await;
    let text = hand.get("/log?kind=receipt.revoked").await.text;
    let path = text.split("href=\"/log/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    gateway.reviewer("ben", &["reviewers"]).await;
    let page = ManualForm::signed_in(&gateway, "ben").await.get(&format!("/log/{path}")).await.text;
    assert!(page.contains("it was card [hidden]") && page.contains("ana"), "{page}");
    assert!(!page.contains("4111 1111"), "{page}");
    let own = hand.get(&format!("/log/{path}")).await.text;
    assert!(own.contains("it was card 4111 1111 1111 1111"), "who wrote it reads it as written: {own}");
    for page in [page, own] {
        assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'), "{page}");
    }
}
