//! A browser without a window. It has cookies for each site and follows redirects only on request.

use std::collections::BTreeMap;

use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};

#[derive(Clone, Debug)]
pub struct BrowserResponse {
    pub url: String,
    pub status: u16,
    pub location: Option<String>,
    pub body: String,
}

pub struct HttpBrowser {
    http: Client,
    cookies: BTreeMap<String, BTreeMap<String, String>>,
}

impl HttpBrowser {
    pub fn new() -> Self {
        countersign_adapters::tls::ready();
        let http = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .tls_danger_accept_invalid_certs(true)
            .build()
            .unwrap();
        Self { http, cookies: BTreeMap::new() }
    }

    pub fn cookie(&self, site: &str, name: &str) -> Option<&str> {
        self.cookies.get(site)?.get(name).map(String::as_str)
    }

    pub fn put_cookie(&mut self, site: &str, name: &str, value: &str) {
        self.cookies.entry(site.to_owned()).or_default().insert(name.to_owned(), value.to_owned());
    }

    pub async fn get(&mut self, url: &str) -> BrowserResponse {
        self.send(Method::GET, url, None).await
    }

    pub async fn post(&mut self, url: &str, fields: &[(&str, &str)]) -> BrowserResponse {
        let mut form = Url::parse("http://form").unwrap();
        form.query_pairs_mut().extend_pairs(fields);
        self.send(Method::POST, url, Some(form.query().unwrap_or_default().to_owned())).await
    }

    async fn send(&mut self, method: Method, url: &str, form: Option<String>) -> BrowserResponse {
        let site = Url::parse(url).unwrap().origin().ascii_serialization();
        let mut request = self.http.request(method, url);
        let cookies = self.cookies.entry(site.clone()).or_default();
        let shown: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request = request.header(COOKIE, shown.join("; "));
        if let Some(form) = form {
            request = request.header("content-type", "application/x-www-form-urlencoded").header(ORIGIN, &site);
            request = request.body(form);
        }
        let answer = request.send().await.unwrap();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = cookie.split_once('=').unwrap();
            if value.is_empty() {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let location = answer.headers().get(LOCATION).map(|it| it.to_str().unwrap().to_owned());
        let location = location.map(|it| Url::parse(url).unwrap().join(&it).unwrap().to_string());
        let status = answer.status().as_u16();
        BrowserResponse { url: url.to_owned(), status, location, body: answer.text().await.unwrap() }
    }

    /// Follows redirects until a page, or one of the site that `stop` is about.
    pub async fn follow(&mut self, mut seen: BrowserResponse, stop: &str) -> BrowserResponse {
        for _ in 0..10 {
            let Some(next) = seen.location.clone() else { return seen };
            if seen.url.starts_with(stop) {
                return seen;
            }
            seen = self.get(&next).await;
        }
        panic!("more than ten redirects: {seen:?}");
    }

    /// Presses the button on the sign-in page. Returns the redirect.
    pub async fn begin(&mut self, gateway: &str, next: &str) -> BrowserResponse {
        let page = self.get(&format!("{gateway}/sign-in")).await;
        let csrf = between(&page.body, "name=\"csrf\" value=\"", "\"");
        self.post(&format!("{gateway}/sign-in/oidc"), &[("csrf", &csrf), ("next", next)]).await
    }

    /// The address at the provider that a person is sent to.
    pub async fn sent_to(&mut self, gateway: &str, next: &str) -> String {
        let leaving = self.begin(gateway, next).await;
        assert_eq!(leaving.status, 200, "{}", leaving.body);
        onward(&leaving)
    }

    /// Signs in at the provider as that person. Returns the gateway's last response.
    pub async fn sign_in(&mut self, gateway: &str, name: &str, answer: &str) -> BrowserResponse {
        let url = self.sent_to(gateway, "/policies").await;
        let seen = self.get(&url).await;
        let mut seen = self.follow(seen, gateway).await;
        if seen.status == 200 && seen.body.contains("Who are you?") {
            let url = seen.url.clone();
            seen = self.post(&url, &[("login", name), ("answer", answer)]).await;
            seen = self.follow(seen, gateway).await;
        }
        assert!(seen.url.starts_with(gateway), "{seen:?}");
        seen
    }
}

/// Returns the address that a page redirects to.
pub fn onward(leaving: &BrowserResponse) -> String {
    between(&leaving.body, "content=\"0; url=", "\"").replace("&amp;", "&").replace("&#38;", "&")
}

pub fn between(text: &str, start: &str, end: &str) -> String {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start} in {text}")) + start.len();
    text[from..from + text[from..].find(end).unwrap()].to_owned()
}

/// A parameter of an address.
pub fn parameter(url: &str, name: &str) -> String {
    let url = Url::parse(url).unwrap();
    let found = url.query_pairs().find(|it| it.0 == name);
    found.unwrap_or_else(|| panic!("no {name} in {url}")).1.into_owned()
}
