//! A real gateway inside the test, with its own port, its own SQLite file and a clock that the test moves.
//!
//! `spawn_gateway()` gives an empty one; [`BrowserGateway::payments`] activates the payments flow and hands out a token for
//! each role of it. A suite includes this file by `#[path = "../support/gateway.rs"] mod gateway;`, and expects
//! `dead_code` there for what it leaves unused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::identity::login_throttle::LoginThrottleLimits;
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::PolicySource;
use countersign_domain::primitives::id::{FlowId, GroupName, NodeId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;

use actix_web::dev::ServerHandle;
use countersign_adapters::clock::{Clock, ClockOffset, SystemClock};
use countersign_adapters::http_client::{HttpClient, HttpClientSettings};
use countersign_adapters::keyring::Keyring;
use countersign_adapters::network::Network;
use countersign_adapters::oidc_provider::Provider;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::owner_names::NewOwner;
use countersign_service::identity::sign_in_config::LocalAccounts;
use countersign_service::identity::sign_in_config::SignInMethods;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::sqlite::SqliteStore;
use countersign_web::limits::rate_limit::RateLimiter;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::passwords::hashed;
use crate::sqlite::unsynced;

/// Password of every person in the tests.
pub const PASSWORD: &str = "correct horse battery staple";

/// The gateway's and the database's clock, which the test moves together.
#[derive(Clone, Debug, Default)]
pub struct MovableClock {
    ahead_millis: Arc<AtomicI64>,
    offset: ClockOffset,
}

impl MovableClock {
    /// From now on it is that much later.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        let ahead = self.ahead_millis.fetch_add(by, Ordering::SeqCst) + by;
        self.offset.set_millis(ahead);
    }

    /// Returns the offset that a store needs to share this clock.
    pub fn offset(&self) -> ClockOffset {
        self.offset.clone()
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        self.offset.applied_to(SystemClock.now())
    }

    fn instant(&self) -> Instant {
        SystemClock.instant()
    }
}

/// A gateway that runs until it is dropped.
pub struct BrowserGateway {
    /// Base URL of the gateway, without a slash at the end.
    pub url: String,
    /// Its use cases, without HTTP between.
    pub service: Arc<Service>,
    pub clock: MovableClock,
    /// Client for API calls and forms. It stores no cookies and follows no redirects.
    pub http: reqwest::Client,
    server: ServerHandle,
    folder: TempDir,
}

/// Starts an empty gateway on a port of its own.
pub async fn spawn_gateway() -> BrowserGateway {
    spawn_behind(edge, people(), |_, _| SignInMethods::default()).await
}

/// The same, set otherwise where people themselves are concerned.
pub async fn spawn_for_people(people: PeopleSettings) -> BrowserGateway {
    spawn_behind(edge, people, |_, _| SignInMethods::default()).await
}

/// Starts a gateway with sign-in by an OpenID provider. The provider gets the gateway's URL.
pub async fn spawn_gateway_with(provider: impl FnOnce(&str, Arc<dyn Clock>) -> Provider) -> BrowserGateway {
    let ways =
        |url: &str, clock| SignInMethods { local: LocalAccounts::On, provider: Some(Arc::new(provider(url, clock))) };
    spawn_behind(edge, PeopleSettings::default(), ways).await
}

/// The same, as it is behind a proxy that people reach over https.
pub async fn spawn_secure_gateway() -> BrowserGateway {
    spawn_behind(|url| EdgeConfig { secure: true, ..edge(url) }, people(), |_, _| SignInMethods::default()).await
}

async fn spawn_behind(
    edge: fn(&str) -> EdgeConfig,
    people: PeopleSettings,
    ways: impl FnOnce(&str, Arc<dyn Clock>) -> SignInMethods,
) -> BrowserGateway {
    countersign_adapters::tls::ready();
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let clock = MovableClock::default();
    let options = unsynced(&clock.offset());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.path().join("keyring.json"), None, &clock).unwrap();
    let settings = ServiceSettings {
        limits: StateLimits::default(),
        public_url: url.clone(),
        session_lifetime: Duration::from_secs(3600),
        people,
    };
    let opened = Service::open(store, keyring, Arc::new(clock.clone()), settings);
    let service = opened.await.unwrap().with_sign_in_methods(ways(&url, Arc::new(clock.clone())));
    let service = Arc::new(service.with_http_client(outgoing()));
    let app = AppState::new(service.clone(), Arc::new(edge(&url)));
    let server = serve(app, listener, 1, Duration::from_secs(1)).unwrap();
    let handle = server.handle();
    tokio::spawn(server);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    // The gateway closes connections that are silent for seconds, which a page may take.
    let http = http.pool_max_idle_per_host(0).build().unwrap();
    BrowserGateway { url, service, clock, http, server: handle, folder }
}

