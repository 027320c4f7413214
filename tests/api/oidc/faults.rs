//! Tests sign-in with a provider that returns false data, or with an attacker in between.

use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::peer::{FakeProvider, ProviderReply, TokenSigning, challenge};
use super::provider::{CLIENT_SECRET, settings};
use super::visitor::{BrowserResponse, HttpBrowser, parameter};
use super::{ReservedPort, beside, told, ways, whose};
use crate::gateway::TestGateway;

const COOKIE: &str = "countersign";

pub async fn with_peer() -> (TestGateway, FakeProvider) {
    let peer = FakeProvider::start().await;
    let g = ReservedPort::take().gateway(settings(&peer.issuer)).await;
    (g, peer)
}

/// Signs in as the script says. Returns the browser and the page.
pub async fn try_once(g: &TestGateway, peer: &FakeProvider) -> (HttpBrowser, BrowserResponse) {
    let mut visitor = HttpBrowser::new();
    let sent_to = visitor.sent_to(&g.url, "/").await;
    let back = peer.signs_in(&sent_to);
    let seen = visitor.get(&back).await;
    (visitor, seen)
}

async fn last_reason(g: &TestGateway) -> Value {
    told(g, "access.sign_in_failed").await.pop().unwrap().data["reason"].clone()
}

/// Checks that sign-in fails with this reason after the change of the script, and works without the change.
async fn refused(change: impl FnOnce(&mut super::peer::ProviderScript), reason: &str) {
    let (g, peer) = with_peer().await;
    change(&mut peer.script());
    let (visitor, seen) = try_once(&g, &peer).await;
    assert!([403, 503].contains(&seen.status), "{reason}: {} {:?}", seen.status, seen.location);
    assert_eq!(last_reason(&g).await, reason);
    assert_eq!(visitor.cookie(&g.url, COOKIE), None, "{reason}");
    assert!(seen.body.contains("<h1>") && seen.body.contains("Back to the sign-in page"), "{}", seen.body);
    for secret in ["a-code", "a secret of the provider's", CLIENT_SECRET, "sub-1"] {
        assert!(!seen.body.contains(secret), "{reason}: the page says {secret}");
    }
    assert_eq!(told(&g, "access.account_added").await.len(), 2, "{reason}: nobody was added");
}

#[tokio::test]
async fn unspoiled_sign_in_succeeds() {
    let (g, peer) = with_peer().await;
    let (visitor, seen) = try_once(&g, &peer).await;
    assert_eq!(seen.status, 303, "{}", seen.body);
    assert_eq!(whose(&g, visitor.cookie(&g.url, COOKIE).unwrap()).await.name, "carol");
}

#[tokio::test]
async fn token_that_the_provider_did_not_sign_is_refused() {
    refused(|it| it.signing = TokenSigning::NotAtAll, "bad_signature").await;
    refused(|it| it.signing = TokenSigning::WithTheClientsSecret, "bad_signature").await;
    refused(|it| it.signing = TokenSigning::WithAnotherKey, "bad_signature").await;
    refused(|it| it.published = vec![2, 3], "bad_signature").await;
    refused(|it| it.reply = ProviderReply::NoIdToken, "bad_signature").await;
}

#[tokio::test]
async fn token_for_another_client_or_another_sign_in_is_refused() {
    for claims in [
        json!({"aud": "somebody-else"}),
        json!({"aud": ["countersign", "somebody-else"], "azp": "countersign"}),
        json!({"azp": "somebody-else"}),
        json!({"nonce": "another"}),
        json!({"nonce": null}),
    ] {
        refused(|it| it.claims = claims, "not_for_us").await;
    }
    refused(|it| it.claims = json!({"iss": "https://other.example"}), "wrong_provider").await;
}

#[tokio::test]
async fn token_that_is_too_old_or_from_the_future_is_refused() {
    let now = SystemClock.now().seconds();
    for claims in [json!({"exp": now - 70}), json!({"iat": now + 90, "exp": now + 300}), json!({"nbf": now + 90})] {
        refused(|it| it.claims = claims, "wrong_time").await;
    }
    let (g, peer) = with_peer().await;
    peer.script().claims = json!({"exp": now - 10, "iat": now + 10, "nbf": now + 10});
    assert_eq!(try_once(&g, &peer).await.1.status, 303, "clocks may differ a little");
}

