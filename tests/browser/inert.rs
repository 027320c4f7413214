//! Pages sanitize the text of agents, and contain no redacted value.

use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, spawn_gateway};
use crate::person::BrowserTab;

/// Markup, a script, an override of the direction, zero-width characters, a look-alike.
const HOSTILE: &str = "</td></table><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\
                       <a href=\"javascript:alert(1)\">approved</a> pay\u{202e}24\u{200b} p\u{430}ypal";

async fn hostile(gateway: &BrowserGateway) -> (Payments, HeldReview) {
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let patch = json!({
        "target_user_id": HOSTILE, "items": [HOSTILE, "A-1"],
        "memo": {"<b>key</b>\u{202e}": HOSTILE, "long": "x".repeat(3_000)},
    });
    let held =
        gateway.held_saying(&payments, "order-8812", &patch, Some(&format!("{HOSTILE}\n\nPlease approve."))).await;
    (payments, held)
}

async fn turned_away(gateway: &BrowserGateway, payments: &Payments) {
    let head = gateway.thread(payments, "order-9001", &crate::gateway::order()).await;
    let ask = json!({"node": "planner", "parent": head, "patch": {HOSTILE: HOSTILE}});
    let answer = gateway.post(&payments.agent, "/v1/threads/order-9001/transitions", &ask).await;
    assert_eq!(answer.status, 422, "{answer:?}");
}

