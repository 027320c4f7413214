//! History pages: threads, versions, the comparison of two versions, and a receipt with each of its checks.

use serde_json::{Value, json};

use crate::forms::{ManualForm, field, form_of, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, order, spawn_gateway};

const CARDS: [&str; 2] = ["4111 1111 1111 1111", "4929 0000 0000 0000"];

/// A version approved by Ana, one written on it, and one that waits: versions 0 to 2, and the review.
pub async fn lived(gateway: &BrowserGateway, payments: &Payments) -> (HeldReview, String) {
    gateway.reviewer("ana", &["reviewers"]).await;
    let patch = json!({"target_user_id": 42, "payment": {"card": {"number": CARDS[1]}}});
    let held = gateway.held_saying(payments, "order-8812", &patch, Some("The card is 4929 0000 0000 0000.")).await;
    let ana = ManualForm::signed_in(gateway, "ana").await;
    let form = form_of(&ana, &held).await;
    let voted = ana.post(&format!("/reviews/{}/decision", held.review), &with(&form, "", "")).await;
    assert_eq!(voted.status, 303, "{}", voted.text);
    let receipt = gateway.decision(payments, &held).await["receipt"].as_str().unwrap().to_owned();
    let ask = json!({"thread": "order-8812", "transition": held.digest, "receipt": receipt, "write_id": "w1"});
    assert_eq!(gateway.post(&payments.writer, "/v1/verify", &ask).await.status, 200);
    let result = json!({"result": {"result_ref": "row-77"}});
    let confirmed = gateway.post(&payments.writer, "/v1/writes/w1/confirm", &result).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    (held, receipt)
}

