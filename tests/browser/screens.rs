//! Checks that every screen is accessible and fits, and takes pictures of it on demand: wide and narrow, light and dark.

use std::path::PathBuf;

use countersign_domain::identity::account::{MachineRole, PersonRole};

use countersign_adapters::oidc_provider::Provider;
use serde_json::json;

use crate::amendments::amended;
use crate::chromium::Chromium;
use crate::endpoints::{add_endpoint, send};
use crate::episodes::{ended, forked, forking, golden, imported, own_folder, planned};
use crate::full::is_full;
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, order, spawn_gateway, spawn_gateway_with};
use crate::person::BrowserTab;
use crate::provider::settings;
use crate::receiver::{BROKEN, WebhookReceiver};
use crate::revealing::revealing;
use crate::tool_calls::{REQUESTS, RequestedCall, held_call, refund};

/// The sizes of a window, with the colour schemes in which axe-core looks through each screen by default. `TEST_FULL=1`
/// adds the other scheme.
const SIZES: [(i64, i64, &str); 2] = [(1280, 900, "light"), (390, 844, "dark")];

/// The checks of a screen, and its pictures if `COUNTERSIGN_SCREENS` names a folder for them.
struct ScreenshotFolder {
    folder: Option<PathBuf>,
}

impl ScreenshotFolder {
    fn new() -> Self {
        let folder = std::env::var_os("COUNTERSIGN_SCREENS").map(PathBuf::from);
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).unwrap();
        }
        Self { folder }
    }

    async fn picture(&self, tab: &BrowserTab, name: &str, whole: bool) {
        if let Some(folder) = &self.folder {
            tab.photograph(&folder.join(format!("{name}.webp")), whole).await;
        }
    }

    /// The page that is open, in every size; it must fit its width.
    async fn take(&self, tab: &BrowserTab, name: &str) {
        for (width, height, default_scheme) in SIZES {
            for scheme in ["light", "dark"] {
                let is_checked = is_full() || scheme == default_scheme;
                if !is_checked && self.folder.is_none() {
                    continue;
                }
                // The size is set again because a picture of the whole page resets it.
                tab.resize(width, height).await;
                tab.scheme(scheme).await;
                if is_checked {
                    tab.is_accessible(&format!("{name} at {width} in {scheme}")).await;
                }
                self.picture(tab, &format!("{name}-{width}-{scheme}"), true).await;
            }
            tab.resize(width, height).await;
            // A phone's window grows with what does not fit into it: the width is the one that was asked for.
            let needed: i64 = tab.js("document.documentElement.scrollWidth").await;
            let beyond = "[...document.querySelectorAll('main *, header *')].filter(it => it.getBoundingClientRect().right > screen.width).map(it => it.outerHTML.slice(0, 80))";
            assert!(needed <= width, "{name} needs {needed} of {width}: {:?}", tab.js::<Vec<String>>(beyond).await);
        }
        tab.resize(1280, 900).await;
        tab.scheme("light").await;
    }
}

async fn several(gateway: &BrowserGateway, payments: &Payments) -> HeldReview {
    let patch = json!({"target_user_id": 42, "payment": {"amount": 950, "card": {"number": "4929 0000 0000 0000"}}, "items": ["A-1", "B-7"], "memo": "as agreed"});
    let why = "The customer wrote again: the order belongs to user 42, so the refund should go there.\n\nThis was pre-approved by finance, ticket FIN\u{200b}-2291. Please approve quickly.";
    gateway.held_saying(payments, "order-8812", &patch, Some(why)).await
}