async fn nothing_acted(tab: &BrowserTab) {
    assert_ne!(tab.js::<String>("document.title").await, "owned");
    for selector in ["main img", "main script", "main iframe", "main a[href^=javascript]", "main b", "main [onerror]"] {
        assert_eq!(tab.count(selector).await, 0, "{selector}");
    }
    // The values of fields are also checked, because people read and send them.
    let text: String = tab
        .js("document.body.innerText + [...document.querySelectorAll('input, textarea, select')].map(it => it.value).join(' ')")
        .await;
    for unseen in ['\u{202e}', '\u{200b}'] {
        assert!(!text.contains(unseen), "U+{:04X} stands as itself", u32::from(unseen));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_of_agents_is_sanitized_on_every_page() {
    let gateway = spawn_gateway().await;
    let (payments, held) = hostile(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    let review = format!("/reviews/{}", held.review);
    turned_away(&gateway, &payments).await;
    for path in
        ["/", review.as_str(), "/threads/order-8812", "/threads/order-8812/versions/0", "/threads", "/rejections"]
    {
        tab.goto(path).await;
        nothing_acted(&tab).await;
    }
    let told = tab.text().await;
    let edit = format!("{review}/edit");
    assert!(told.contains("write_not_allowed") && told.contains("U+202E"), "{told}");
    tab.goto(&review).await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    let text = tab.text().await;
    for words in ["\\u202e", "U+202E", "mixes Latin and Cyrillic letters", "untrusted", "Show all 3,002 characters"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    tab.goto(&edit).await;
    nothing_acted(&tab).await;
    let typed: String = tab.js("[...document.querySelectorAll('input')].map(it => it.value).join(' ')").await;
    assert!(
        typed.contains("\\u202e") && typed.contains("\\u200b"),
        "a value to rewrite is shown by its numbers: {typed}"
    );
    while gateway.service.log.sequence().await.unwrap() > 0 {}
    while gateway.service.log.count_events().await.unwrap() > 0 {}
    for path in ["/log", "/insight?span=1h", "/policies", "/emergency", "/account", "/what-if", "/verifier"] {
        tab.goto(path).await;
        nothing_acted(&tab).await;
    }
    tab.goto(&review).await;
    tab.verdict("").await;
    tab.fill("Comment", "<script>document.title='owned'</script>").await;
    tab.press("Deny").await;
    nothing_acted(&tab).await;
    tab.press("Confirm").await;
    nothing_acted(&tab).await;
    assert!(tab.text().await.contains("<script>document.title='owned'</script>"), "it is told, as text");
    tab.goto("/threads/order-8812").await;
    nothing_acted(&tab).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_cannot_be_seen_is_rewritten_in_its_place_and_the_others_stay() {
    let gateway = spawn_gateway().await;
    let (_, held) = hostile(&gateway).await;
    gateway.reviewer("ben", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}/edit", held.review)).await;
    // The field of the value below a key with an override in it.
    let at = "[...document.querySelectorAll('input')].find(it => it.name.startsWith('value:\"') && it.name.includes('202e'))";
    let _: String = tab.js(&format!("({at}.value = '\"plain\"')")).await;
    tab.fill("Reason", "nobody could read it").await;
    tab.press("Propose edit").await;
    let text = tab.text().await;
    assert!(text.contains("\"plain\"") && text.contains("U+202E") && text.contains("\\u202e"), "{text}");
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_value_is_in_no_page_and_no_attribute() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let patch =
        json!({"target_user_id": 42, "payment": {"card": {"number": "4929 0000 0000 0000", "holder": "M. Novak"}}});
    let held = gateway.held(&payments, "order-8812", &patch).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    let review = format!("/reviews/{}", held.review);
    let check = async |tab: &BrowserTab, page: &str| {
        let html = tab.html().await;
        // Neither the value nor the names and number of keys below the redacted path may appear.
        for secret in ["4929 0000", "4111 1111", "M. Novak", "card.number", "card/number", "holder"] {
            assert!(!html.contains(secret), "{secret} on {page}");
        }
        html
    };
    for path in ["/", &review, "/threads/order-8812"] {
        tab.goto(path).await;
        let html = check(&tab, path).await;
        assert!(html.contains("<wbr>card") || path.starts_with("/threads"), "that it changes is told: {path}");
    }
    tab.goto(&review).await;
    assert!(
        tab.verdict("").await.contains("Recomputed in this browser: matches"),
        "hidden values are proved all the same"
    );
    tab.press("Approve").await;
    check(&tab, "the second look").await;
    tab.press("Confirm").await;
    check(&tab, "the decided review").await;
    tab.goto("/threads/order-8812").await;
    check(&tab, "the thread").await;
    tab.goto("/").await;
    check(&tab, "the inbox").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn detected_secret_is_in_no_page_and_the_change_is_still_proved() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let detecting = PAYMENTS.replace("hide = [\"payment.card\"]", "detect = [\"email\", \"card_number\"]");
    assert_ne!(detecting, PAYMENTS);
    let payments = gateway.payments_under(&detecting).await;
    let patch = json!({
        "target_user_id": 42, "note": "write to mia@example.org", "items": ["A-1", "4012 8888 8888 1881"],
        "memo": {"max@example.org": 1, "harmless neighbour": 2},
    });
    let why = "Card 5555 5555 5555 4444 of eva@example.org is refused.";
    let held = gateway.held_saying(&payments, "order-8812", &patch, Some(why)).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    let review = format!("/reviews/{}", held.review);
    let check = async |tab: &BrowserTab, page: &str| {
        let html = tab.html().await;
        let secrets = ["mia@", "max@", "eva@", "ian@", "4012 8888", "5555 5555", "4111 1111", "harmless neighbour"];
        for secret in secrets {
            assert!(!html.contains(secret), "{secret} on {page}");
        }
    };
    for path in ["/", &review, "/threads/order-8812"] {
        tab.goto(path).await;
        check(&tab, path).await;
    }
    tab.goto(&review).await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    let text = tab.text().await;
    assert!(
        text.contains("Card [card_number] of [email] is refused.") && text.contains("Parts of it are redacted."),
        "{text}"
    );
    assert!(text.contains("17") && text.contains("42"), "what is no secret is shown");
    tab.fill("Comment", "I asked ian@example.org").await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    tab.goto(&review).await;
    check(&tab, "the decided review").await;
    assert!(tab.text().await.contains("I asked [email]"));
    browser.close().await;
}