/// Returns a client for outgoing requests that may also reach localhost, because the receivers run there.
fn outgoing() -> HttpClient {
    let allowed = vec![Network::parse("127.0.0.1").unwrap()];
    HttpClient::new(HttpClientSettings { allowed, plain_http: false, timeout: Duration::from_secs(15) }).unwrap()
}

/// Returns the settings for people's accounts, with the tests' limit of failed sign-ins.
pub fn people() -> PeopleSettings {
    let sign_ins = LoginThrottleLimits { free: SIGN_INS, window: Duration::from_secs(300) };
    PeopleSettings { sign_ins, ..PeopleSettings::default() }
}

/// Number of failed sign-ins that unauthenticated clients have at an account before they must wait.
pub const SIGN_INS: u32 = 5;

fn edge(url: &str) -> EdgeConfig {
    EdgeConfig {
        body_bytes_max: 2 * 1024 * 1024,
        depth_max: 64,
        wait_max: Duration::from_secs(30),
        secure: false,
        cookie_suffix: String::new(),
        origin: url.to_owned(),
        peers: Default::default(),
        requests: RateLimiter::new(100_000, Duration::from_millis(1)),
        elsewhere: countersign_web::pages::identity::oidc::throttle(),
        reveals: countersign_web::pages::reviews::reveal::throttle(),
        posts: countersign_web::api::interrupts::throttle(),
        metrics: countersign_web::metrics_access::MetricsAccess::Token,
        docs: true,
        hearing: Default::default(),
        unread: countersign_web::limits::quota::CallerQuota::new(1 << 26, 1 << 29),
        waits: countersign_web::limits::quota::CallerQuota::new(1_000, 1_000),
        streams: Default::default(),
        upstreams: Default::default(),
    }
}

impl Drop for BrowserGateway {
    fn drop(&mut self) {
        // The call itself sends the order to stop. The answer is not awaited.
        drop(self.server.stop(false));
    }
}

/// HTTP response with its JSON body.
#[derive(Debug)]
pub struct JsonResponse {
    pub status: u16,
    /// The JSON body; null where there is none.
    pub body: Value,
}

impl BrowserGateway {
    /// The folder with database and keyring.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Adds a reviewer of those groups, with [`PASSWORD`].
    pub async fn reviewer(&self, name: &str, groups: &[&str]) -> Account {
        self.person(name, PersonRole::Reviewer, groups).await
    }

    /// Adds a person, with [`PASSWORD`].
    pub async fn person(&self, name: &str, role: PersonRole, groups: &[&str]) -> Account {
        let groups = groups.iter().map(|it| GroupName::try_from(*it).unwrap()).collect();
        let new = NewAccount { name: name.to_owned(), role, groups };
        self.service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap()
    }

    /// Adds a token and gives its text. `flow` is empty for auditors and admins.
    pub async fn token(&self, role: MachineRole, owner: &str, flow: &str, nodes: &[&str]) -> String {
        let name = format!("{}-of-{owner}", role.as_str());
        let exists = self.service.identity.people().await.unwrap().iter().any(|it| it.answers_for(owner));
        let owner = if exists { NewOwner::Existing(owner.to_owned()) } else { NewOwner::Group(owner.to_owned()) };
        let new = NewToken {
            name,
            role,
            owner,
            flow: (!flow.is_empty()).then(|| FlowId::try_from(flow).unwrap()),
            nodes: nodes.iter().map(|it| NodeId::try_from(*it).unwrap()).collect(),
        };
        self.service.identity.add_token(&new).await.unwrap().1
    }

    /// Activates a policy, without schemas.
    pub async fn activate(&self, text: &str) {
        self.activate_with(text, BTreeMap::new()).await;
    }

    /// Activates a policy with the schemas it names.
    pub async fn activate_with(&self, text: &str, schemas: BTreeMap<String, String>) {
        let source = PolicySource { text: text.to_owned(), schemas };
        let by = PrincipalId::try_from("test").unwrap();
        self.service.policy_changes.activate_policy(&by, None, source, BTreeSet::new()).await.unwrap();
    }

    /// A page's or endpoint's whole address.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// `POST` of JSON by a machine.
    pub async fn post(&self, token: &str, path: &str, body: &Value) -> JsonResponse {
        answered(self.http.post(self.at(path)).bearer_auth(token).json(body)).await
    }

