//! Weight of a page: the bytes that the gateway sends for it, and the layout shifts while it loads.

use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::spawn_gateway;
use crate::person::BrowserTab;

/// Largest size of the first page in a new browser, with all that it needs, in bytes on the wire.
const FIRST_PAGE_BYTES_MAX: u64 = 60_000;

/// Returns the bytes sent for the open page and its resources, and how many of these came from a cache.
async fn sent(tab: &BrowserTab) -> (u64, usize) {
    tab.js(
        "(() => { const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
            .filter((it) => it.initiatorType !== 'other' && !it.name.includes('/live'));
            return [all.reduce((sum, it) => sum + it.transferSize, 0), all.filter((it) => it.transferSize === 0).length]; })()",
    )
    .await
}

/// How much of the window moved by itself since the page began, as browsers count it, and what moved.
async fn moved(tab: &BrowserTab) -> (f64, Vec<String>) {
    tab.js(
        "new Promise((done) => { let sum = 0; const what = [];
            const it = new PerformanceObserver((list) => list.getEntries().forEach((e) => { sum += e.value;
                for (const s of e.sources) what.push(`${s.node?.outerHTML?.slice(0, 80)} ${JSON.stringify(s.previousRect)} ${JSON.stringify(s.currentRect)}`); }));
            it.observe({ type: 'layout-shift', buffered: true });
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done([sum, what]), 100))); })",
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_page_is_light_the_next_is_lighter_and_nothing_moves() {
    let gateway = spawn_gateway().await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let patch = json!({"target_user_id": 42, "payment": {"amount": 950, "card": {"number": "4929 0000 0000 0000"}}});
    let mut held = gateway.held(&payments, "order-0", &patch).await;
    for number in 1..10 {
        held = gateway.held(&payments, &format!("order-{number}"), &patch).await;
    }
    let review = format!("/reviews/{}", held.review);
    for (width, height) in [(1280, 900), (390, 844)] {
        for path in ["/", &review] {
            let link = gateway.service.identity.sign_in_link(&ana.id).await.unwrap();
            let browser = Chromium::open().await;
            let tab = browser.tab(&gateway).await;
            tab.resize(width, height).await;
            // The way in, and then the very first page with everything that it needs.
            tab.goto(&format!("/sign-in/{link}")).await;
            let (door, _) = sent(&tab).await;
            tab.press("Sign in as ana").await;
            tab.goto(path).await;
            let (page, _) = sent(&tab).await;
            assert!(door + page < FIRST_PAGE_BYTES_MAX, "{path}: {door} and {page}");
            let (much, what) = moved(&tab).await;
            assert!(much < 0.001, "{path} at {width}: {much} moved: {what:#?}");
            tab.goto(path).await;
            let (again, cached) = sent(&tab).await;
            assert!(cached >= 8, "{path}: {again} sent again, {cached} from the cache");
            browser.close().await;
        }
    }
}
