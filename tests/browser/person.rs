//! Actions of a person in a tab of their browser.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams, SetScriptExecutionDisabledParams,
};
use chromiumoxide::cdp::browser_protocol::input::InsertTextParams;
use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotFormat, EventLoadEventFired};
use chromiumoxide::layout::Point;
use chromiumoxide::page::{Page, ScreenshotParams};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;

use crate::gateway::{BrowserGateway, PASSWORD};

/// Longer than any page takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Quality of pictures, at most 100. At this value text is sharp, and a picture of a whole page has about 30 kB.
const PICTURE: i64 = 60;

/// How often a question is put again while the page is being replaced.
const ASKS_MAX: usize = 200;

/// How often it is looked whether something is so yet, and how long between: as patient as for a page.
const LOOKS_MAX: usize = 1000;
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Number of clicks on the menu, and number of checks after each click whether the menu has opened.
const CLICKS_MAX: usize = 3;
const LOOKS_BETWEEN_CLICKS: usize = 200;

pub struct BrowserTab {
    pub page: Page,
    url: String,
}

impl BrowserTab {
    pub fn on(page: Page, gateway: &BrowserGateway) -> Self {
        Self { page, url: gateway.url.clone() }
    }

    pub async fn resize(&self, width: i64, height: i64) {
        let size = SetDeviceMetricsOverrideParams::new(width, height, 1.0, width < 500);
        self.page.execute(size).await.unwrap();
    }

    pub async fn scheme(&self, scheme: &str) {
        let feature = |name: &str, value: &str| MediaFeature { name: name.to_owned(), value: value.to_owned() };
        // Nothing is half-way from one scheme to the other then.
        let features = [feature("prefers-color-scheme", scheme), feature("prefers-reduced-motion", "reduce")];
        self.page.execute(SetEmulatedMediaParams::builder().features(features).build()).await.unwrap();
    }

    pub async fn without_scripts(&self) {
        self.page.execute(SetScriptExecutionDisabledParams::new(true)).await.unwrap();
    }

    pub async fn goto(&self, path: &str) {
        let mut loads = self.page.event_listener::<EventLoadEventFired>().await.unwrap();
        self.page.goto(format!("{}{path}", self.url)).await.unwrap();
        tokio::time::timeout(PATIENCE, loads.next()).await.expect("the page loads").unwrap();
    }

    /// Presses what is labelled so and waits for the page that follows.
    pub async fn press(&self, label: &str) {
        self.press_in("main", label).await;
    }

    /// Presses a button that leads over other pages to one that says this.
    pub async fn press_until(&self, selector: &str, words: &str) {
        /// There and back are four pages.
        const PAGES_MAX: usize = 6;
        let mut loads = self.page.event_listener::<EventLoadEventFired>().await.unwrap();
        self.click(&format!("document.querySelector({selector:?})")).await;
        for _ in 0..PAGES_MAX {
            tokio::time::timeout(PATIENCE, loads.next()).await.expect("a page follows").unwrap();
            if self.text().await.contains(words) {
                return;
            }
        }
        panic!("no page says {words:?}: {}", self.text().await);
    }

    /// The same, outside of the content.
    pub async fn press_in(&self, part: &str, label: &str) {
        let mut loads = self.page.event_listener::<EventLoadEventFired>().await.unwrap();
        if part == "header" {
            self.open_menu().await;
        }
        self.click(&labelled(part, label)).await;
        tokio::time::timeout(PATIENCE, loads.next()).await.expect("a page follows").unwrap();
    }