    /// `GET` by a machine.
    pub async fn get(&self, token: &str, path: &str) -> JsonResponse {
        answered(self.http.get(self.at(path)).bearer_auth(token)).await
    }
}

async fn answered(request: reqwest::RequestBuilder) -> JsonResponse {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    JsonResponse { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) }
}

/// Policy of the payments flow. The target user and the amount require approval, and cards are redacted.
pub const PAYMENTS: &str = r#"
flow = "payments"
protected = ["target_user_id", "payment.amount", "payment.card"]

[nodes.planner]
reads = ["raw_text", "requested_action", "target_user_id", "payment.amount", "items"]
writes = ["requested_action", "target_user_id", "payment", "items", "note", "memo"]

[nodes.database_writer]
reads = ["requested_action", "target_user_id", "payment"]
writes = ["result_ref"]
writer = true

[approval]
ttl = "15m"
receipt_ttl = "10m"
write_lease = "30s"

[[approval.stages]]
groups = ["reviewers"]
need = 1

[redaction]
hide = ["payment.card"]
"#;

/// Returns the first state of a thread in the payments flow.
pub fn order() -> Value {
    json!({
        "raw_text": "Please refund order 8812", "requested_action": "refund", "target_user_id": 17,
        "payment": {"amount": 120, "currency": "EUR", "card": {"number": "4111 1111 1111 1111"}},
        "items": ["A-1"], "note": "from the shop",
    })
}

/// The payments flow on a gateway, with a token for each role.
pub struct Payments {
    pub host: String,
    /// Acts as `planner`.
    pub agent: String,
    /// Acts as `database_writer`.
    pub writer: String,
}

/// A review that was opened.
#[derive(Clone, Debug)]
pub struct HeldReview {
    pub thread: String,
    pub review: String,
    pub digest: String,
}

impl BrowserGateway {
    /// Activates the payments flow; its agents belong to the group `machines`.
    pub async fn payments(&self) -> Payments {
        self.payments_under(PAYMENTS).await
    }

    /// The same under another policy of that flow.
    pub async fn payments_under(&self, policy: &str) -> Payments {
        self.activate(policy).await;
        Payments {
            host: self.token(MachineRole::Host, "storefront", "payments", &[]).await,
            agent: self.token(MachineRole::Agent, "machines", "payments", &["planner"]).await,
            writer: self.token(MachineRole::Writer, "machines", "payments", &["database_writer"]).await,
        }
    }

    /// Makes a thread and gives version 0's digest.
    pub async fn thread(&self, payments: &Payments, name: &str, state: &Value) -> String {
        let context = json!({"title": format!("Refund for {name}"), "on_behalf_of": "Mira Novak, customer care"});
        let body = json!({"flow": "payments", "thread": name, "state": state, "context": context});
        let made = self.post(&payments.host, "/v1/threads", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["transition"].as_str().unwrap().to_owned()
    }

    /// A new thread in which `patch` waits for people.
    pub async fn held(&self, payments: &Payments, name: &str, patch: &Value) -> HeldReview {
        self.held_saying(payments, name, patch, None).await
    }

    /// The same, with the agent's rationale.
    pub async fn held_saying(
        &self,
        payments: &Payments,
        name: &str,
        patch: &Value,
        rationale: Option<&str>,
    ) -> HeldReview {
        let parent = self.thread(payments, name, &order()).await;
        self.propose_held(payments, name, &parent, patch, rationale).await
    }

    /// A proposal that must be held.
    pub async fn propose_held(
        &self,
        payments: &Payments,
        thread: &str,
        parent: &str,
        patch: &Value,
        rationale: Option<&str>,
    ) -> HeldReview {
        let mut body = json!({"node": "planner", "parent": parent, "patch": patch, "format": "merge-patch"});
        if let Some(text) = rationale {
            body["rationale"] = json!(text);
        }
        let held = self.post(&payments.agent, &format!("/v1/threads/{thread}/transitions"), &body).await;
        assert_eq!(held.status, 202, "{held:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        HeldReview {
            thread: thread.to_owned(),
            review: text(&held.body["review"]["id"]),
            digest: text(&held.body["transition"]),
        }
    }

    pub async fn decision(&self, payments: &Payments, held: &HeldReview) -> Value {
        let path = format!("/v1/transitions/{}/decision", held.digest);
        self.get(&payments.agent, &path).await.body
    }
}
