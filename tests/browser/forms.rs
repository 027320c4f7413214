//! Forms that the gateway rejects. The tests send them without a browser and its checks.

use reqwest::header;
use serde_json::json;

use crate::gateway::{BrowserGateway, HeldReview, PASSWORD, Payments, spawn_gateway};

/// A form without a browser.
#[derive(Clone)]
pub struct ManualForm<'a> {
    pub gateway: &'a BrowserGateway,
    pub cookie: String,
}

pub struct FormResponse {
    pub status: u16,
    pub location: String,
    pub text: String,
    pub headers: header::HeaderMap,
    cookies: Vec<String>,
}

pub fn encoded(fields: &[(&str, &str)]) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    let text = |text: &str| text.bytes().map(byte).collect::<String>();
    fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join("&")
}

impl<'a> ManualForm<'a> {
    pub fn new(gateway: &'a BrowserGateway) -> Self {
        Self { gateway, cookie: String::new() }
    }

    pub async fn get(&self, path: &str) -> FormResponse {
        let request = self.gateway.http.get(self.gateway.at(path)).header(header::ACCEPT, "text/html");
        page(request.header(header::COOKIE, &self.cookie)).await
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> FormResponse {
        self.post_from(&self.gateway.url, path, fields).await
    }

    pub async fn post_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> FormResponse {
        let request = self.gateway.http.post(self.gateway.at(path)).header(header::ORIGIN, origin);
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(encoded(fields));
        page(request.header(header::COOKIE, &self.cookie)).await
    }

    /// In front of the sign-in page; with what its form carries.
    pub async fn at_the_door(gateway: &'a BrowserGateway) -> (Self, String) {
        let mut hand = Self::new(gateway);
        let door = hand.get("/sign-in").await;
        hand.cookie = door.cookies.join("; ");
        (hand, field(&door.text, "csrf"))
    }

    pub async fn signed_in(gateway: &'a BrowserGateway, name: &str) -> Self {
        let (mut hand, csrf) = Self::at_the_door(gateway).await;
        let fields = [("csrf", csrf.as_str()), ("username", name), ("password", PASSWORD), ("next", "/")];
        let inside = hand.post("/sign-in", &fields).await;
        assert_eq!((inside.status, inside.location.as_str()), (303, "/"), "{}", inside.text);
        hand.cookie = inside.cookies.join("; ");
        hand
    }
}

pub async fn page(request: reqwest::RequestBuilder) -> FormResponse {
    let response = request.send().await.unwrap();
    let text = |name: header::HeaderName| {
        let values = response.headers().get_all(name).iter();
        values.map(|it| it.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (locations, cookies) = (text(header::LOCATION), text(header::SET_COOKIE));
    let cookies = cookies.iter().filter_map(|it| it.split(';').next().map(str::to_owned)).collect();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    FormResponse { status, location: locations.concat(), cookies, headers, text: response.text().await.unwrap() }
}

pub fn field(html: &str, name: &str) -> String {
    let from = html.find(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("a field {name} in {html}"));
    html[from..].split('"').nth(3).unwrap().to_owned()
}

pub async fn held(gateway: &BrowserGateway, name: &str, payments: &Payments) -> HeldReview {
    gateway.held(payments, name, &json!({"target_user_id": 42})).await
}

pub async fn still_waits(gateway: &BrowserGateway, held: &HeldReview) {
    let thread = held.thread.as_str().try_into().unwrap();
    let review = gateway.service.threads.overview(&thread).await.unwrap().review;
    assert_eq!(review.map(|it| it.to_string()), Some(held.review.clone()), "nothing was decided");
}

/// The fields of a review's form, as its page gives them.
pub async fn form_of(hand: &ManualForm<'_>, held: &HeldReview) -> Vec<(&'static str, String)> {
    let html = hand.get(&format!("/reviews/{}", held.review)).await.text;
    let form = &html[html.find("data-decide").unwrap()..];
    let mut fields: Vec<(&'static str, String)> =
        ["csrf", "digest", "nonce", "stage"].map(|name| (name, field(form, name))).to_vec();
    fields.push(("verdict", "approve".to_owned()));
    fields.push(("confirmed", "yes".to_owned()));
    fields.push(("expects", "passes".to_owned()));
    fields.push(("comment", "typed with care".to_owned()));
    fields
}

pub fn with<'a>(fields: &'a [(&'static str, String)], name: &str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    fields.iter().map(|(key, it)| (*key, if *key == name { value } else { it.as_str() })).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_counts_only_with_its_own_digest_nonce_stage_session_and_token() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let (this, that) = (held(&gateway, "this", &payments).await, held(&gateway, "that", &payments).await);
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let (mine, other, his) = (form_of(&ana, &this).await, form_of(&ana, &that).await, form_of(&sam, &this).await);
    let nonce = |form: &[(&str, String)]| form.iter().find(|it| it.0 == "nonce").unwrap().1.clone();
    let (others_nonce, his_nonce) = (nonce(&other), nonce(&his));
    let path = format!("/reviews/{}/decision", this.review);
    for (name, value, words) in [
        ("digest", that.digest.as_str(), "is not from your session"),
        ("digest", "sha256:00", "showed another change than the pending one"),
        ("nonce", others_nonce.as_str(), "is not from your session"),
        ("nonce", his_nonce.as_str(), "is not from your session"),
        ("nonce", "", "is not from your session"),
        ("stage", "1", "is not from your session"),
        ("stage", "x", "You cannot vote in this stage"),
        ("verdict", "maybe", "The form is not valid: the verdict must be approve or deny"),
    ] {
        let refused = ana.post(&path, &with(&mine, name, value)).await;
        assert_eq!(refused.status, 409, "{name}={value}");
        assert!(refused.text.contains(words), "{name}={value}: {words}");
        assert!(refused.text.contains("typed with care"), "what was typed is kept");
        assert!(refused.text.contains("Your vote was not counted."));
    }
    for (origin, fields) in [
        (gateway.url.as_str(), with(&mine, "csrf", "x")),
        (gateway.url.as_str(), with(&mine, "csrf", "")),
        ("https://evil.example", with(&mine, "", "")),
    ] {
        assert_eq!(ana.post_from(origin, &path, &fields).await.status, 403);
    }
    assert_eq!(sam.post(&path, &with(&mine, "", "")).await.status, 403, "another's form");
    still_waits(&gateway, &this).await;
    let counted = ana.post(&path, &with(&mine, "", "")).await;
    assert_eq!((counted.status, counted.location), (303, format!("/reviews/{}", this.review)));
    let twice = ana.post(&path, &with(&mine, "", "")).await;
    assert!(twice.text.contains("This review has already been decided."));
    still_waits(&gateway, &that).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_confirmed_nothing_is_counted() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let form = form_of(&ana, &held).await;
    let second = ana.post(&format!("/reviews/{}/decision", held.review), &with(&form, "confirmed", "")).await;
    assert_eq!(second.status, 200);
    assert_eq!(field(&second.text, "digest"), held.digest, "the second look is bound to the digest");
    still_waits(&gateway, &held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vote_after_the_deadline_is_refused_as_expired() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let form = form_of(&ana, &held).await;
    gateway.clock.advance(std::time::Duration::from_secs(16 * 60));
    let late = ana.post(&format!("/reviews/{}/decision", held.review), &with(&form, "", "")).await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("Expired") && late.text.contains("No decision was made before the deadline."));
    assert!(ana.get("/").await.text.contains("Expired"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_reviewers_of_the_group_get_a_decision_form() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.reviewer("owner", &["reviewers", "machines"]).await;
    gateway.reviewer("bystander", &["others"]).await;
    gateway.person("root", countersign_domain::identity::account::PersonRole::Admin, &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let path = format!("/reviews/{}", held.review);
    let decision = format!("{path}/decision");
    for (name, words) in [
        ("owner", "You or your agent is an author of this change"),
        ("bystander", "You are not in a group that can decide this."),
        ("root", "Only accounts with the role reviewer can decide."),
    ] {
        let hand = ManualForm::signed_in(&gateway, name).await;
        let html = hand.get(&path).await.text;
        assert!(html.contains(words) && !html.contains("data-decide"), "{name}");
        let csrf = field(&html, "csrf");
        let refused = hand.post(&decision, &[("csrf", &csrf), ("verdict", "approve"), ("confirmed", "yes")]).await;
        assert!(matches!(refused.status, 403 | 409), "{name}: {}", refused.status);
    }
    still_waits(&gateway, &held).await;
}