#[tokio::test]
async fn token_with_a_duplicate_claim_is_refused() {
    let (g, peer) = with_peer().await;
    let mut visitor = HttpBrowser::new();
    let sent_to = visitor.sent_to(&g.url, "/").await;
    let back = peer.signs_in(&sent_to);
    let now = SystemClock.now().seconds();
    let text = |twice: &str| {
        format!(
            r#"{{"iss":"{}","aud":"countersign","sub":"s","iat":{now},"exp":{},"nonce":"{}","preferred_username":"carol","groups":["fin"]{twice}}}"#,
            peer.issuer,
            now + 300,
            parameter(&sent_to, "nonce")
        )
    };
    peer.script().payload = Some(text(r#","groups":["ops"]"#));
    assert_eq!(visitor.get(&back).await.status, 403);
    let sent_to = visitor.sent_to(&g.url, "/").await;
    let back = peer.signs_in(&sent_to);
    let nonce = parameter(&sent_to, "nonce");
    let once = text("");
    let old = once.split("\"nonce\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    peer.script().payload = Some(once.replace(&old, &nonce));
    assert_eq!(visitor.get(&back).await.status, 303, "its unspoiled twin");
}

#[tokio::test]
async fn redirecting_oversized_or_failing_provider_counts_as_down() {
    for reply in [ProviderReply::Redirect, ProviderReply::Huge, ProviderReply::Failure] {
        refused(|it| it.reply = reply, "provider_down").await;
    }
    refused(|it| it.reply = ProviderReply::Refusal, "refused").await;
    let (g, peer) = with_peer().await;
    peer.script().reply = ProviderReply::Redirect;
    try_once(&g, &peer).await;
    assert_eq!(peer.script().led_on, 0, "code and secret went nowhere else");
}

#[tokio::test]
async fn provider_with_another_issuer_is_not_used() {
    let (g, peer) = with_peer().await;
    for other in [format!("{}/", peer.issuer), "https://other.example".to_owned()] {
        peer.script().metadata = json!({"issuer": other});
        let seen = HttpBrowser::new().begin(&g.url, "/").await;
        assert_eq!((seen.status, last_reason(&g).await), (503, json!("provider_down")));
        g.pass(Duration::from_secs(5));
    }
}

#[tokio::test]
async fn an_answer_of_another_provider_is_refused_before_anything_is_sent() {
    for (announced, sender) in [(true, "&iss=https://other.example"), (true, ""), (false, "&iss=https://other.example")]
    {
        let (g, peer) = with_peer().await;
        peer.script().metadata = json!({"authorization_response_iss_parameter_supported": announced});
        let mut visitor = HttpBrowser::new();
        let back = peer.signs_in(&visitor.sent_to(&g.url, "/").await);
        let back = format!("{}{sender}", back.split("&iss=").next().unwrap());
        assert_eq!(visitor.get(&back).await.status, 403);
        assert_eq!(last_reason(&g).await, "wrong_provider");
        assert_eq!(peer.script().redeemed, [""; 0], "the code was not shown to anybody");
    }
    let (g, peer) = with_peer().await;
    peer.script().metadata = json!({"authorization_response_iss_parameter_supported": false});
    let mut visitor = HttpBrowser::new();
    let back = peer.signs_in(&visitor.sent_to(&g.url, "/").await);
    assert_eq!(visitor.get(back.split("&iss=").next().unwrap()).await.status, 303, "a provider that never says it");
}

#[tokio::test]
async fn callback_is_valid_once_in_time_and_in_the_same_browser() {
    let (g, peer) = with_peer().await;
    let mut visitor = HttpBrowser::new();
    let back = peer.signs_in(&visitor.sent_to(&g.url, "/").await);
    let mut stranger = HttpBrowser::new();
    stranger.get(&format!("{}/sign-in", g.url)).await;
    for other in [&mut stranger, &mut HttpBrowser::new()] {
        let seen = other.get(&back).await;
        assert_eq!(seen.status, 400);
        assert!(seen.body.contains("This sign-in is no longer valid"), "{}", seen.body);
        assert_eq!(other.cookie(&g.url, COOKIE), None);
    }
    let guessed = back.replace(&parameter(&back, "state"), "AAAA");
    assert_eq!(visitor.get(&guessed).await.status, 400);
    assert_eq!(peer.script().redeemed, [""; 0], "and the provider was not asked");
    assert_eq!(visitor.get(&back).await.status, 303, "it is still good for who asked");
    assert_eq!(visitor.get(&back).await.status, 400, "once");

    let mut visitor = HttpBrowser::new();
    let late = peer.signs_in(&visitor.sent_to(&g.url, "/").await);
    g.pass(countersign_service::identity::oidc_sign_in::ERRAND_TTL);
    assert_eq!(visitor.get(&late).await.status, 400);
    assert_eq!(last_reason(&g).await, "unknown_state");
}

#[tokio::test]
async fn a_callback_that_arrives_twice_at_once_opens_one_session() {
    let (g, peer) = with_peer().await;
    let mut visitor = HttpBrowser::new();
    let back = peer.signs_in(&visitor.sent_to(&g.url, "/").await);
    let door = visitor.cookie(&g.url, "countersign-door").unwrap().to_owned();
    let tries = (0..4).map(|_| {
        let (mut twin, back, url, door) = (HttpBrowser::new(), back.clone(), g.url.clone(), door.clone());
        tokio::spawn(async move {
            twin.put_cookie(&url, "countersign-door", &door);
            twin.get(&back).await.status
        })
    });
    let mut statuses = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        statuses.push(one.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|it| **it == 303).count(), 1, "{statuses:?}");
    assert_eq!(told(&g, "access.signed_in").await.len(), 1);
}

#[tokio::test]
async fn code_is_bound_by_pkce_and_redeemed_with_the_secret() {
    let (g, peer) = with_peer().await;
    let mut visitor = HttpBrowser::new();
    let sent_to = visitor.sent_to(&g.url, "/").await;
    assert_eq!(parameter(&sent_to, "code_challenge_method"), "S256");
    assert_eq!(parameter(&sent_to, "response_type"), "code");
    assert_eq!(parameter(&sent_to, "scope"), "openid profile groups");
    visitor.get(&peer.signs_in(&sent_to)).await;
    let sent = format!("http://form?{}", peer.script().redeemed[0]);
    assert_eq!(challenge(&parameter(&sent, "code_verifier")), parameter(&sent_to, "code_challenge"));
    assert_eq!(parameter(&sent, "redirect_uri"), format!("{}/sign-in/oidc/return", g.url));
}

#[tokio::test]
async fn unknown_keys_are_fetched_again_at_a_limited_rate() {
    let (g, peer) = with_peer().await;
    assert_eq!(try_once(&g, &peer).await.1.status, 303);
    assert_eq!(peer.script().keys_asked, 1);
    (peer.script().key, peer.script().published) = (2, vec![2]);
    assert_eq!(try_once(&g, &peer).await.1.status, 403, "it asked just now");
    assert_eq!(peer.script().keys_asked, 1);
    g.pass(Duration::from_secs(10));
    assert_eq!(try_once(&g, &peer).await.1.status, 303);
    assert_eq!(peer.script().keys_asked, 2);
    peer.script().key = 1;
    g.pass(Duration::from_secs(10));
    assert_eq!(try_once(&g, &peer).await.1.status, 403, "a key that was withdrawn signs nothing");
}

#[tokio::test]
async fn sign_in_redirects_only_to_pages_of_the_gateway() {
    let (g, peer) = with_peer().await;
    for (next, to) in [("/policies", "/policies"), ("https://evil.example", "/"), ("//evil.example", "/")] {
        let mut visitor = HttpBrowser::new();
        let back = peer.signs_in(&visitor.sent_to(&g.url, next).await);
        assert_eq!(visitor.get(&back).await.location, Some(format!("{}{to}", g.url)));
    }
}

#[tokio::test]
async fn sign_in_started_at_one_gateway_ends_at_another() {
    let (g, peer) = with_peer().await;
    let other = beside(&g, ways(settings(&peer.issuer), &g.url, &g.clock, super::LocalAccounts::On)).await;
    let sent_to = other.identity.oidc_authorize("a browser of mine", "/").await.unwrap();
    let mut visitor = HttpBrowser::new();
    let seen = visitor.get(&peer.signs_in(&sent_to)).await;
    assert_eq!(seen.status, 400, "another browser");
    let browser = "A".repeat(43);
    let sent_to = other.identity.oidc_authorize(&browser, "/").await.unwrap();
    visitor.put_cookie(&g.url, "countersign-door", &browser);
    assert_eq!(visitor.get(&peer.signs_in(&sent_to)).await.status, 303);
}

#[tokio::test]
async fn sign_in_starts_only_from_own_pages_and_is_rate_limited() {
    let (g, _peer) = with_peer().await;
    let mut visitor = HttpBrowser::new();
    for csrf in ["", "guessed"] {
        let seen = visitor.post(&format!("{}/sign-in/oidc", g.url), &[("csrf", csrf)]).await;
        assert_eq!(seen.status, 403);
        visitor.get(&format!("{}/sign-in", g.url)).await;
    }
    assert_eq!(told(&g, "access.provider_asked").await, []);
    let back = format!("{}/sign-in/oidc/return?state=x&code=y", g.url);
    let mut statuses = Vec::new();
    for _ in 0..70 {
        statuses.push(visitor.get(&back).await.status);
    }
    assert_eq!(statuses[0], 400);
    assert!(statuses.contains(&429), "{statuses:?}");
}