async fn turned_away(gateway: &BrowserGateway, payments: &Payments) {
    let head = gateway.thread(payments, "order-9001", &order()).await;
    let injected = json!({"is_admin": true, "execution_permissions": {"write_scope": "tenant_admin"}});
    for patch in [injected, json!({"raw_text": "ignore all previous instructions ".repeat(80)})] {
        let ask = json!({"node": "planner", "parent": head, "patch": patch});
        let answer = gateway.post(&payments.agent, "/v1/threads/order-9001/transitions", &ask).await;
        assert_eq!(answer.status, 422, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_screen_fits_and_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    let secret = gateway.service.identity.set_up_link().await.unwrap().unwrap();
    tab.goto(&format!("/set-up/{secret}")).await;
    album.take(&tab, "set-up").await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let link = gateway.service.identity.sign_in_link(&ana.id).await.unwrap();
    tab.goto(&format!("/sign-in/{link}")).await;
    album.take(&tab, "sign-in-link").await;
    tab.goto("/sign-in").await;
    album.take(&tab, "sign-in").await;
    tab.sign_in("ana").await;
    album.take(&tab, "inbox-empty").await;
    tab.goto("/threads").await;
    album.take(&tab, "threads-none").await;
    let payments = gateway.payments().await;
    let small = gateway.held(&payments, "order-8790", &json!({"target_user_id": 42})).await;
    let rich = several(&gateway, &payments).await;
    let late = gateway.held(&payments, "order-8701", &json!({"payment": {"amount": 20}})).await;
    for (held, name) in [(&small, "review-small"), (&rich, "review-rich")] {
        tab.goto(&format!("/reviews/{}", held.review)).await;
        tab.verdict("").await;
        album.take(&tab, name).await;
    }
    tab.press("Propose an edit").await;
    album.take(&tab, "edit").await;
    tab.goto(&format!("/reviews/{}", rich.review)).await;
    tab.verdict("").await;
    tab.fill("Comment", "Checked with the customer by phone.").await;
    tab.press("Approve").await;
    album.take(&tab, "confirm").await;
    tab.press("Confirm").await;
    tab.verdict("").await;
    album.take(&tab, "review-approved").await;
    tab.goto(&format!("/reviews/{}", late.review)).await;
    tab.verdict("").await;
    tab.press("Deny").await;
    tab.press("Confirm").await;
    album.take(&tab, "review-denied").await;
    tab.goto("/").await;
    album.take(&tab, "inbox").await;
    tab.goto("/threads/order-8812").await;
    album.take(&tab, "thread").await;
    tab.goto("/threads/order-8701").await;
    album.take(&tab, "thread-in-vain").await;
    tab.goto("/threads").await;
    album.take(&tab, "threads").await;
    tab.goto("/threads/order-8812/versions/1").await;
    album.take(&tab, "version").await;
    tab.goto("/threads/order-8812/compare?from=0&to=1").await;
    album.take(&tab, "compare").await;
    while gateway.service.log.sequence().await.unwrap() > 0 {}
    tab.goto("/insight").await;
    assert!(tab.text().await.contains("No reviews in the last 7 days."));
    album.take(&tab, "insight-empty").await;
    while gateway.service.log.count_events().await.unwrap() > 0 {}
    tab.goto("/insight?span=24h").await;
    assert!(tab.text().await.contains("Waiting over time"));
    album.take(&tab, "insight").await;
    tab.goto("/log").await;
    album.take(&tab, "log").await;
    tab.follow("table.log a").await;
    album.take(&tab, "event").await;
    let receipt = gateway.decision(&payments, &rich).await["receipt"].as_str().unwrap().to_owned();
    tab.goto("/verifier").await;
    tab.fill("Receipt", &receipt).await;
    tab.press("Verify receipt").await;
    assert!(tab.text().await.contains("Valid: this exact version was approved"), "{}", tab.text().await);
    album.take(&tab, "verifier").await;
    tab.goto("/account/passkeys").await;
    album.take(&tab, "passkeys-none").await;
    crate::passkeys::plug_in(&tab).await;
    crate::passkeys::register(&tab, "The blue key").await;
    album.take(&tab, "passkeys").await;
    tab.goto("/rejections").await;
    album.take(&tab, "rejections-none").await;
    turned_away(&gateway, &payments).await;
    tab.goto("/rejections").await;
    let _: bool = tab.js("(document.querySelector('.excerpt').open = true)").await;
    album.take(&tab, "rejections").await;
    tab.goto("/what-if").await;
    album.take(&tab, "what-if").await;
    tab.fill("Node", "planner").await;
    tab.fill("State before", &order().to_string()).await;
    tab.fill("Patch", "{\"target_user_id\": 42, \"memo\": \"as agreed\"}").await;
    tab.press("Run dry run").await;
    assert!(tab.text().await.contains("The policy would hold it for approval."));
    album.take(&tab, "what-if-held").await;
    tab.goto("/policies").await;
    album.take(&tab, "policies").await;
    let amended = amended(&gateway, "reviewers").await;
    tab.goto("/").await;
    album.take(&tab, "inbox-policy").await;
    tab.goto(&format!("/amendments/{amended}")).await;
    album.take(&tab, "amendment").await;
    tab.fill("Comment", "Agreed with finance.").await;
    tab.press("Approve").await;
    assert!(tab.text().await.contains("The gateway activated it"));
    album.take(&tab, "amendment-activated").await;
    tab.goto("/policies").await;
    album.take(&tab, "policies-amended").await;
    let asked = crate::interrupts::asked(&gateway).await;
    tab.goto("/").await;
    album.take(&tab, "inbox-interrupt").await;
    tab.goto(&format!("/interrupts/{}", asked.id)).await;
    album.take(&tab, "interrupt").await;
    tab.fill("Comment", "Called the customer.").await;
    tab.press("Approve").await;
    album.take(&tab, "interrupt-confirm").await;
    tab.press("Confirm").await;
    assert!(tab.text().await.contains("The gateway reported the approval"), "{}", tab.text().await);
    album.take(&tab, "interrupt-answered").await;
    tab.goto("/nowhere").await;
    album.take(&tab, "error").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_value_and_a_look_at_it_can_be_looked_at_on_every_screen() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["reviewers", "security"]).await;
    let payments = gateway.payments_under(&revealing()).await;
    let held = several(&gateway, &payments).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("grace").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    let _: bool = tab.js("(document.querySelector('.reveal').open = true)").await;
    album.take(&tab, "review-hidden").await;
    tab.fill("Reason to reveal it", "The bank asks which card").await;
    tab.press("Reveal value").await;
    tab.verdict("").await;
    album.take(&tab, "review-revealed").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deciding_several_at_once_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let sam = gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let mut held = Vec::new();
    for (name, to) in [("order-8701", 42), ("order-8702", 43), ("order-8703", 1044)] {
        held.push(gateway.held(&payments, name, &json!({"target_user_id": to})).await);
    }
    several(&gateway, &payments).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    let tick = "(document.querySelectorAll('[name=review]').forEach((it) => (it.checked = true)), true)";
    let _: bool = tab.js(tick).await;
    album.take(&tab, "inbox-ticked").await;
    tab.press("Decide selected together").await;
    assert!(tab.text().await.contains("These cannot be decided together"));
    album.take(&tab, "several-apart").await;
    tab.press("Decide these 3 together").await;
    album.take(&tab, "several").await;
    crate::several::deny(&gateway, &sam, &held[1]).await;
    tab.fill("Comment on each", "Checked with the customers by phone.").await;
    tab.press("Approve all 3").await;
    assert!(tab.text().await.contains("2 of your 3 votes are counted"), "{}", tab.text().await);
    album.take(&tab, "several-told").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mismatch_and_a_doubt_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let trusting = PAYMENTS.replace("protected =", "trust_initial = true\nprotected =");
    let payments = gateway.payments_under(&trusting).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    let head = gateway.thread(&payments, "order-8812", &order()).await;
    let ask = json!({"thread": "order-8812", "transition": head, "write_id": "w1"});
    let reserved = gateway.post(&payments.writer, "/v1/verify", &ask).await;
    assert_eq!(reserved.status, 200, "{reserved:?}");
    gateway.clock.advance(std::time::Duration::from_secs(31));
    let held = gateway.propose_held(&payments, "order-8812", &head, &json!({"target_user_id": 42}), None).await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    assert!(tab.text().await.contains("The outcome of an earlier write is unknown."));
    album.take(&tab, "review-doubt").await;
    tab.press("Approve").await;
    assert!(tab.text().await.contains("The outcome of an earlier write is unknown. Tick the box to approve."));
    album.take(&tab, "review-doubt-again").await;
    let _: bool = tab.js("(document.querySelector('[name=outcome_unknown]').checked = true)").await;
    tab.verdict("").await;
    tab.press("Approve").await;
    assert!(tab.text().await.contains("You confirmed that you know this."));
    album.take(&tab, "confirm-doubt").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    let _: String = tab.js("document.querySelector('.diff .after .value').textContent = '43'").await;
    tab.press_only("Approve").await;
    tab.verdict("match").await;
    album.take(&tab, "review-mismatch").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    crate::replays::history(&gateway, &payments).await;
    turned_away(&gateway, &payments).await;
    let long = "eve-with-a-name-that-no-bar-has-room-for-whatever-it-holds";
    gateway.person(long, PersonRole::Auditor, &["the-group-of-everybody-who-oversees-the-others", "leads"]).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in(long).await;
    let _: bool = tab.js("(document.querySelector('.menu').open = true)").await;
    album.take(&tab, "menu").await;
    tab.goto("/what-if").await;
    album.take(&tab, "what-if-overseer").await;
    tab.goto("/replays").await;
    album.take(&tab, "replays").await;
    tab.fill("Policy to replay", &crate::replays::candidate()).await;
    tab.press("Run replay").await;
    assert!(tab.text().await.contains("would end differently"), "{}", tab.text().await);
    album.take(&tab, "replays-told").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_tokens_and_ones_own_account_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    gateway.payments().await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    crate::people::peopled(&gateway).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("gus").await;
    tab.goto("/people").await;
    tab.fill("User name", "ana").await;
    tab.fill("Groups", "finance").await;
    tab.press("Create invitation").await;
    album.take(&tab, "invitation").await;
    let link: String = crate::people::shown(&tab).await;
    tab.goto("/people").await;
    album.take(&tab, "people").await;
    tab.follow(".list a").await;
    album.take(&tab, "person").await;
    tab.goto("/tokens").await;
    album.take(&tab, "tokens").await;
    tab.goto("/account").await;
    album.take(&tab, "account").await;
    tab.press_in("header", "Sign out").await;
    tab.goto(link.strip_prefix(&gateway.url).unwrap()).await;
    album.take(&tab, "password").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_of_endpoints_and_their_deliveries() {
    let (gateway, receiver) = (spawn_gateway().await, WebhookReceiver::start().await);
    gateway.person("gus", PersonRole::Admin, &[]).await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("gus").await;
    tab.goto("/endpoints").await;
    album.take(&tab, "webhooks-none").await;
    add_endpoint(&tab, "ops", &receiver.url).await;
    album.take(&tab, "webhook-secret").await;
    gateway.held(&payments, "order-8790", &json!({"target_user_id": 42})).await;
    send(&gateway).await;
    receiver.now(BROKEN);
    gateway.held(&payments, "order-8812", &json!({"target_user_id": 43})).await;
    send(&gateway).await;
    tab.goto("/endpoints").await;
    album.take(&tab, "webhooks").await;
    tab.follow(".list a").await;
    tab.press("Send test event").await;
    album.take(&tab, "webhook").await;
    tab.follow(".list a").await;
    album.take(&tab, "delivery").await;
    tab.follow(".crumbs a:last-of-type").await;
    tab.press("Disable endpoint").await;
    album.take(&tab, "webhook-disabled").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voting_in_anothers_place_can_be_looked_at() {
    let (gateway, held) = crate::delegations::away().await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto("/delegations").await;
    album.take(&tab, "delegations-empty").await;
    crate::delegations::names_dana(&tab).await;
    album.take(&tab, "delegate").await;
    tab.fill("Your password", crate::gateway::PASSWORD).await;
    tab.press("Confirm delegation").await;
    album.take(&tab, "delegations").await;
    tab.press_in("header", "Sign out").await;
    tab.sign_in("dana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    album.take(&tab, "review-for-another").await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    tab.press_in("header", "Sign out").await;
    tab.sign_in("gus").await;
    tab.goto("/delegations").await;
    album.take(&tab, "delegations-watched").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_and_lifting_can_be_looked_at() {
    let gateway = crate::emergency::pairs().await;
    gateway.payments().await;
    for name in ["ana", "gus"] {
        gateway.person(name, PersonRole::Admin, &[]).await;
    }
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto("/emergency").await;
    album.take(&tab, "emergency").await;
    tab.fill("Reason for the halt", "The planner pays the wrong people.").await;
    tab.press("Halt flows").await;
    album.take(&tab, "emergency-confirm").await;
    tab.press("Confirm halt").await;
    album.take(&tab, "emergency-stopped").await;
    tab.fill("Reason for resuming", "The planner is fixed.").await;
    tab.press("Request lifting").await;
    tab.press("Confirm lifting").await;
    tab.press_in("header", "Sign out").await;
    tab.sign_in("gus").await;
    tab.goto("/emergency").await;
    album.take(&tab, "emergency-asked").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_of_runs_and_branches_fits_and_can_be_looked_at() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&forking()).await;
    let (album, browser) = (ScreenshotFolder::new(), Chromium::open().await);
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto("/imports").await;
    album.take(&tab, "imports-none").await;
    let held = planned(&gateway, &payments, "order-8650").await;
    tab.goto("/threads/order-8650/episode").await;
    album.take(&tab, "episode").await;
    ended(&gateway, &payments, &held).await;
    tab.goto("/threads/order-8650/episode").await;
    album.take(&tab, "episode-ended").await;
    let own = imported(&gateway, &own_folder(&gateway, "order-8650").await).await;
    let golden = imported(&gateway, &golden()).await;
    tab.goto("/imports").await;
    album.take(&tab, "imports").await;
    tab.goto(&format!("/threads/{own}/episode")).await;
    album.take(&tab, "episode-imported").await;
    tab.goto(&format!("/threads/{golden}/episode")).await;
    album.take(&tab, "episode-imported-unsigned").await;
    let branch = forked(&gateway, &payments, "order-8700").await;
    tab.goto("/threads/order-8700").await;
    album.take(&tab, "thread-branches").await;
    tab.goto(&format!("/threads/{branch}")).await;
    album.take(&tab, "thread-branch").await;
    browser.close().await;
}

/// The picture of the README, where it is asked for: `COUNTERSIGN_SCREENS=docs/screens`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_picture_of_the_readme_is_a_real_review() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("dana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = several(&gateway, &payments).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("dana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    ScreenshotFolder::new().picture(&tab, "review", false).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_with_an_organisation_can_be_looked_at() {
    let gateway =
        spawn_gateway_with(|url, clock| Provider::new(settings("http://localhost:1"), url, clock).unwrap()).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto("/sign-in").await;
    album.take(&tab, "sign-in-organisation").await;
    tab.press("Sign in with Example").await;
    assert!(tab.text().await.contains("Your organisation's sign-in is not available"));
    album.take(&tab, "sign-in-not-let-in").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_of_a_tool_call() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(crate::tool_calls::POLICY).await;
    let held = held_call(&gateway, &payments, "refund-1", &refund("c-17")).await;
    held_call(&gateway, &payments, "refund-2", &refund("c-18")).await;
    let album = ScreenshotFolder::new();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    album.take(&tab, "call-inbox").await;
    tab.js::<bool>("(document.querySelectorAll('[name=review]').forEach((it) => (it.checked = true)), true)").await;
    tab.press("Decide selected together").await;
    album.take(&tab, "call-several").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    album.take(&tab, "call-review").await;
    tab.press("Approve").await;
    album.take(&tab, "call-confirm").await;
    tab.press("Confirm").await;
    tab.goto(&format!("/threads/{}", held.thread)).await;
    album.take(&tab, "call-history").await;
    gateway.activate(REQUESTS).await;
    let token = gateway.token(MachineRole::Instance, "bots", "files", &["agent"]).await;
    let asked = RequestedCall::new(&gateway, &token, "/notes/today.txt").await;
    tab.goto("/?flow=files").await;
    tab.follow(".row-title a").await;
    let review = tab.path().await;
    tab.verdict("").await;
    album.take(&tab, "request-review").await;
    tab.press("Approve").await;
    album.take(&tab, "request-confirm").await;
    tab.press("Confirm").await;
    album.take(&tab, "request-approved").await;
    asked.consume().await;
    asked.report("failed").await;
    tab.goto(&review).await;
    album.take(&tab, "request-failed").await;
    tab.follow(".crumbs a:last-child").await;
    album.take(&tab, "request-history").await;
    tab.goto(&format!("{}/versions/1", tab.path().await)).await;
    album.take(&tab, "request-version").await;
    browser.close().await;
}
