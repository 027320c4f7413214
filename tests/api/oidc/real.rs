//! Tests sign-in with a real provider.

use countersign_domain::identity::account::{AccountCredential, PersonRole};
use countersign_domain::reviews::VoteVerdict;

use countersign_adapters::oidc_provider::OidcConfig;
use countersign_service::audit::audit;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use super::provider::{AUTHORITY, RealProvider, settings};
use super::visitor::{HttpBrowser, onward, parameter};
use super::{ReservedPort, told, whose};
use crate::gateway::TestGateway;

const COOKIE: &str = "countersign";

async fn with(people: Value, alg: &str) -> (TestGateway, RealProvider) {
    let place = ReservedPort::take();
    let provider = RealProvider::start(&place.url(), alg, &people);
    let g = place.gateway(settings(&provider.issuer)).await;
    (g, provider)
}

async fn change(provider: &RealProvider, people: Value) {
    let http = reqwest::Client::new();
    http.put(format!("{}/people", provider.issuer)).body(people.to_string()).send().await.unwrap();
}

#[tokio::test]
async fn person_of_the_provider_signs_in_with_their_groups_and_decides() {
    let (g, provider) = with(json!({"carol": {"groups": ["fin", "other"]}}), "RS256").await;
    let mut carol = HttpBrowser::new();
    let seen = carol.sign_in(&g.url, "carol", "yes").await;
    assert_eq!(
        (seen.status, seen.location.as_deref()),
        (303, Some(format!("{}/policies", g.url).as_str())),
        "{}",
        seen.body
    );
    let secret = carol.cookie(&g.url, COOKIE).unwrap().to_owned();
    let account = whose(&g, &secret).await;
    assert_eq!((account.name.as_str(), account.role), ("carol", PersonRole::Reviewer));
    assert_eq!(account.groups.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["reviewers"]);
    let bound = AccountCredential::Oidc { issuer: provider.issuer.clone(), subject: "carol".to_owned() };
    assert_eq!(account.sign_in, bound);
    assert_eq!(carol.get(&format!("{}/policies", g.url)).await.status, 200);

    let mut carol = HttpBrowser::new();
    let again = carol.sign_in(&g.url, "carol", "yes").await;
    assert_eq!(again.status, 303);
    let other = carol.cookie(&g.url, COOKIE).unwrap();
    assert_ne!(other, secret, "a session begins anew at each sign-in");
    assert_eq!(whose(&g, other).await, account, "and the account is the same");

    let held = g.held(&g.thread().await).await;
    g.vote(&account, &held, VoteVerdict::Approve).await.unwrap();
    let receipt = g.decision(&held).await.expect(200)["receipt"].as_str().unwrap().to_owned();
    assert_eq!(claims(&receipt)["approvals"][0]["method"], "oidc");
    let asked = told(&g, "access.provider_asked").await;
    let came = told(&g, "access.signed_in").await;
    assert_eq!((asked.len(), came.len()), (2, 2));
    assert_eq!(came[0].data["link"], asked[0].data["link"]);
    assert_eq!(told(&g, "access.account_changed").await, []);
    audited(&g).await;
}

#[tokio::test]
async fn groups_follow_the_last_sign_in() {
    let (g, provider) = with(json!({"carol": {"groups": ["fin", "sec"]}}), "RS256").await;
    let mut carol = HttpBrowser::new();
    carol.sign_in(&g.url, "carol", "yes").await;
    let first = carol.cookie(&g.url, COOKIE).unwrap().to_owned();
    let held = g.held(&g.thread().await).await;

    change(&provider, json!({"carol": {"groups": ["sec", "ops"]}})).await;
    let mut carol = HttpBrowser::new();
    carol.sign_in(&g.url, "carol", "yes").await;
    let account = whose(&g, &first).await;
    assert_eq!(account.groups.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["security"]);
    assert_eq!(account.role, PersonRole::Admin, "the role is refreshed, too");
    let hand = account.changed.as_ref().unwrap();
    assert!(account.settled_at() > account.created_at, "it is no older than what it may do");
    assert_eq!((hand.by.as_str(), hand.name.starts_with("http")), ("provider", true));
    assert!(g.vote(&account, &held, VoteVerdict::Approve).await.is_err(), "what was lost is lost at once");

    change(&provider, json!({"carol": {"groups": ["staff"]}})).await;
    let mut carol = HttpBrowser::new();
    let refused = carol.sign_in(&g.url, "carol", "yes").await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("You have no access to this gateway"), "{}", refused.body);
    assert!(g.service.identity.session_of(&first).await.is_err(), "sessions from before are over");
    let changes = told(&g, "access.account_changed").await;
    let groups: Vec<_> = changes.iter().map(|it| it.data["groups"].clone()).collect();
    assert_eq!(groups, [json!(["security"]), json!([])]);
    assert_eq!(told(&g, "access.sign_in_failed").await[0].data["reason"], "not_mapped");
    audited(&g).await;
}