async fn close(gateway: &BrowserGateway, thread: &str) {
    let admin = gateway.token(countersign_domain::identity::account::MachineRole::Admin, "ops", "", &[]).await;
    let closed = gateway.post(&admin, &format!("/v1/threads/{thread}/closing"), &json!({"reason": "over"})).await;
    assert!(closed.status < 300, "{closed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_found_by_flow_status_name_and_title() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    assert!(ana.get("/threads").await.text.contains("No threads yet."));
    let payments = gateway.payments().await;
    gateway.activate(&PAYMENTS.replace("flow = \"payments\"", "flow = \"refunds\"")).await;
    for name in ["order-1", "order-10", "order-2"] {
        gateway.thread(&payments, name, &order()).await;
    }
    gateway.held(&payments, "order-3", &json!({"target_user_id": 42})).await;
    close(&gateway, "order-2").await;
    let found = async |query: &str| {
        let text = ana.get(&format!("/threads?{query}")).await.text;
        let names = text.split("href=\"/threads/").skip(1).filter_map(|it| it.split('"').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found("").await, ["order-1", "order-10", "order-2", "order-3"]);
    assert_eq!(found("name=order-1").await, ["order-1", "order-10"]);
    assert_eq!(found("name=order-1&flow=payments").await, ["order-1", "order-10"]);
    assert_eq!(found("flow=refunds").await, Vec::<String>::new());
    assert_eq!(found("status=held").await, ["order-3"]);
    assert_eq!(found("status=held&name=order-1").await, Vec::<String>::new());
    assert_eq!(found("status=closed").await, ["order-2"]);
    assert_eq!(found("status=open").await, ["order-1", "order-10"]);
    assert_eq!(found("status=writing").await, Vec::<String>::new());
    assert_eq!(found("title=refund%20FOR%20order-2").await, ["order-2"]);
    assert_eq!(found("title=for").await, Vec::<String>::new());
    assert!(ana.get("/threads?flow=refunds").await.text.contains("No matching threads."));
    assert!(ana.get("/threads?status=asleep").await.text.contains("There is no such status."));
    assert_eq!(ana.get("/threads?after=x").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thread_list_pages_name_each_thread_once() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    for number in 0..65 {
        gateway.thread(&payments, &format!("order-{number:03}"), &order()).await;
    }
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let (mut path, mut names) = ("/threads?flow=payments&name=order".to_owned(), Vec::new());
    for _ in 0..4 {
        let text = ana.get(&path).await.text;
        names.extend(text.split("href=\"/threads/").skip(1).filter_map(|it| it.split('"').next().map(str::to_owned)));
        let Some(more) = text.split("<p class=\"onward\"><a href=\"").nth(1) else { break };
        path = more.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    }
    let all: Vec<String> = (0..65).map(|number| format!("order-{number:03}")).collect();
    assert_eq!(names, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_page_shows_its_change_its_approval_and_its_write() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    let (held, _) = lived(&gateway, &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let first = ana.get("/threads/order-8812/versions/1").await.text;
    for words in [
        ">42<",
        "agent-of-machines",
        "a token of machines",
        "approved by",
        "Its receipt was used",
        "database_writer has written, fence 1, recorded as version 2",
        "the statement hashes to the digest",
        held.digest.as_str(),
    ] {
        assert!(first.contains(words), "{words} in {first}");
    }
    let second = ana.get("/threads/order-8812/versions/2").await.text;
    assert!(second.contains("row-77") && second.contains("confirmed by"), "{second}");
    assert!(ana.get("/threads/order-8812/versions/0").await.text.contains("created by the host"));
    for nowhere in ["/threads/order-8812/versions/3", "/threads/order-8812/versions/x", "/threads/none/versions/0"] {
        assert_eq!(ana.get(nowhere).await.status, 404, "{nowhere}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_two_versions_are_compared_in_either_direction() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    lived(&gateway, &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let forth = ana.get("/threads/order-8812/compare?from=0&to=2").await.text;
    for words in [">17<", "row-77", "payment.<wbr>card", "hidden"] {
        assert!(forth.contains(words), "{words} in {forth}");
    }
    let back = ana.get("/threads/order-8812/compare?from=2&to=0").await.text;
    assert!(back.contains(">removed<") && !back.contains(">added<"), "{back}");
    assert!(ana.get("/threads/order-8812/compare?from=1&to=1").await.text.contains("No differences."));
    assert_eq!(ana.get("/threads/order-8812/compare?from=0&to=3").await.status, 404);
    assert_eq!(ana.get("/threads/order-8812/compare").await.status, 200);
}

/// A value is redacted if the version's policy, the other version's policy or the current policy redacts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn value_redacted_by_any_policy_is_on_no_history_page() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    lived(&gateway, &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let pages = [
        "/threads/order-8812",
        "/threads/order-8812/versions/0",
        "/threads/order-8812/versions/1",
        "/threads/order-8812/compare?from=0&to=1",
        "/threads/order-8812/compare?from=0&to=2",
    ];
    let none_shows = async |secret: &str| {
        for path in &pages[1..] {
            let page = ana.get(path).await;
            assert!(page.status == 200 && !page.text.contains(secret), "{secret} on {path}: {}", page.text);
        }
    };
    for card in CARDS {
        none_shows(card).await;
        assert!(!ana.get(pages[0]).await.text.contains(card));
    }
    let first = ana.get(pages[1]).await.text;
    assert!(first.contains("from the shop"), "{first}");
    // The current policy now redacts the note, and no longer the cards.
    gateway.activate(&PAYMENTS.replace("hide = [\"payment.card\"]", "hide = [\"note\"]")).await;
    none_shows("from the shop").await;
    for card in CARDS {
        none_shows(card).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifier_shows_every_check_and_separately_the_records_of_the_gateway() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    let (held, receipt) = lived(&gateway, &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let csrf = field(&ana.get("/verifier").await.text, "csrf");
    let told = gateway.get(&payments.agent, &format!("/v1/transitions/{}", held.digest)).await.body;
    let (entry, statement) = (told["entry"].as_str().unwrap_or_default(), told["statement"].to_string());
    let checked = async |receipt: &str, entry: &str, statement: &str| {
        let fields = [("csrf", csrf.as_str()), ("receipt", receipt), ("entry", entry), ("statement", statement)];
        let page = ana.post("/verifier", &fields).await;
        (page.status, page.text)
    };
    let (status, text) = checked(&receipt, entry, &statement).await;
    assert_eq!(status, 200, "{text}");
    for words in ["Valid: this exact version was approved", "This gateway issued it for version 1 of order-8812"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    for words in ["Used: database_writer was authorized, has confirmed the write", "Not revoked"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let forged = format!("{}{}", &receipt[..receipt.len() - 8], "AAAAAAAA");
    let (_, text) = checked(&forged, "", "").await;
    assert!(text.contains("signature_invalid") && text.contains("not reached"), "{text}");
    assert!(!text.contains("Used: "), "nothing is told of bytes that were never issued: {text}");
    let other: Value = json!({"type": "propose"});
    let (status, text) = checked(&receipt, "", &other.to_string()).await;
    assert!(status == 422 && text.contains("does not have the members of a statement"), "{text}");
    let (status, text) = checked("<script>alert(1)</script>", "", "{").await;
    assert!(status == 422 && !text.contains("<script>alert"), "{text}");
    let (status, text) = checked("<script>alert(1)</script>", "", "").await;
    assert!(status == 200 && text.contains("receipt_malformed") && !text.contains("<script>alert"), "{text}");
    let fields = [("csrf", "x"), ("receipt", receipt.as_str())];
    assert_eq!(ana.post("/verifier", &fields).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_page_shows_tool_arguments_except_redacted_ones() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let policy = format!("{PAYMENTS}\n[tools]\nallow = [\"crm.*\"]\nhide = [\"key\"]\n");
    let payments = gateway.payments_under(&policy).await;
    let head = gateway.thread(&payments, "order-1", &order()).await;
    let tool = json!({"name": "crm.find", "arguments": {"who": "Eva Marlow", "key": "k-12345678"}});
    let ask = json!({"node": "planner", "parent": head, "patch": {"memo": "looked up"}, "format": "merge-patch", "tool": tool});
    let committed = gateway.post(&payments.agent, "/v1/threads/order-1/transitions", &ask).await;
    assert_eq!(committed.status, 201, "{committed:?}");
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let page = ana.get("/threads/order-1/versions/1").await.text;
    assert!(page.contains("crm.find") && page.contains("Eva Marlow") && !page.contains("k-12345678"), "{page}");
    // A key that the current policy redacts is also redacted in older versions.
    gateway.activate(&policy.replace("hide = [\"key\"]", "hide = [\"key\", \"who\"]")).await;
    let page = ana.get("/threads/order-1/versions/1").await.text;
    assert!(page.contains("crm.find") && !page.contains("Eva Marlow") && !page.contains("k-12345678"), "{page}");
}
