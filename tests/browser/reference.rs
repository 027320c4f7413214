//! API reference page: it fits the window, it is accessible, and its links lead to the things that they name.

use crate::chromium::Chromium;
use crate::gateway::spawn_gateway;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_fits_a_phone_and_everybody_can_use_it() {
    let gateway = spawn_gateway().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    for (width, height) in [(1280, 900), (390, 844)] {
        for scheme in ["light", "dark"] {
            tab.resize(width, height).await;
            tab.scheme(scheme).await;
            tab.goto("/docs").await;
            // This is the state of the page after a reader has opened every call of a part.
            let opened: usize = tab
                .js("[...document.querySelectorAll('section:nth-of-type(2) details')].map(it => it.open = true).length")
                .await;
            assert!(opened > 3, "{opened} calls");
            tab.is_accessible(&format!("the reference at {width} in {scheme}")).await;
            let needed: i64 = tab.js("document.documentElement.scrollWidth").await;
            assert!(needed <= width, "it needs {needed} of {width}");
        }
    }
}
