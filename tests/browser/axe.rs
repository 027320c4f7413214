//! Accessibility of the pages: axe-core must find no barrier for people with poor sight, without sight or without a
//! mouse.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::chromium::Chromium;
use crate::gateway::spawn_gateway;
use crate::npm;
use crate::person::BrowserTab;

static AXE: LazyLock<String> = LazyLock::new(|| {
    std::fs::read_to_string(npm::modules("axe").join("axe-core/axe.min.js")).expect("the package has its script")
});

/// WCAG 2.2 at level AA, and what axe's makers hold to be good practice.
const RULES: &str = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";

#[derive(Deserialize)]
struct AxeViolation {
    rule: String,
    help: String,
    places: Vec<String>,
}

impl BrowserTab {
    /// Looks through the page that is open.
    pub async fn is_accessible(&self, name: &str) {
        let found = self.barriers().await;
        assert!(found.is_empty(), "{name}: {}", found.join("\n"));
    }

    async fn barriers(&self) -> Vec<String> {
        // The browser itself runs the script: the page's content security policy allows no script of the test.
        self.js::<bool>(&format!("(() => {{ if (!window.axe) {{ {} }} return true; }})()", *AXE)).await;
        let run = format!(
            "axe.run(document, {{ runOnly: {RULES}, resultTypes: ['violations'] }}).then((it) => it.violations.map((that) => ({{
                rule: that.id, help: that.help,
                places: that.nodes.map((node) => node.target.join(' ') + ': ' + node.failureSummary.replace(/\\s+/g, ' ')),
            }})))"
        );
        let violations: Vec<AxeViolation> = self.js(&run).await;
        violations.iter().map(|it| format!("{} ({}): {:#?}", it.rule, it.help, it.places)).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn barriers_on_a_page_are_found() {
    let gateway = spawn_gateway().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto("/sign-in").await;
    tab.is_accessible("as it is").await;
    for (wrong, rule) in
        [("<input>", "label"), ("<button></button>", "button-name"), ("<h6>too deep</h6>", "heading-order")]
    {
        let put = format!("(document.querySelector('main').insertAdjacentHTML('beforeend', {wrong:?}), true)");
        tab.js::<bool>(&put).await;
        let found = tab.barriers().await;
        assert!(found.iter().any(|it| it.starts_with(rule)), "{rule}: {found:?}");
    }
    tab.js::<bool>("(document.querySelector('main h6').style.color = '#ccc', true)").await;
    let found = tab.barriers().await;
    assert!(found.iter().any(|it| it.starts_with("color-contrast")), "{found:?}");
    browser.close().await;
}
