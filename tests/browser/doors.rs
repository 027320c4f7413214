//! Sign-in: sessions, links, throttles, and the page after signing in.

use countersign_domain::identity::account::PersonRole;
use countersign_web::auth::permissions::TABLE;

use crate::chromium::Chromium;
use crate::gateway::{PASSWORD, SIGN_INS, spawn_gateway};
use crate::tool_calls::REQUESTS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_session_every_page_leads_to_sign_in() {
    let gateway = spawn_gateway().await;
    let pages = TABLE.iter().filter(|it| !it.people.is_empty());
    let mut seen = 0;
    for rule in pages {
        let path = rule.route.replace("{review}", "0192f0c1").replace("{thread}", "order-8812");
        for cookie in ["", "countersign=guessed"] {
            let request = match rule.method {
                "GET" => gateway.http.get(gateway.at(&path)),
                _ => gateway
                    .http
                    .post(gateway.at(&path))
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body("csrf=x"),
            };
            let answer = request.header("cookie", cookie).send().await.unwrap();
            let location = answer.headers()["location"].to_str().unwrap().to_owned();
            assert_eq!(answer.status(), 303, "{} {path}", rule.method);
            assert!(location.starts_with("/sign-in"), "{} {path} leads to {location}", rule.method);
        }
        seen += 1;
    }
    assert!(seen >= 6, "the table has every page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_passwords_are_reported_and_too_many_must_wait() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto("/sign-in").await;
    for _ in 0..SIGN_INS {
        let _: String = tab.js("document.querySelector('#username').value = ''").await;
        tab.fill("User name", "ana").await;
        tab.fill("Password", "not the password").await;
        tab.press("Sign in").await;
        assert!(tab.text().await.contains("User name and password do not match."));
    }
    tab.fill("Password", PASSWORD).await;
    tab.press("Sign in").await;
    assert!(tab.text().await.contains("Too many failed sign-ins."), "even the right one waits");
    gateway.clock.advance(std::time::Duration::from_secs(61));
    tab.fill("Password", PASSWORD).await;
    tab.press("Sign in").await;
    assert_eq!(tab.path().await, "/");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_link_is_used_by_its_button_once_and_not_by_being_opened() {
    let gateway = spawn_gateway().await;
    let ana = gateway.person("ana", PersonRole::Auditor, &[]).await;
    let link = gateway.service.identity.sign_in_link(&ana.id).await.unwrap();
    let path = format!("/sign-in/{link}");
    for _ in 0..2 {
        assert_eq!(gateway.http.get(gateway.at(&path)).send().await.unwrap().status(), 200, "looking uses nothing up");
    }
    let forged =
        gateway.http.post(gateway.at(&path)).header("content-type", "application/x-www-form-urlencoded").body("csrf=x");
    assert_eq!(forged.send().await.unwrap().status(), 403, "a form that is from nowhere");
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto(&path).await;
    tab.press("Sign in as ana").await;
    assert!(tab.text_of(".menu-name").await.contains("ana"));
    let again = gateway.http.get(gateway.at(&path)).header("accept", "text/html").send().await.unwrap();
    assert_eq!(again.status(), 404);
    assert!(again.text().await.unwrap().contains("This link cannot be used"));
    assert_eq!(gateway.http.get(gateway.at(&format!("/set-up/{link}"))).send().await.unwrap().status(), 404);
    browser.close().await;
}

/// The first account could not approve in a group that no policy asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_up_form_proposes_only_the_single_group_that_policies_ask() {
    let gateway = spawn_gateway().await;
    let link = gateway.service.identity.set_up_link().await.unwrap().unwrap();
    let proposed = async || {
        let page = gateway.http.get(gateway.at(&format!("/set-up/{link}"))).send().await.unwrap().text().await.unwrap();
        let (before, _) = page.split_once("\" aria-describedby=\"groups-hint\"").unwrap();
        before.rsplit('"').next().unwrap().to_owned()
    };
    assert_eq!(proposed().await, "", "there is no policy");
    gateway.activate(REQUESTS).await;
    assert_eq!(proposed().await, "reviewers");
    gateway.activate(&REQUESTS.replace("flow = \"files\"", "flow = \"other\"").replace("reviewers", "finance")).await;
    assert_eq!(proposed().await, "", "two groups are a choice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_in_does_not_redirect_to_another_site() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto("/sign-in?next=//evil.example/").await;
    tab.fill("User name", "ana").await;
    tab.fill("Password", PASSWORD).await;
    tab.press("Sign in").await;
    assert_eq!(tab.js::<String>("location.href").await, gateway.at("/"));
    let there = gateway.http.get(gateway.at("/sign-in?next=https://evil.example/")).send().await.unwrap();
    assert!(!there.text().await.unwrap().contains("evil.example"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_url_returns_a_page_to_browsers_and_a_problem_to_api_clients() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let people = gateway.http.get(gateway.at("/nowhere")).header("accept", "text/html").send().await.unwrap();
    assert_eq!(people.status(), 404);
    assert!(people.text().await.unwrap().contains("There is no such page"));
    let machines = gateway.http.get(gateway.at("/v1/nowhere")).send().await.unwrap();
    assert_eq!(machines.headers()["content-type"], "application/problem+json");
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    for path in ["/reviews/0192f0c1", "/reviews/%20", "/threads/nothing"] {
        tab.goto(path).await;
        assert!(tab.text().await.contains("There is no such"), "{path}");
    }
    browser.close().await;
}