#[tokio::test]
async fn keys_may_change_at_any_time_and_may_be_of_any_kind() {
    for alg in ["ES256", "EdDSA"] {
        let (g, mut provider) = with(json!({"carol": {"groups": ["fin"]}}), alg).await;
        assert_eq!(HttpBrowser::new().sign_in(&g.url, "carol", "yes").await.status, 303, "{alg}");
        provider.restart();
        g.pass(std::time::Duration::from_secs(11));
        assert_eq!(HttpBrowser::new().sign_in(&g.url, "carol", "yes").await.status, 303, "{alg}, other keys");
    }
}

#[tokio::test]
async fn refused_consent_and_unreachable_provider_show_an_explanation() {
    let (g, mut provider) = with(json!({"carol": {"groups": ["fin"]}}), "ES256").await;
    let mut carol = HttpBrowser::new();
    let refused = carol.sign_in(&g.url, "carol", "no").await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("Your organisation did not sign you in"), "{}", refused.body);
    assert_eq!(carol.cookie(&g.url, COOKIE), None);

    let state = parameter(&carol.sent_to(&g.url, "/").await, "state");
    provider.stop();
    let back = format!("{}/sign-in/oidc/return?state={state}&code=x&iss={}", g.url, provider.issuer);
    let down = carol.get(&back).await;
    assert_eq!(down.status, 503);
    assert!(down.body.contains("sign-in is not available"), "{}", down.body);
    g.pass(std::time::Duration::from_secs(3601));
    let down = carol.begin(&g.url, "/").await;
    assert_eq!(down.status, 503);
    let reasons: Vec<_> = told(&g, "access.sign_in_failed").await.iter().map(|it| it.data["reason"].clone()).collect();
    assert_eq!(reasons, ["refused", "provider_down", "provider_down"]);
    audited(&g).await;
}

#[tokio::test]
async fn signing_out_here_signs_out_there() {
    let (g, provider) = with(json!({"carol": {"groups": ["fin"]}}), "ES256").await;
    let mut carol = HttpBrowser::new();
    carol.sign_in(&g.url, "carol", "yes").await;
    let secret = carol.cookie(&g.url, COOKIE).unwrap().to_owned();
    let csrf = countersign_web::auth::csrf::CsrfToken::of(&secret).shown();
    let leaving = carol.post(&format!("{}/sign-out", g.url), &[("csrf", &csrf)]).await;
    assert!(g.service.identity.session_of(&secret).await.is_err());
    let there = onward(&leaving);
    assert!(there.starts_with(&format!("{}/session/end?", provider.issuer)), "{there}");
    assert_eq!(parameter(&there, "post_logout_redirect_uri"), format!("{}/sign-in", g.url));
    assert_eq!(parameter(&there, "client_id"), "countersign");
    let asks = carol.get(&there).await;
    assert_eq!(asks.status, 200, "the provider takes the hint: {}", asks.body);
    let xsrf = super::visitor::between(&asks.body, "name=\"xsrf\" value=\"", "\"");
    let confirm = format!("{}/session/end/confirm", provider.issuer);
    let done = carol.post(&confirm, &[("xsrf", &xsrf), ("logout", "yes")]).await;
    assert_eq!(done.location.as_deref(), Some(format!("{}/sign-in", g.url).as_str()));
    let url = carol.sent_to(&g.url, "/").await;
    let asked = carol.get(&url).await;
    let asked = carol.follow(asked, &g.url).await;
    assert!(asked.body.contains("Who are you?"), "the provider asks again who it is");
}

#[tokio::test]
async fn provider_is_called_over_tls_with_a_trusted_ca() {
    let people = json!({"carol": {"groups": ["fin"]}});
    for (authority, status) in [(Some(AUTHORITY.to_vec()), 200), (None, 503)] {
        let place = ReservedPort::take();
        let provider = RealProvider::start_secure(&place.url(), &people);
        let g = place.gateway(OidcConfig { authority, ..settings(&provider.issuer) }).await;
        let mut carol = HttpBrowser::new();
        assert_eq!(carol.begin(&g.url, "/").await.status, status);
        if status == 200 {
            assert_eq!(carol.sign_in(&g.url, "carol", "yes").await.status, 303);
        }
    }
}

fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

async fn audited(g: &TestGateway) {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let report = audit(&store, &g.service.core.keys().unwrap(), g.service.core.now()).await.unwrap();
    assert_eq!(report.findings, []);
}
