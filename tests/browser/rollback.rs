//! Rollback: a person requests an earlier state, and reviewers decide.

use countersign_domain::identity::account::PersonRole;

use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use crate::forms::{ManualForm, field, form_of, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, spawn_gateway};
use crate::history::lived;

fn rolling_back() -> String {
    PAYMENTS.replace("[nodes.planner]", "[nodes.planner]\nrollback = true")
}

async fn sound(gateway: &BrowserGateway) {
    let store = SqliteStore::open(gateway.folder().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = Keyring::open(&gateway.folder().join("keyring.json"), None).unwrap().current().unwrap();
    let report = audit(&store, &keys, gateway.service.core.now()).await.unwrap();
    assert_eq!(report.findings, []);
}

async fn form(hand: &ManualForm<'_>, path: &str) -> Vec<(&'static str, String)> {
    let html = hand.get(path).await.text;
    let own = &html[html.find("/rollback\"").unwrap_or_else(|| panic!("a form in {html}"))..];
    let mut fields: Vec<_> = ["csrf", "head", "attempt"].map(|name| (name, field(own, name))).to_vec();
    fields.extend([("node", "planner".to_owned()), ("reason", "It was the wrong customer.".to_owned())]);
    fields
}

fn held_at(location: &str, digest: String) -> HeldReview {
    let review = location.strip_prefix("/reviews/").unwrap().to_owned();
    HeldReview { thread: "order-8812".to_owned(), review, digest }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_is_requested_and_approved_by_another_person() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments_under(&rolling_back()).await;
    lived(&gateway, &payments).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let path = "/threads/order-8812/versions/0/rollback";
    let fields = form(&sam, "/threads/order-8812/versions/0").await;
    assert_eq!(sam.post(path, &with(&fields, "csrf", "x")).await.status, 403);
    let refused = sam.post(path, &with(&fields, "node", "database_writer")).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let asked = sam.post(path, &with(&fields, "", "")).await;
    assert_eq!(asked.status, 303, "{}", asked.text);
    let again = sam.post(path, &with(&fields, "", "")).await;
    assert_eq!(again.location, asked.location, "the same form twice is one rollback");
    let mine = sam.get(&asked.location).await.text;
    for words in [
        "wants to roll back to version 0",
        "requested by sam, a person",
        "requested a rollback",
        "Other reviewers must decide",
    ] {
        assert!(mine.contains(words), "{words} in {mine}");
    }
    assert!(!mine.contains("data-decide"), "You cannot vote on it");
    let held = held_at(&asked.location, String::new());
    let votes = form_of(&ana, &held).await;
    let his: Vec<(&str, &str)> = votes.iter().map(|(name, it)| (*name, it.as_str())).collect();
    assert_ne!(sam.post(&format!("{}/decision", asked.location), &his).await.status, 303);
    let voted = ana.post(&format!("{}/decision", asked.location), &with(&votes, "", "")).await;
    assert_eq!(voted.status, 303, "{}", voted.text);
    let compared = ana.get("/threads/order-8812/compare?from=0&to=3").await.text;
    // The page does not tell whether a redacted value that was set is the same.
    let rows: Vec<&str> = compared.split("<th scope=\"row\"").skip(1).collect();
    assert!(matches!(&rows[..], [card] if card.contains("payment.<wbr>card")), "{compared}");
    let version = ana.get("/threads/order-8812/versions/3").await.text;
    assert!(
        version.contains("rolled back by") && version.contains("<strong class=\"person\">sam</strong>"),
        "{version}"
    );
    sound(&gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_needs_a_reviewer_and_the_current_head_and_always_an_approval() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments_under(&rolling_back()).await;
    lived(&gateway, &payments).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    gateway.person("adam", PersonRole::Admin, &[]).await;
    let sam = ManualForm::signed_in(&gateway, "sam").await;
    let (path, of) = ("/threads/order-8812/versions/0/rollback", "/threads/order-8812/versions/0");
    let fields = form(&sam, of).await;
    for name in ["eve", "adam"] {
        let hand = ManualForm::signed_in(&gateway, name).await;
        let page = hand.get(of).await.text;
        assert!(!page.contains("/rollback\""), "{name}");
        let csrf = field(&page, "csrf");
        assert_eq!(hand.post(path, &with(&fields, "csrf", &csrf)).await.status, 403, "{name}");
    }
    assert!(
        !sam.get("/threads/order-8812/versions/2").await.text.contains("/rollback\""),
        "the head is not gone back to"
    );
    gateway.activate(&rolling_back().replace("flow = \"payments\"", "flow = \"payments\"\nmode = \"observe\"")).await;
    let mut stale = fields.clone();
    stale[1].1 = format!("sha256:{}", "0".repeat(64));
    let refused = sam.post(path, &with(&stale, "", "")).await;
    assert!(
        refused.status == 409 && refused.text.contains("The thread has changed since you opened the page"),
        "{}",
        refused.text
    );
    let asked = sam.post(path, &with(&fields, "", "")).await;
    assert_eq!(asked.status, 303, "{}", asked.text);
    assert!(sam.get("/threads/order-8812").await.text.contains("Waiting for approval"));
    sound(&gateway).await;
}