    /// Opens the menu. If the page moved and the click missed, it clicks again as a person does.
    async fn open_menu(&self) {
        for _ in 0..CLICKS_MAX {
            self.click("document.querySelector('.menu > summary')").await;
            for _ in 0..LOOKS_BETWEEN_CLICKS {
                if self.js("document.querySelector('.menu').open").await {
                    return;
                }
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        }
        panic!("the menu never opened on {}", self.path().await);
    }

    /// Follows the first such link.
    pub async fn follow(&self, selector: &str) {
        let mut loads = self.page.event_listener::<EventLoadEventFired>().await.unwrap();
        self.click(&format!("document.querySelector({selector:?})")).await;
        tokio::time::timeout(PATIENCE, loads.next()).await.expect("a page follows").unwrap();
    }

    /// Presses what is labelled so; nothing needs to follow.
    pub async fn press_only(&self, label: &str) {
        self.click(&labelled("main", label)).await;
    }

    /// The same, of a button beside the content.
    pub async fn press_in_page(&self, label: &str) {
        self.click(&labelled("body", label)).await;
    }

    /// Presses what a selector finds.
    pub async fn click_on(&self, selector: &str) {
        self.click(&format!("document.querySelector({selector:?})")).await;
    }

    /// Waits until the page says yes by itself.
    pub async fn until(&self, condition: &str) {
        // Asked from here: where scripts are off, nothing in the page waits.
        let met = format!("Boolean({condition})");
        for _ in 0..LOOKS_MAX {
            if self.js(&met).await {
                return;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        panic!("never: {condition}");
    }

    /// Types into the field of that label.
    pub async fn fill(&self, label: &str, text: &str) {
        let labels = "[...document.querySelectorAll('main label')]";
        self.click(&format!("{labels}.find((it) => it.innerText.trim().startsWith({label:?})).control")).await;
        self.page.execute(InsertTextParams::new(text)).await.unwrap();
    }

    /// Scrolls to an element, waits until it rests under the mouse, and clicks the middle of its first line. A link may
    /// wrap: the middle of its whole box is then beside the text.
    async fn click(&self, element: &str) {
        let place = format!(
            "(() => {{ const it = {element}; it.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = it.getClientRects()[0];
                return [box.left + box.width / 2, box.top + box.height / 2, it.matches(':hover')]; }})()"
        );
        if self.js("location.hash !== ''").await {
            self.frame().await;
        }
        let mut before = None;
        for _ in 0..LOOKS_MAX {
            let (x, y, felt): (f64, f64, bool) = self.js(&place).await;
            if felt && before == Some((x, y)) {
                self.page.click(Point::new(x, y)).await.unwrap();
                return;
            }
            before = Some((x, y));
            self.page.move_mouse(Point::new(x, y)).await.unwrap();
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        panic!("the mouse never reached {element}");
    }

    /// Waits for a frame. A page that is shown from one of its parts on is scrolled there with the first frame after it
    /// was loaded, whatever was scrolled to before.
    async fn frame(&self) {
        self.page.screenshot(ScreenshotParams::builder().format(CaptureScreenshotFormat::Jpeg).build()).await.unwrap();
    }

    /// Returns the expression's value on the current page. It asks again while one page replaces another.
    pub async fn js<T: DeserializeOwned>(&self, expression: &str) -> T {
        for _ in 0..ASKS_MAX {
            if let Ok(value) = self.page.evaluate(expression).await {
                return value.into_value().unwrap();
            }
            tokio::task::yield_now().await;
        }
        panic!("no answer to {expression}");
    }

    /// Everything that can be seen, blanks as one.
    pub async fn text(&self) -> String {
        self.text_of("body").await
    }

    /// Returns the text of one element, without the parts that only screen readers read.
    pub async fn text_of(&self, selector: &str) -> String {
        self.js(&format!(
            "(() => {{ const unseen = [...document.querySelectorAll('.sr')];
                unseen.forEach((it) => (it.style.display = 'none'));
                const text = document.querySelector({selector:?}).innerText.replace(/\\s+/g, ' ').trim();
                unseen.forEach((it) => (it.style.display = ''));
                return text; }})()"
        ))
        .await
    }

    pub async fn path(&self) -> String {
        self.js("location.pathname + location.search").await
    }

    pub async fn html(&self) -> String {
        self.js("document.documentElement.outerHTML").await
    }

    pub async fn count(&self, selector: &str) -> usize {
        self.js(&format!("document.querySelectorAll({selector:?}).length")).await
    }

    /// Returns the verdict of the page's script once the verdict differs from `not`.
    pub async fn verdict(&self, not: &str) -> String {
        let wait = format!(
            "new Promise((done) => {{
                const mark = document.querySelector('.proof-check');
                const look = () => mark.dataset.state && mark.dataset.state !== '{not}' && done(mark.innerText);
                look();
                new MutationObserver(look).observe(mark, {{ attributes: true, subtree: true, childList: true }});
            }})"
        );
        self.js(&wait).await
    }

    /// Whether all of these can be seen without scrolling.
    pub async fn in_first_screen(&self, selector: &str) -> bool {
        self.js(&format!(
            "(() => {{ const box = document.querySelector({selector:?}).getBoundingClientRect();
                return scrollY === 0 && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth; }})()"
        ))
        .await
    }

    pub async fn sign_in(&self, name: &str) {
        self.goto("/sign-in").await;
        self.fill("User name", name).await;
        self.fill("Password", PASSWORD).await;
        self.press("Sign in").await;
    }

    pub async fn photograph(&self, path: &std::path::Path, whole: bool) {
        let params =
            ScreenshotParams::builder().format(CaptureScreenshotFormat::Webp).quality(PICTURE).full_page(whole).build();
        std::fs::write(path, self.page.screenshot(params).await.unwrap()).unwrap();
    }
}

/// The button or link that reads so.
fn labelled(part: &str, label: &str) -> String {
    format!("[...document.querySelectorAll('{part} button, {part} a')].find((it) => it.innerText.trim() === {label:?})")
}
