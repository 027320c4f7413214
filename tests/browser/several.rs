//! Several reviews decided at once: the grouping, the binding of each vote, and the result for each review.

use countersign_domain::identity::account::Account;
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof};
use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::forms::{FormResponse, ManualForm, field, still_waits};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, order, spawn_gateway};
use crate::person::BrowserTab;

/// Adds two reviewers. One approval is enough.
async fn people(gateway: &BrowserGateway) {
    for name in ["ana", "sam"] {
        gateway.reviewer(name, &["reviewers"]).await;
    }
}

async fn held(gateway: &BrowserGateway, payments: &Payments, names: &[&str]) -> Vec<HeldReview> {
    let mut held = Vec::new();
    for (index, name) in names.iter().enumerate() {
        held.push(gateway.held(payments, name, &json!({"target_user_id": 42 + index})).await);
    }
    held
}

/// Ticks these reviews in the inbox and opens the page that decides them together.
async fn ticked(hand: &ManualForm<'_>, held: &[&HeldReview]) -> FormResponse {
    let csrf = field(&hand.get("/").await.text, "csrf");
    let mut fields = vec![("csrf", csrf.as_str())];
    fields.extend(held.iter().map(|it| ("review", it.review.as_str())));
    hand.post("/votes", &fields).await
}

/// The fields of the page that asks about several: those that come once, and its rows.
struct BulkFormFields {
    csrf: String,
    sheet: String,
    rows: Vec<String>,
}

impl BulkFormFields {
    fn read(page: &FormResponse) -> Self {
        assert_eq!(page.status, 200, "{}", page.text);
        Self::of(page)
    }

    fn of(page: &FormResponse) -> Self {
        let rows = page.text.match_indices("name=\"row\"").map(|(at, _)| field(&page.text[at..], "row")).collect();
        Self { csrf: field(&page.text, "csrf"), sheet: field(&page.text, "sheet"), rows }
    }

    async fn send(&self, hand: &ManualForm<'_>, verdict: &str, comment: &str) -> FormResponse {
        let mut fields = vec![("csrf", self.csrf.as_str()), ("sheet", &self.sheet)];
        fields.extend(self.rows.iter().map(|it| ("row", it.as_str())));
        fields.extend([("verdict", verdict), ("comment", comment)]);
        hand.post("/votes", &fields).await
    }
}

async fn ended(gateway: &BrowserGateway, payments: &Payments, held: &HeldReview) -> Value {
    gateway.decision(payments, held).await["decision"].clone()
}

