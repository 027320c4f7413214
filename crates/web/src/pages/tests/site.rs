//! A page server and a browser for tests of the scripts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use chromiumoxide::browser::{Browser, BrowserConfig};
use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use chromiumoxide::page::Page;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::assets;

/// The Content-Security-Policy of the gateway.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; \
                   frame-ancestors 'none'; base-uri 'none'";

/// A name of this host that browsers do not treat as a secure context.
const PLAIN_HOST: &str = "gateway.test";

#[derive(Default)]
struct PageFiles {
    files: Mutex<HashMap<String, String>>,
}

async fn file(request: HttpRequest, shelf: web::Data<Arc<PageFiles>>) -> HttpResponse {
    let kind = if request.path().ends_with(".css") { "text/css" } else { "text/html; charset=utf-8" };
    match shelf.files.lock().unwrap().get(request.path()) {
        Some(text) => {
            HttpResponse::Ok().content_type(kind).insert_header(("content-security-policy", CSP)).body(text.clone())
        }
        None => HttpResponse::NotFound().finish(),
    }
}

async fn post(body: String, posted: web::Data<UnboundedSender<String>>) -> HttpResponse {
    posted.send(body).unwrap();
    HttpResponse::Ok().content_type("text/html").body("<!doctype html><title>posted</title><p>posted")
}

/// A browser with one tab, and a server of named pages.
pub struct PageTestSite {
    shelf: Arc<PageFiles>,
    port: u16,
    posted: UnboundedReceiver<String>,
    pub page: Page,
    browser: Browser,
    _profile: tempfile::TempDir,
}

impl PageTestSite {
    pub async fn open() -> Self {
        let shelf = Arc::new(PageFiles::default());
        let data = web::Data::new(shelf.clone());
        let (sender, posted) = unbounded_channel();
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(web::Data::new(sender.clone()))
                .route("/assets/{name:.+}", web::get().to(assets::serve))
                .default_service(web::route().guard(actix_web::guard::Post()).to(post))
                .route("/{name:.*}", web::get().to(file))
        });
        let server = server.workers(1).bind(("127.0.0.1", 0)).unwrap();
        let port = server.addrs()[0].port();
        actix_web::rt::spawn(server.run());
        let profile = tempfile::tempdir().unwrap();
        let config = BrowserConfig::builder()
            .new_headless_mode()
            .no_sandbox()
            .user_data_dir(profile.path())
            .arg("disable-gpu")
            .arg("disable-background-networking")
            .arg(("host-resolver-rules", format!("MAP {PLAIN_HOST} 127.0.0.1").as_str()))
            .viewport(None)
            .build()
            .expect("a Chromium is installed");
        let (browser, mut handler) = Browser::launch(config).await.unwrap();
        actix_web::rt::spawn(async move { while handler.next().await.is_some() {} });
        let page = browser.new_page("about:blank").await.unwrap();
        let site = Self { shelf, port, posted, page, browser, _profile: profile };
        site.resize(1280, 900).await;
        site
    }

    pub async fn resize(&self, width: i64, height: i64) {
        let size = SetDeviceMetricsOverrideParams::new(width, height, 1.0, width < 500);
        self.page.execute(size).await.unwrap();
    }

    pub fn put(&self, path: &str, text: impl Into<String>) {
        self.shelf.files.lock().unwrap().insert(path.to_owned(), text.into());
    }

    pub async fn next_post(&mut self) -> String {
        self.posted.recv().await.unwrap()
    }

    /// Checks that the page has sent no further form.
    pub fn nothing_posted(&mut self) -> bool {
        self.posted.try_recv().is_err()
    }

    /// Opens a page on localhost, which is a secure context.
    pub async fn visit(&self, path: &str) {
        self.page.goto(format!("http://localhost:{}{path}", self.port)).await.unwrap();
    }

    /// Opens a page over plain HTTP by another name, which is not a secure context.
    pub async fn visit_plain(&self, path: &str) {
        self.page.goto(format!("http://{PLAIN_HOST}:{}{path}", self.port)).await.unwrap();
    }

    pub async fn js<T: serde::de::DeserializeOwned>(&self, expression: &str) -> T {
        self.page.evaluate(expression).await.unwrap().into_value().unwrap()
    }

    /// Waits until the result of the script is not `not`, and returns it.
    pub async fn verdict(&self, not: &str) -> PageCheckResult {
        let wait = format!(
            "new Promise((done) => {{
                const mark = document.querySelector('[data-check-detail]').closest('[data-check]');
                const look = () => mark.dataset.state && mark.dataset.state !== '{not}' && done(true);
                look();
                new MutationObserver(look).observe(mark, {{ attributes: true }});
            }})"
        );
        let _: bool = self.js(&wait).await;
        self.said().await
    }

    /// Returns the current result on the page.
    pub async fn said(&self) -> PageCheckResult {
        self.js("({ words: [...document.querySelectorAll('[data-check-words]')].map((it) => it.textContent),
                detail: document.querySelector('[data-check-detail]').textContent,
                field: document.querySelector('[name=browser_check]')?.value ?? '',
                enabled: [...document.querySelectorAll('button[name=verdict]')].filter((it) => !it.disabled).length })")
            .await
    }

    pub async fn close(mut self) {
        self.browser.close().await.unwrap();
        self.browser.wait().await.unwrap();
    }
}

/// The result of the script on a review page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct PageCheckResult {
    pub words: Vec<String>,
    pub detail: String,
    pub field: String,
    pub enabled: usize,
}

impl PageCheckResult {
    pub fn matches(&self) -> bool {
        self.words == ["Recomputed in this browser: matches"; 2] && (self.field == "match" || self.field.is_empty())
    }

    pub fn refuses(&self) -> bool {
        self.words == ["Recomputed in this browser: does not match"; 2] && self.field == "mismatch" && self.enabled == 0
    }

    pub fn claims_nothing(&self) -> bool {
        self.words == ["Not recomputed here"; 2] && self.field == "none"
    }
}
