//! Fetches every route that the role table allows a party to read, for every object of the gateway.

use countersign_domain::episode::Artefact;
use countersign_domain::identity::account::{Account, MachineRole};

use countersign_web::auth::permissions::TABLE;
use reqwest::header::{ACCEPT, COOKIE};
use serde_json::Value;

use crate::gateway::{ApiResponse, TestGateway};

/// Routes that show nothing of any thread, with why.
const LEFT_OUT: [&str; 3] = [
    // Says only that something happened to a thread; the page's own address is fetched then.
    "/live",
    // A secret of the agent's own.
    "/v1/flows/{flow}/nodes/{node}/envelope-secret",
    // Is sent by a form; what it shows is made of what is sent.
    "/verifier",
];

/// The names that stand for something in the routes that are fetched.
const PLACES: [&str; 8] =
    ["{thread}", "{artefact}", "{digest}", "{interrupt}", "{review}", "{version}", "{event}", "{amendment}"];

/// Whether a route is fetched, or left out for a reason.
pub fn is_known(route: &str) -> bool {
    LEFT_OUT.contains(&route) || route.split('/').all(|it| !it.starts_with('{') || PLACES.contains(&it))
}

/// The objects of a gateway, and the responses that a party received: each address with its text.
#[derive(Default)]
pub struct FetchedFacts {
    pub threads: Vec<String>,
    pub interrupts: Vec<String>,
    versions: Vec<(String, u64)>,
    digests: Vec<String>,
    reviews: Vec<String>,
    events: Vec<String>,
    /// Events up to this position of the audit log are ignored.
    after: u64,
    pub seen: Vec<(String, String)>,
}

impl FetchedFacts {
    /// Starts empty, and ignores events up to this position of the audit log.
    pub fn after(after: u64) -> Self {
        Self { after, ..Self::default() }
    }

    /// Records a response that the party received.
    pub fn answer(&mut self, answer: ApiResponse, status: u16) -> Value {
        let body = answer.expect(status);
        self.seen.push((format!("answer {}", self.seen.len()), body.to_string()));
        body
    }

    pub async fn mcp(&mut self, g: &TestGateway, token: &str, message: Value) {
        let request = g.http.post(format!("{}/mcp", g.url)).bearer_auth(token).json(&message);
        let answer = request.header(ACCEPT, "application/json, text/event-stream").send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success() && text.contains("arguments"), "{status} {text}");
        self.seen.push(("mcp".to_owned(), text));
    }

    /// Collects the objects that the audit log names.
    pub async fn look_up(&mut self, g: &TestGateway) {
        while g.service.log.sequence().await.unwrap() > 0 {}
        for placed in g.service.log.events_after(self.after, None, 500).await.unwrap().0 {
            let data = &placed.event.data;
            let text = |name: &str| data[name].as_str().map(str::to_owned);
            self.events.push(placed.event.id.to_string());
            for digest in text("transition").into_iter().filter(|it| it.starts_with("sha256:")) {
                if !self.digests.contains(&digest) {
                    self.digests.push(digest);
                }
            }
            if let Some(review) = text("review").filter(|it| !self.reviews.contains(it)) {
                self.reviews.push(review);
            }
            if let (Some(thread), Some(version)) = (&placed.event.thread, data["version"].as_u64()) {
                let at = (thread.to_string(), version);
                if !self.versions.contains(&at) {
                    self.versions.push(at);
                }
            }
        }
    }

    /// The addresses of a route.
    fn addresses(&self, route: &str) -> Vec<String> {
        let mut found = vec![route.to_owned()];
        let mut fill = |place: &str, with: &[String]| {
            if route.contains(place) {
                found = found.iter().flat_map(|it| with.iter().map(move |with| it.replace(place, with))).collect();
            }
        };
        if route.contains("{version}") {
            let at = |(thread, version): &(String, u64)| {
                route.replace("{thread}", thread).replace("{version}", &version.to_string())
            };
            return self.versions.iter().map(at).collect();
        }
        let artefacts: Vec<String> = Artefact::ALL.iter().map(|it| it.file().to_owned()).collect();
        fill("{thread}", &self.threads);
        fill("{artefact}", &artefacts);
        fill("{digest}", &self.digests);
        fill("{interrupt}", &self.interrupts);
        fill("{review}", &self.reviews);
        fill("{event}", &self.events);
        fill("{amendment}", &["none".to_owned()]);
        match route {
            "/v1/threads/{thread}/state" | "/v1/threads/{thread}/envelope" => {
                found.iter().map(|it| format!("{it}?node=planner")).collect()
            }
            "/v1/events" => vec![format!("/v1/events?limit=500&after={}", self.after)],
            "/threads/{thread}/compare" => {
                found.iter().flat_map(|it| ["0&to=1", "0&to=2", "1&to=3"].map(|of| format!("{it}?from={of}"))).collect()
            }
            "/" => vec!["/".to_owned(), "/?show=ended".to_owned(), "/?show=all".to_owned()],
            _ => found,
        }
    }

    /// Fetches all that a token of this role may read.
    pub async fn fetch_as_machine(&mut self, g: &TestGateway, role: MachineRole, token: &str) {
        for rule in TABLE.iter().filter(|it| it.method == "GET" && it.machines.contains(&role)) {
            if LEFT_OUT.contains(&rule.route) {
                continue;
            }
            for address in self.addresses(rule.route) {
                let request = g.http.get(format!("{}{address}", g.url)).bearer_auth(token);
                self.fetch(format!("{} {address}", role.as_str()), request).await;
            }
        }
    }

    /// Fetches all pages that a person may read.
    pub async fn fetch_as_person(&mut self, g: &TestGateway, who: &Account) {
        let (_, cookie) = g.service.identity.sign_in(&who.name, "correct horse battery".to_owned()).await.unwrap();
        for rule in TABLE.iter().filter(|it| it.method == "GET" && it.people.contains(&who.role)) {
            if LEFT_OUT.contains(&rule.route) {
                continue;
            }
            for address in self.addresses(rule.route) {
                let request = g.http.get(format!("{}{address}", g.url));
                self.fetch(address, request.header(COOKIE, format!("countersign={cookie}"))).await;
            }
        }
    }

    async fn fetch(&mut self, place: String, request: reqwest::RequestBuilder) {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        assert!(status < 500, "{place}: {status}");
        self.seen.push((place, format!("{status} {}", answer.text().await.unwrap())));
    }
}