/// Denies the review as another reviewer.
pub async fn deny(gateway: &BrowserGateway, who: &Account, held: &HeldReview) {
    let ballot = Ballot {
        delegation: None,
        transition: held.digest.as_str().try_into().unwrap(),
        stage: 0,
        verdict: VoteVerdict::Deny,
        nonce: "theirs".to_owned(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::default(),
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    };
    gateway.service.reviews.vote(&who.id, &held.review.as_str().try_into().unwrap(), &ballot, None).await.unwrap();
}

/// Presses a key.
async fn key(tab: &BrowserTab, key: &str) {
    tab.page.find_element("body").await.unwrap().press_key(key).await.unwrap();
}

/// Goes on by the tabulator until that has the focus.
async fn go_to(tab: &BrowserTab, selector: &str) {
    for _ in 0..200 {
        if tab.js::<bool>(&format!("document.activeElement.matches({selector:?})")).await {
            return;
        }
        key(tab, "Tab").await;
    }
    panic!("nobody gets to {selector} by keyboard: {}", tab.html().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_ticks_three_by_keyboard_reads_them_on_one_page_and_approves_each() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, &payments, &["order-1", "order-2", "order-3"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;
    for held in &held {
        go_to(&tab, &format!("[name=review][value='{}']", held.review)).await;
        key(&tab, " ").await;
    }
    assert_eq!(tab.count("[name=review]:checked").await, 3);
    assert!(tab.js::<bool>("document.documentElement.scrollWidth <= screen.width").await);
    tab.press("Decide selected together").await;
    let page = tab.text().await;
    for words in
        ["Decide 3 reviews together?", "17 42", "17 43", "17 44", "order-1", "order-3", "target_user_id is protected"]
    {
        assert!(page.contains(words), "{words} in {page}");
    }
    assert!(held.iter().all(|it| page.contains(&it.digest)), "each with its digest");
    assert!(tab.js::<bool>("document.documentElement.scrollWidth <= screen.width").await);
    assert_eq!(ended(&gateway, &payments, &held[0]).await, Value::Null, "nothing is decided by reading");
    tab.fill("Comment on each", "Checked with the shop.").await;
    tab.press("Approve all 3").await;
    let told = tab.text().await;
    assert!(told.contains("All 3 votes are counted"), "{told}");
    assert_eq!(told.matches("The change was committed as version 1 with its own receipt.").count(), 3, "{told}");
    let mut receipts = Vec::new();
    for held in &held {
        let decision = gateway.decision(&payments, held).await;
        assert_eq!((&decision["approved"], &decision["comment"]), (&json!(true), &json!("Checked with the shop.")));
        assert_eq!(decision["transition_digest"], held.digest);
        let ask = json!({"thread": held.thread, "transition": held.digest, "receipt": decision["receipt"], "write_id": held.thread});
        let let_through = gateway.post(&payments.writer, "/v1/verify", &ask).await;
        assert_eq!(let_through.status, 200, "{let_through:?}");
        receipts.push(decision["receipt"].to_string());
    }
    receipts.dedup();
    assert_eq!(receipts.len(), 3, "each has its own");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_vote_names_reviews_decided_by_others_and_counts_the_rest() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, &payments, &["order-1", "order-2", "order-3"]).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let form = BulkFormFields::read(&ticked(&ana, &[&held[0], &held[1], &held[2]]).await);
    let denial = BulkFormFields::read(&ticked(&sam, &[&held[1], &held[2]]).await);
    let only = BulkFormFields { rows: denial.rows[..1].to_vec(), ..denial };
    assert!(only.send(&sam, "deny", "").await.text.contains("Your vote is counted"));
    let told = form.send(&ana, "approve", "Fine by me").await;
    assert_eq!(told.status, 200);
    for words in [
        "2 of your 3 votes are counted",
        "This review has already been decided. Your vote was not counted.",
        "The review is denied.",
        "decided by <strong class=\"person\">sam</strong>",
        "Fine by me",
    ] {
        assert!(told.text.contains(words), "{words} in {}", told.text);
    }
    let mut ends = Vec::new();
    for held in &held {
        ends.push(ended(&gateway, &payments, held).await);
    }
    assert_eq!(ends, ["approved", "denied", "approved"], "what fails stops none of the others");
    let again = form.send(&ana, "approve", "Fine by me").await;
    assert!(again.text.contains("2 of your 3 votes are counted"), "a reload is told the same: {}", again.text);
    let left_out = ticked(&ana, &[&held[0], &held[1]]).await;
    assert_eq!(left_out.status, 409);
    assert!(left_out.text.contains("None of these reviews can be decided here."), "{}", left_out.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_counts_only_with_its_own_digest_nonce_stage_page_and_session() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, &payments, &["order-1", "order-2", "order-3"]).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let form = BulkFormFields::read(&ticked(&ana, &[&held[0], &held[1]]).await);
    let other = BulkFormFields::read(&ticked(&ana, &[&held[1], &held[2]]).await);
    let parts = |row: &str| row.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (one, two) = (parts(&form.rows[0]), parts(&form.rows[1]));
    let with = |index: usize, value: &str| {
        let mut parts = one.clone();
        parts[index] = value.to_owned();
        parts.join(" ")
    };
    let on_its_page = ana.get(&format!("/reviews/{}", held[0].review)).await.text;
    let single = field(&on_its_page[on_its_page.find("data-decide").unwrap()..], "nonce");
    for (what, row) in [
        ("another's digest", with(2, &two[2])),
        ("another's nonce", with(3, &two[3])),
        ("another stage", with(1, "1")),
        ("no nonce", with(3, "")),
        ("the nonce of its own page", with(3, &single)),
        ("another review", with(0, &two[0])),
        ("a row of another page", other.rows[1].clone()),
    ] {
        let forged = BulkFormFields { rows: vec![row], csrf: form.csrf.clone(), sheet: form.sheet.clone() };
        let refused = forged.send(&ana, "approve", "").await;
        assert_eq!(refused.status, 409, "{what}: {}", refused.text);
        assert!(refused.text.contains("None of your votes was counted."), "{what}");
    }
    let nowhere = BulkFormFields { sheet: other.sheet.clone(), csrf: form.csrf.clone(), rows: form.rows.clone() };
    assert_eq!(nowhere.send(&ana, "approve", "").await.status, 409, "another page's name");
    let hers = BulkFormFields {
        csrf: field(&sam.get("/").await.text, "csrf"),
        sheet: form.sheet.clone(),
        rows: form.rows.clone(),
    };
    assert_eq!(hers.send(&sam, "approve", "").await.status, 409, "another session's page");
    assert_eq!(form.send(&sam, "approve", "").await.status, 403, "another session's token");
    let fields = [("csrf", form.csrf.as_str()), ("sheet", &form.sheet), ("row", &form.rows[0]), ("verdict", "approve")];
    assert_eq!(ana.post_from("https://evil.example", "/votes", &fields).await.status, 403);
    for held in &held {
        still_waits(&gateway, held).await;
    }
    assert!(form.send(&ana, "deny", "").await.text.contains("All 2 votes are counted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resent_bulk_form_with_another_verdict_is_not_counted() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
    let held = held(&gateway, &payments, &["order-1", "order-2"]).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let form = BulkFormFields::read(&ticked(&ana, &[&held[0], &held[1]]).await);
    assert!(form.send(&ana, "approve", "").await.text.contains("All 2 votes are counted"));
    let denied = form.send(&ana, "deny", "").await.text;
    assert!(!denied.contains("Your denial is counted") && denied.contains("Not counted"), "{denied}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commented_review_is_decided_on_its_own_page() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
    let held = held(&gateway, &payments, &["order-1", "order-2", "order-3"]).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let page = format!("/reviews/{}", held[0].review);
    let html = sam.get(&page).await.text;
    let comments = format!("{page}/comments");
    let form = &html[html.find(&comments).unwrap()..];
    let fields: Vec<(&str, String)> = ["csrf", "digest", "nonce"].map(|name| (name, field(form, name))).to_vec();
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, it)| (*name, it.as_str())).collect();
    fields.push(("comment", "Do not: that is fraud"));
    assert_eq!(sam.post(&comments, &fields).await.status, 303);
    let together = ticked(&ana, &[&held[0], &held[1], &held[2]]).await.text;
    assert!(together.contains("It has comments."), "{together}");
    assert!(
        together.contains("Decide 2 reviews together?") && together.contains("<details class=\"opens one-more\" open>")
    );
    assert!(together.contains("If your approval is the last required one"), "{together}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_reviews_of_one_kind_of_change_are_decided_together() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments().await;
    let one = gateway.held(&payments, "one", &json!({"target_user_id": 42})).await;
    let two = gateway.held(&payments, "two", &json!({"target_user_id": 7})).await;
    let more = gateway.held(&payments, "more", &json!({"target_user_id": 42, "memo": "x"})).await;
    let gone = gateway.held(&payments, "gone", &json!({"target_user_id": null})).await;
    let card = gateway.held(&payments, "card", &json!({"payment": {"card": {"number": "4929 0000 0000 0000"}}})).await;
    let first = gateway.held(&payments, "first", &json!({"target_user_id": 42, "items": ["B-1"]})).await;
    let next = gateway.held(&payments, "next", &json!({"target_user_id": 42, "items": ["A-1", "B-1"]})).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    for other in [&more, &gone, &card] {
        let apart = ticked(&ana, &[&one, other]).await;
        assert_eq!(apart.status, 409, "{}", other.thread);
        assert!(apart.text.contains("The selected reviews request 2 different kinds of change."), "{}", apart.text);
        assert!(!apart.text.contains("name=\"verdict\""), "nothing is decided here");
        assert!(!apart.text.contains("4929 0000"), "what is hidden stays so");
    }
    assert_eq!(ticked(&ana, &[&first, &next]).await.status, 409, "another place in a list is another place");
    let apart = ticked(&ana, &[&one, &two, &more]).await;
    assert!(apart.text.contains("Decide these 2 together") && apart.text.contains("Open review"), "{}", apart.text);
    let form = BulkFormFields::read(&ticked(&ana, &[&one, &two]).await);
    assert_eq!(form.rows.len(), 2);
    assert!(form.send(&ana, "deny", "").await.text.contains("All 2 votes are counted"));

    // The same change, under a policy that says something else.
    let old = gateway.held(&payments, "old", &json!({"target_user_id": 42})).await;
    let accepted = gateway.service.policies.active_policy(&"payments".try_into().unwrap()).await.unwrap().digest();
    let source = countersign_domain::policy::PolicySource {
        text: PAYMENTS.replace("receipt_ttl = \"10m\"", "receipt_ttl = \"10m\"\n# the same"),
        schemas: Default::default(),
    };
    gateway
        .service
        .policy_changes
        .activate_policy(&"test".try_into().unwrap(), None, source, [accepted].into())
        .await
        .unwrap();
    let new = gateway.held(&payments, "new", &json!({"target_user_id": 42})).await;
    let apart = ticked(&ana, &[&old, &new]).await;
    assert_eq!(apart.status, 409, "{}", apart.text);
    for held in [&more, &gone, &card, &old, &new] {
        still_waits(&gateway, held).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_with_passkey_or_typed_confirmation_is_not_decided_in_bulk() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    for (asks, told) in [
        ("need = 1\npasskey_within = \"5m\"", "Its flow requires a passkey"),
        ("need = 1\nconfirm = \"typed\"", "Its flow requires you to type part of the digest"),
        // The other stage asks; the flow is one that wants more.
        ("need = 1\n\n[[approval.stages]]\ngroups = [\"reviewers\"]\npasskey = true", "Its flow requires a passkey"),
    ] {
        let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", asks)).await;
        let name = |it: &str| format!("{it}-{}", asks.len());
        let held = held(&gateway, &payments, &[&name("one"), &name("two")]).await;
        let ana = ManualForm::signed_in(&gateway, "ana").await;
        assert!(!ana.get("/").await.text.contains("type=\"checkbox\" name=\"review\""), "nothing to tick");
        let refused = ticked(&ana, &[&held[0], &held[1]]).await;
        assert_eq!(refused.status, 409);
        assert!(refused.text.contains(told), "{}", refused.text);
        for held in &held {
            still_waits(&gateway, held).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_comment_is_asked_for_and_nothing_counts_without() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 1\ncomment = \"required\"")).await;
    let held = held(&gateway, &payments, &["order-1", "order-2"]).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let page = ticked(&ana, &[&held[0], &held[1]]).await;
    assert!(page.text.contains("(required)"));
    let form = BulkFormFields::read(&page);
    let again = form.send(&ana, "approve", "  ").await;
    assert_eq!(again.status, 409);
    assert!(again.text.contains("A comment is required. Enter the reason for your decision."), "{}", again.text);
    for held in &held {
        still_waits(&gateway, held).await;
    }
    let form = BulkFormFields::of(&again);
    assert!(form.send(&ana, "approve", "Both seen").await.text.contains("All 2 votes are counted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_write_large_changes_and_more_than_fifty_are_not_among_several() {
    let gateway = spawn_gateway().await;
    people(&gateway).await;
    let trusting = PAYMENTS.replace("protected =", "trust_initial = true\nprotected =");
    let payments = gateway.payments_under(&trusting).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let head = gateway.thread(&payments, "doubt", &order()).await;
    let ask = json!({"thread": "doubt", "transition": head, "write_id": "w1"});
    assert_eq!(gateway.post(&payments.writer, "/v1/verify", &ask).await.status, 200);
    gateway.clock.advance(std::time::Duration::from_secs(31));
    let doubt = gateway.propose_held(&payments, "doubt", &head, &json!({"target_user_id": 42}), None).await;
    let many: Vec<String> = (0..30).map(|it| format!("A-{it}")).collect();
    let large = gateway.held(&payments, "large", &json!({"target_user_id": 42, "items": many})).await;
    let plain = held(&gateway, &payments, &["order-1", "order-2"]).await;
    let page = ticked(&ana, &[&doubt, &large, &plain[0], &plain[1]]).await;
    assert_eq!(BulkFormFields::read(&page).rows.len(), 2);
    for words in
        ["The outcome of an earlier write of this thread is unknown", "It changes too many values to show here"]
    {
        assert!(page.text.contains(words), "{words} in {}", page.text);
    }
    let names: Vec<String> = (0..51).map(|it| format!("0192f0c1-0000-7000-8000-{it:012}")).collect();
    let csrf = field(&ana.get("/").await.text, "csrf");
    let mut fields = vec![("csrf", csrf.as_str())];
    fields.extend(names.iter().map(|it| ("review", it.as_str())));
    let refused = ana.post("/votes", &fields).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("At most 50 reviews can be decided at once"), "{}", refused.text);
    assert!(ana.post("/votes", &fields[..1]).await.text.contains("Select at least one review"));
    let one = ana.post("/votes", &fields[..2]).await;
    assert_eq!((one.status, one.location), (303, format!("/reviews/{}", names[0])), "one is decided on its own page");
}
