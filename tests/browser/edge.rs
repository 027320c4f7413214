//! HTTP rules that apply to every page: headers, cookies, CSRF tokens and the end of sessions.

use std::time::Duration;

use countersign_domain::identity::account::PersonRole;

use countersign_service::identity::accounts::LINK_TTL;
use reqwest::header;
use serde_json::json;

use crate::forms::{FormResponse, ManualForm, encoded, field, form_of, held, page, still_waits, with};
use crate::gateway::{BrowserGateway, PASSWORD, spawn_gateway, spawn_secure_gateway};

fn named<'a>(page: &'a FormResponse, name: &str) -> &'a str {
    page.headers.get(name).map(|it| it.to_str().unwrap()).unwrap_or_default()
}

/// The cookies that an answer sets, as name and attributes.
fn cookies(page: &FormResponse) -> Vec<(String, Vec<String>)> {
    let lines = page.headers.get_all(header::SET_COOKIE).iter().map(|it| it.to_str().unwrap().to_owned());
    let read = |line: String| {
        let mut parts = line.split("; ").map(str::to_owned);
        let name = parts.next().unwrap().split('=').next().unwrap().to_owned();
        let mut attributes: Vec<String> = parts.collect();
        attributes.sort();
        (name, attributes)
    };
    lines.map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_has_headers_against_foreign_content_and_framing() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let sheet = ana.get("/sign-in").await;
    assert_eq!(sheet.status, 303, "who is signed in needs no door");
    let review = format!("/reviews/{}", held.review);
    let html = ana.get(&review).await.text;
    let asset = html.split('"').find(|it| it.starts_with("/assets/")).unwrap().to_owned();
    let pages = ["/", &review, "/threads/this", "/nowhere", "/reviews/none", "/sign-in/none", "/set-up/none"];
    let machines = ["/livez", "/.well-known/jwks.json", "/v1/nowhere", "/v1/events", asset.as_str()];
    let mut answers = vec![ManualForm::new(&gateway).get("/sign-in").await, ManualForm::new(&gateway).get("/").await];
    answers.push(ana.post(&format!("{review}/decision"), &[("csrf", "x")]).await);
    for path in pages {
        answers.push(ana.get(path).await);
    }
    for answer in &answers {
        assert_eq!(named(answer, "cache-control"), "no-store", "{}", answer.text);
    }
    for path in machines {
        answers.push(ana.get(path).await);
    }
    for answer in answers {
        let policy: Vec<&str> = named(&answer, "content-security-policy").split(';').map(str::trim).collect();
        let expected = [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ];
        assert_eq!(policy, expected, "nothing inline, nothing from elsewhere: {}", answer.text);
        assert_eq!(named(&answer, "x-frame-options"), "DENY");
        assert_eq!(named(&answer, "x-content-type-options"), "nosniff");
        assert_eq!(named(&answer, "referrer-policy"), "no-referrer");
        assert!(named(&answer, "permissions-policy").contains("camera=()"));
        assert_eq!(named(&answer, "cross-origin-opener-policy"), "same-origin");
        assert_eq!(named(&answer, "cross-origin-resource-policy"), "same-origin");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_are_out_of_reach_of_scripts_other_sites_and_other_hosts() {
    for (gateway, prefix, attributes) in [
        (spawn_gateway().await, "", vec!["HttpOnly", "Path=/", "SameSite=Lax"]),
        (spawn_secure_gateway().await, "__Host-", vec!["HttpOnly", "Path=/", "SameSite=Lax", "Secure"]),
    ] {
        gateway.reviewer("ana", &["reviewers"]).await;
        let door = ManualForm::new(&gateway).get("/sign-in").await;
        assert_eq!(
            cookies(&door),
            [(format!("{prefix}countersign-door"), attributes.iter().map(|it| (*it).to_owned()).collect())]
        );
        let (hand, csrf) = ManualForm::at_the_door(&gateway).await;
        let inside = hand.post("/sign-in", &[("csrf", &csrf), ("username", "ana"), ("password", PASSWORD)]).await;
        let kept_for_months = |it: &String| it.starts_with("Max-Age=");
        let mut given = cookies(&inside);
        assert!(!given[0].1.iter().any(kept_for_months), "a session ends with the browser: {given:?}");
        assert!(given[1].1.iter().any(kept_for_months), "a device is known again: {given:?}");
        given[1].1.retain(|it| !kept_for_months(it));
        let expected = ["countersign", "countersign-device"]
            .map(|name| (format!("{prefix}{name}"), attributes.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(given, expected);
        let ana = ManualForm::signed_in(&gateway, "ana").await;
        assert_eq!(ana.get("/").await.status, 200);
        let renamed = match prefix {
            "" => ana.cookie.replacen("countersign", "__Host-countersign", 1),
            _ => ana.cookie.replacen("__Host-", "", 1),
        };
        let other = ManualForm { cookie: renamed, ..ana.clone() };
        assert_eq!(other.get("/").await.location, "/sign-in", "under another name it is no session");
    }
}

/// Form that changes something: its path, its sender, its CSRF token and its other fields.
struct FormSubmission<'a> {
    path: String,
    hand: ManualForm<'a>,
    csrf: String,
    fields: Vec<(&'static str, String)>,
}

impl FormSubmission<'_> {
    async fn send(&self, csrf: &str, headers: &[(&str, &str)], cookie: &str) -> u16 {
        let mut fields: Vec<(&str, &str)> = self.fields.iter().map(|(name, it)| (*name, it.as_str())).collect();
        fields.retain(|it| it.0 != "csrf");
        fields.push(("csrf", csrf));
        let mut request = self.hand.gateway.http.post(self.hand.gateway.at(&self.path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let form = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(encoded(&fields));
        page(form.header(header::COOKIE, cookie)).await.status
    }
}

/// Every form there is, ready to be sent; the one for the first account at a gateway that has none.
async fn every_form<'a>(gateway: &'a BrowserGateway, fresh: &'a BrowserGateway) -> Vec<FormSubmission<'a>> {
    let set_up = fresh.service.identity.set_up_link().await.unwrap().unwrap();
    let (fresh_door, fresh_csrf) = ManualForm::at_the_door(fresh).await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let sam = gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let (this, that) = (held(gateway, "this", &payments).await, held(gateway, "that", &payments).await);
    let (door, door_csrf) = ManualForm::at_the_door(gateway).await;
    let ana = ManualForm::signed_in(gateway, "ana").await;
    let votes = form_of(&ana, &this).await;
    let approved = form_of(&ana, &that).await;
    assert_eq!(ana.post(&format!("/reviews/{}/decision", that.review), &with(&approved, "", "")).await.status, 303);
    let csrf = field(&ana.get("/").await.text, "csrf");
    let link = gateway.service.identity.sign_in_link(&sam.id).await.unwrap();
    let text = |pairs: &[(&'static str, &str)]| pairs.iter().map(|(name, it)| (*name, (*it).to_owned())).collect();
    let at_door = |path: String, fields| FormSubmission { path, hand: door.clone(), csrf: door_csrf.clone(), fields };
    let inside = |path: String, fields| FormSubmission { path, hand: ana.clone(), csrf: csrf.clone(), fields };
    vec![
        at_door("/sign-in".to_owned(), text(&[("username", "sam"), ("password", PASSWORD)])),
        at_door(format!("/sign-in/{link}"), text(&[])),
        FormSubmission {
            path: format!("/set-up/{set_up}"),
            hand: fresh_door,
            csrf: fresh_csrf,
            fields: text(&[("username", "eve"), ("password", PASSWORD), ("groups", "reviewers"), ("role", "reviewer")]),
        },
        inside(format!("/reviews/{}/decision", this.review), votes),
        inside(format!("/reviews/{}/revocation", that.review), text(&[("reason", "I misread it")])),
        inside("/sign-out".to_owned(), text(&[])),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_needs_its_own_csrf_token_and_the_same_origin() {
    let (gateway, fresh) = (spawn_gateway().await, spawn_gateway().await);
    let forms = every_form(&gateway, &fresh).await;
    let (stranger, strangers_csrf) = ManualForm::at_the_door(&gateway).await;
    for form in &forms {
        let (csrf, cookie) = (form.csrf.as_str(), form.hand.cookie.as_str());
        let origin = form.hand.gateway.url.clone();
        let ours: &[(&str, &str)] = &[("origin", &origin)];
        let upper = csrf.to_uppercase();
        let cut = &csrf[..csrf.len() - 1];
        for (what, csrf, headers, cookie) in [
            ("no token", "", ours, cookie),
            ("another browser's token", strangers_csrf.as_str(), ours, cookie),
            ("a token that is cut", cut, ours, cookie),
            ("a token in capitals", upper.as_str(), ours, cookie),
            ("another site", csrf, &[("origin", "https://evil.example")][..], cookie),
            ("this host, another port", csrf, &[("origin", "http://localhost:1")], cookie),
            ("this gateway over https", csrf, &[("origin", &origin.replace("http:", "https:"))], cookie),
            ("a longer name", csrf, &[("origin", &format!("{origin}.evil.example"))], cookie),
            ("no origin, another site", csrf, &[("sec-fetch-site", "cross-site")], cookie),
            ("no origin, a sister site", csrf, &[("sec-fetch-site", "same-site")], cookie),
            ("neither origin nor site", csrf, &[], cookie),
            ("a hidden origin and no site", csrf, &[("origin", "null")], cookie),
            ("a hidden origin", csrf, &[("origin", "null"), ("sec-fetch-site", "cross-site")], cookie),
        ] {
            assert_eq!(form.send(csrf, headers, cookie).await, 403, "{}: {what}", form.path);
        }
        let without = form.send(csrf, ours, "").await;
        assert!(matches!(without, 303 | 403), "{}: without its cookie: {without}", form.path);
        let with_anothers = form.send(csrf, ours, &stranger.cookie).await;
        assert!(matches!(with_anothers, 303 | 403), "{}: with another's cookie: {with_anothers}", form.path);
    }
    // Nothing came of all that: each form still does what it is for. The last one signs out.
    for form in &forms {
        let origin = form.hand.gateway.url.clone();
        assert_eq!(form.send(&form.csrf, &[("origin", &origin)], &form.hand.cookie).await, 303, "{}", form.path);
        let again = form.send(&form.csrf, &[("origin", &origin)], &form.hand.cookie).await;
        let expected = match form.path.split('/').next_back().unwrap() {
            "sign-in" | "sign-out" | "revocation" => 303,
            "decision" => 409,
            _ => 404,
        };
        assert_eq!(again, expected, "{}: once more", form.path);
    }
    assert_eq!(forms[5].hand.get("/").await.location, "/sign-in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_in_form_without_its_cookie_is_refused() {
    let gateway = spawn_gateway().await;
    let sam = gateway.reviewer("sam", &["reviewers"]).await;
    let link = gateway.service.identity.sign_in_link(&sam.id).await.unwrap();
    let (door, csrf) = ManualForm::at_the_door(&gateway).await;
    for cookie in ["", "countersign-door=", "countersign-door=AAAA"] {
        let hand = ManualForm { cookie: cookie.to_owned(), ..door.clone() };
        let fields = [("csrf", csrf.as_str()), ("username", "sam"), ("password", PASSWORD)];
        assert_eq!(hand.post("/sign-in", &fields).await.status, 403, "{cookie}");
        assert_eq!(hand.post(&format!("/sign-in/{link}"), &fields).await.status, 403, "{cookie}");
    }
    assert_eq!(door.post(&format!("/sign-in/{link}"), &[("csrf", &csrf)]).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sign_in_redirects_to_this_gateway_only() {
    let gateway = spawn_gateway().await;
    let sam = gateway.reviewer("sam", &["reviewers"]).await;
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "evil.example"] {
        let (hand, csrf) = ManualForm::at_the_door(&gateway).await;
        let inside = hand
            .post("/sign-in", &[("csrf", &csrf), ("username", "sam"), ("password", PASSWORD), ("next", next)])
            .await;
        assert_eq!((inside.status, inside.location.as_str()), (303, "/"), "{next}");
        let link = gateway.service.identity.sign_in_link(&sam.id).await.unwrap();
        let inside = hand.post(&format!("/sign-in/{link}"), &[("csrf", &csrf), ("next", next)]).await;
        assert_eq!((inside.status, inside.location.as_str()), (303, "/"), "{next}");
        let sam = ManualForm::signed_in(&gateway, "sam").await;
        let onward = sam.get(&format!("/sign-in?{}", encoded(&[("next", next)]))).await;
        assert_eq!((onward.status, onward.location.as_str()), (303, "/"), "{next}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_ends_at_its_deadline_and_at_sign_out() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let (ana, other) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "ana").await);
    let csrf = field(&other.get("/").await.text, "csrf");
    assert_eq!(other.post("/sign-out", &[("csrf", &csrf)]).await.status, 303);
    assert_eq!(other.get("/").await.location, "/sign-in", "who signed out is out");
    assert_eq!(ana.get("/").await.status, 200, "and nobody else");
    gateway.clock.advance(Duration::from_secs(10 * 60));
    let form = form_of(&ana, &held).await;
    let session = Duration::from_secs(3600 - 10 * 60 - 60);
    gateway.clock.advance(session);
    assert_eq!(ana.get("/").await.status, 200, "until its time");
    gateway.clock.advance(Duration::from_secs(61));
    let path = format!("/reviews/{}", held.review);
    assert_eq!(ana.get(&path).await.location, format!("/sign-in?next={path}"));
    let late = ana.post(&format!("{path}/decision"), &with(&form, "", "")).await;
    assert_eq!(late.location, format!("/sign-in?next={path}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_forms_of_other_roles_are_refused() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.person("root", PersonRole::Admin, &["reviewers"]).await;
    gateway.person("ed", PersonRole::Auditor, &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let path = format!("/reviews/{}", held.review);
    for name in ["root", "ed"] {
        let hand = ManualForm::signed_in(&gateway, name).await;
        let csrf = field(&hand.get(&path).await.text, "csrf");
        for form in ["decision", "revocation"] {
            let fields = [("csrf", csrf.as_str()), ("verdict", "approve"), ("confirmed", "yes"), ("reason", "x")];
            let refused = hand.post(&format!("{path}/{form}"), &fields).await;
            assert_eq!(refused.status, 403, "{name}: {form}");
            assert!(refused.text.contains("may not do that: it takes"), "{name}: {form}: {}", refused.text);
        }
    }
    still_waits(&gateway, &held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_expires_and_is_valid_for_one_purpose() {
    let gateway = spawn_gateway().await;
    let set_up = gateway.service.identity.set_up_link().await.unwrap().unwrap();
    let sam = gateway.person("sam", PersonRole::Auditor, &[]).await;
    let sign_in = gateway.service.identity.sign_in_link(&sam.id).await.unwrap();
    let (door, csrf) = ManualForm::at_the_door(&gateway).await;
    let account = [
        ("csrf", csrf.as_str()),
        ("username", "eve"),
        ("password", PASSWORD),
        ("groups", "reviewers"),
        ("role", "admin"),
    ];
    for path in [format!("/sign-in/{set_up}"), format!("/set-up/{sign_in}")] {
        assert_eq!(door.get(&path).await.status, 404, "{path}");
        assert_eq!(door.post(&path, &account).await.status, 404, "{path}");
    }
    // Once there is an account, however it was made, there is no first one to make.
    let path = format!("/set-up/{set_up}");
    assert_eq!(door.get(&path).await.status, 404);
    assert_eq!(door.post(&path, &account).await.status, 404);
    let fresh = spawn_gateway().await;
    let first = format!("/set-up/{}", fresh.service.identity.set_up_link().await.unwrap().unwrap());
    let (fresh_door, fresh_csrf) = ManualForm::at_the_door(&fresh).await;
    assert_eq!(fresh_door.get(&first).await.status, 200);
    let signing_in = format!("/sign-in/{sign_in}");
    for (door, csrf, path) in [(&door, &csrf, signing_in), (&fresh_door, &fresh_csrf, first)] {
        door.gateway.clock.advance(LINK_TTL + Duration::from_secs(1));
        let account = account.map(|it| if it.0 == "csrf" { ("csrf", csrf.as_str()) } else { it });
        assert_eq!(door.get(&path).await.status, 404, "{path}");
        assert_eq!(door.post(&path, &account).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_approver_revokes_a_receipt() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let path = format!("/reviews/{}", held.review);
    let form = form_of(&ana, &held).await;
    assert_eq!(ana.post(&format!("{path}/decision"), &with(&form, "", "")).await.status, 303);
    let csrf = |html: &str| field(html, "csrf");
    let his = sam.get(&path).await.text;
    assert!(!his.contains("/revocation"), "there is no form for him");
    let revocation = format!("{path}/revocation");
    let taken = |csrf: String| vec![("csrf", csrf), ("reason", "I misread it".to_owned())];
    assert_eq!(sam.post(&revocation, &with(&taken(csrf(&his)), "", "")).await.status, 403);
    let verify = json!({
        "thread": held.thread, "transition": held.digest, "write_id": "w1",
        "receipt": gateway.decision(&payments, &held).await["receipt"],
    });
    let hers = taken(csrf(&ana.get(&path).await.text));
    assert_eq!(ana.post(&revocation, &with(&hers, "", "")).await.status, 303);
    let answer = gateway.post(&payments.writer, "/v1/verify", &verify).await;
    assert_eq!((answer.status, &answer.body["code"]), (403, &json!("revoked")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_form_and_failed_browser_check_are_refused() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = held(&gateway, "this", &payments).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let form = form_of(&ana, &held).await;
    let path = format!("/reviews/{}/decision", held.review);
    let long = "x".repeat(64 * 1024);
    let refused = ana.post(&path, &with(&form, "comment", &long)).await;
    assert!((400..500).contains(&refused.status) && refused.status != 409, "{}", refused.status);
    let talkative = "x".repeat(4_001);
    let refused = ana.post(&path, &with(&form, "comment", &talkative)).await;
    assert_eq!(refused.status, 409);
    assert!(refused.text.contains("The comment is too long"));
    let mut found_wrong = with(&form, "", "");
    found_wrong.push(("browser_check", "mismatch"));
    for confirmed in ["yes", "no"] {
        let mut fields = found_wrong.clone();
        fields.retain(|it| it.0 != "confirmed");
        fields.push(("confirmed", confirmed));
        let refused = ana.post(&path, &fields).await;
        assert_eq!(refused.status, 409, "confirmed: {confirmed}");
        assert!(refused.text.contains("Your browser recomputed another digest from the page."));
    }
    still_waits(&gateway, &held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_contains_a_redacted_value() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let patch =
        json!({"target_user_id": 42, "payment": {"card": {"number": "4929 0000 0000 0000", "holder": "Zoe Zane"}}});
    let held = gateway.held(&payments, "this", &patch).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let review = format!("/reviews/{}", held.review);
    let decision = format!("{review}/decision");
    let form = form_of(&ana, &held).await;
    let mut pages = vec![
        ana.get("/").await,
        ana.get(&review).await,
        ana.get("/threads/this").await,
        ana.post(&decision, &with(&form, "confirmed", "")).await,
        ana.post(&decision, &with(&form, "nonce", "")).await,
    ];
    assert_eq!(ana.post(&decision, &with(&form, "", "")).await.status, 303);
    for path in ["/", &review, "/threads/this"] {
        pages.push(ana.get(path).await);
    }
    for page in pages {
        assert!(matches!(page.status, 200 | 409) && page.text.contains("this"), "{}", page.text);
        // With a space in each: digests and tokens have none, and so cannot hold one by chance.
        for secret in ["4111 1111", "4929 0000", "Zoe Zane", "card.number", "card/number", "\"holder"] {
            assert!(!page.text.contains(secret), "{secret} in {}", page.text);
        }
    }
}
