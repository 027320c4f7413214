//! A real gateway for tests: its own SQLite in a folder of its own, port 0, a clock that tests move,
//! and callers of every role. Workers do not run by themselves; tests drain them by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::identity::login_throttle::LoginThrottleLimits;
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::PolicySource;
use countersign_domain::primitives::id::PrincipalId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, BrowserCheck, CheckboxState, VoteVerdict, VoterProof};

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::{Clock, ClockOffset, SystemClock};
use countersign_adapters::http_client::{HttpClient, HttpClientSettings};
use countersign_adapters::keyring::Keyring;
use countersign_adapters::network::Network;
use countersign_service::error::Error;
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::owner_names::NewOwner;
use countersign_service::identity::sign_in_config::SignInMethods;
use countersign_service::reviews::vote::VoteOutcome;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::sqlite::SqliteStore;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::limits::rate_limit::RateLimiter;
use countersign_web::metrics_access::MetricsAccess;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::passwords::hashed;
use crate::sqlite::unsynced;

pub const POLICY: &str = include_str!("payments/policy.toml");
pub const SCHEMA: &str = include_str!("payments/payments.schema.json");

/// The machine's clock, moved.
#[derive(Clone, Default)]
pub struct MovedClock(pub ClockOffset);

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        self.0.applied_to(SystemClock.now())
    }

    fn instant(&self) -> std::time::Instant {
        SystemClock.instant()
    }
}

pub struct TestGateway {
    pub url: String,
    pub service: Arc<Service>,
    pub clock: ClockOffset,
    pub folder: tempfile::TempDir,
    pub http: reqwest::Client,
    pub host: String,
    pub parser: String,
    pub planner: String,
    /// An instance of the node `database_writer`.
    pub instance: String,
    pub provisioner: String,
    pub writer: String,
    pub admin: String,
    pub auditor: String,
    pub monitor: String,
    pub alice: Account,
    pub bob: Account,
}

pub fn source(policy: &str) -> PolicySource {
    let schemas = BTreeMap::from([("payments.schema.json".to_owned(), SCHEMA.to_owned())]);
    PolicySource { text: policy.to_owned(), schemas }
}

pub fn settings(url: &str) -> ServiceSettings {
    let session_lifetime = Duration::from_secs(3600);
    let people = people();
    ServiceSettings { limits: StateLimits::default(), public_url: url.to_owned(), session_lifetime, people }
}

/// A gateway with the payments flow.
pub async fn spawn_gateway() -> TestGateway {
    spawn_with_policy(POLICY).await
}

pub async fn spawn_with_policy(policy: &str) -> TestGateway {
    let folder = tempfile::tempdir().unwrap();
    let clock = ClockOffset::default();
    let options = unsynced(&clock);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    spawn_on(folder, clock, store, policy).await
}

pub async fn spawn_on(
    folder: tempfile::TempDir,
    clock: ClockOffset,
    store: Arc<dyn Store>,
    policy: &str,
) -> TestGateway {
    let requests = RateLimiter::new(100_000, Duration::from_micros(1));
    spawn_set(folder, clock, store, (policy, requests, people())).await
}

/// A gateway with the payments flow, set otherwise where people themselves are concerned.
pub async fn spawn_for_people(people: PeopleSettings) -> TestGateway {
    let folder = tempfile::tempdir().unwrap();
    let clock = ClockOffset::default();
    let options = unsynced(&clock);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let requests = RateLimiter::new(100_000, Duration::from_micros(1));
    spawn_set(folder, clock, store, (POLICY, requests, people)).await
}

/// The same, where each token asks no faster than that.
pub async fn spawn_bounded(
    folder: tempfile::TempDir,
    clock: ClockOffset,
    store: Arc<dyn Store>,
    (policy, requests): (&str, RateLimiter),
) -> TestGateway {
    spawn_set(folder, clock, store, (policy, requests, people())).await
}

async fn spawn_set(
    folder: tempfile::TempDir,
    clock: ClockOffset,
    store: Arc<dyn Store>,
    (policy, requests, people): (&str, RateLimiter, PeopleSettings),
) -> TestGateway {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    spawn_letting_in(folder, (clock, store), (policy, requests, people), (listener, SignInMethods::default())).await
}

/// The same, on that port, with these ways in.
pub async fn spawn_letting_in(
    folder: tempfile::TempDir,
    (clock, store): (ClockOffset, Arc<dyn Store>),
    (policy, requests, people): (&str, RateLimiter, PeopleSettings),
    (listener, ways): (TcpListener, SignInMethods),
) -> TestGateway {
    countersign_adapters::tls::ready();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let keyring =
        Keyring::open_or_create(&folder.path().join("keyring.json"), Some("urn:test:gateway"), &SystemClock).unwrap();
    let moved = Arc::new(MovedClock(clock.clone()));
    let settings = ServiceSettings { people, ..settings(&url) };
    let service = Service::open(store, keyring, moved, settings).await.unwrap();
    let service = service.archiving_in(archives_in(folder.path()));
    let service = Arc::new(service.with_sign_in_methods(ways).with_http_client(outgoing()));
    let edge = EdgeConfig { requests, ..edge(&url, TrustedProxies::default()) };
    let app = AppState::new(Arc::clone(&service), Arc::new(edge));
    let server = serve(app, listener, 1, Duration::from_secs(1)).unwrap();
    tokio::spawn(server);
    let by = PrincipalId::try_from("tests").unwrap();
    service.policy_changes.activate_policy(&by, None, source(policy), BTreeSet::new()).await.unwrap();
    let alice = person(&service, "alice", &["reviewers"]).await;
    let bob = person(&service, "bob", &["reviewers"]).await;
    TestGateway {
        host: owned_token(&service, "host", MachineRole::Host, &[], "storefront").await,
        parser: token(&service, "parser", MachineRole::Agent, &["input_parser"]).await,
        planner: token(&service, "planner", MachineRole::Agent, &["planner"]).await,
        instance: token(&service, "instance", MachineRole::Instance, &["database_writer"]).await,
        provisioner: token(&service, "provisioner", MachineRole::Provisioner, &["database_writer"]).await,
        writer: token(&service, "writer", MachineRole::Writer, &["database_writer"]).await,
        admin: token(&service, "admin", MachineRole::Admin, &[]).await,
        auditor: token(&service, "auditor", MachineRole::Auditor, &[]).await,
        monitor: token(&service, "monitor", MachineRole::Monitor, &[]).await,
        url,
        service,
        clock,
        folder,
        // The gateway closes connections that are silent for seconds.
        http: reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap(),
        alice,
        bob,
    }
}

/// Returns the archives for states that a policy moves out of the database.
pub fn archives_in(folder: &std::path::Path) -> Archives {
    Archives::in_folder(folder.join("archives"))
}

/// Returns a client for outgoing requests that may also reach localhost, because the receivers run there.
pub fn outgoing() -> HttpClient {
    let allowed = ["127.0.0.0/8", "::1"].iter().map(|it| Network::parse(it).unwrap()).collect();
    HttpClient::new(HttpClientSettings { allowed, plain_http: false, timeout: Duration::from_secs(15) }).unwrap()
}

/// Returns the settings for people's accounts, with the tests' limit of failed sign-ins.
pub fn people() -> PeopleSettings {
    let sign_ins = LoginThrottleLimits { free: SIGN_INS, window: Duration::from_secs(300) };
    PeopleSettings { sign_ins, ..PeopleSettings::default() }
}

/// Number of failed sign-ins that unauthenticated clients have at an account before they must wait.
pub const SIGN_INS: u32 = 5;

pub fn edge(url: &str, peers: TrustedProxies) -> EdgeConfig {
    EdgeConfig {
        body_bytes_max: 1024 * 1024,
        depth_max: 64,
        wait_max: Duration::from_secs(30),
        secure: false,
        cookie_suffix: String::new(),
        origin: url.to_owned(),
        peers,
        requests: RateLimiter::new(100_000, Duration::from_micros(1)),
        elsewhere: countersign_web::pages::identity::oidc::throttle(),
        reveals: countersign_web::pages::reviews::reveal::throttle(),
        posts: countersign_web::api::interrupts::throttle(),
        metrics: MetricsAccess::Token,
        docs: true,
        hearing: Default::default(),
        unread: countersign_web::limits::quota::CallerQuota::new(1 << 26, 1 << 29),
        waits: countersign_web::limits::quota::CallerQuota::new(1_000, 1_000),
        streams: Default::default(),
        upstreams: Default::default(),
    }
}

pub async fn person(service: &Service, name: &str, groups: &[&str]) -> Account {
    let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Reviewer, groups };
    service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap()
}

pub async fn token(service: &Service, name: &str, role: MachineRole, nodes: &[&str]) -> String {
    owned_token(service, name, role, nodes, "platform").await
}

pub async fn owned_token(service: &Service, name: &str, role: MachineRole, nodes: &[&str], owner: &str) -> String {
    let bound = !matches!(role, MachineRole::Admin | MachineRole::Auditor | MachineRole::Monitor);
    let exists = service.identity.people().await.unwrap().iter().any(|it| it.answers_for(owner));
    let owner = if exists { NewOwner::Existing(owner.to_owned()) } else { NewOwner::Group(owner.to_owned()) };
    let new = NewToken {
        name: name.to_owned(),
        role,
        owner,
        flow: bound.then(|| "payments".try_into().unwrap()),
        nodes: nodes.iter().map(|it| (*it).try_into().unwrap()).collect(),
    };
    service.identity.add_token(&new).await.unwrap().1
}

pub struct ApiResponse {
    pub status: u16,
    pub body: Value,
}

impl ApiResponse {
    pub async fn of(response: Response) -> Self {
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        Self { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// An answer that has nothing in it.
    pub fn expect_status(self, status: u16) {
        self.expect(status);
    }

    pub fn code(&self) -> &str {
        code_of(&self.body)
    }
}

/// The code of an error, in a problem or in an error of the Agent Approval Protocol.
pub fn code_of(body: &Value) -> &str {
    body["code"].as_str().or(body["error"]["code"].as_str()).unwrap_or_default()
}

/// Number of attempts while the gateway is busy: every client tries again then. A slow machine is busy sooner.
const BUSY_MAX: usize = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

impl TestGateway {
    pub async fn send(&self, method: Method, path: &str, token: &str, body: Option<Value>) -> ApiResponse {
        let mut patience = BUSY_MAX;
        loop {
            let answer = self.sent(&method, path, token, body.as_ref()).await;
            if answer.status != 503 || answer.code() != "busy" || patience == 0 {
                return answer;
            }
            patience -= 1;
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    async fn sent(&self, method: &Method, path: &str, token: &str, body: Option<&Value>) -> ApiResponse {
        let request = self.http.request(method.clone(), format!("{}{path}", self.url)).bearer_auth(token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let kind = response.headers().get("content-type").map(|it| it.to_str().unwrap().to_owned());
        let answer = ApiResponse::of(response).await;
        crate::description::check(method.as_str(), path, (answer.status, &kind.unwrap_or_default(), &answer.body));
        answer
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> ApiResponse {
        self.send(Method::POST, path, token, Some(body)).await
    }

    pub async fn get(&self, path: &str, token: &str) -> ApiResponse {
        self.send(Method::GET, path, token, None).await
    }

    /// A thread with user 17's harmless state; the answer of its creation.
    pub async fn thread(&self) -> Value {
        let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": "4111111111111111"}});
        self.post("/v1/threads", &self.host, json!({"flow": "payments", "state": state})).await.expect(201)
    }

    pub async fn propose(&self, thread: &Value, parent: &Value, node: (&str, &str), patch: Value) -> ApiResponse {
        let path = format!("/v1/threads/{}/transitions", thread.as_str().unwrap());
        self.post(&path, node.0, json!({"node": node.1, "parent": parent, "patch": patch})).await
    }

    /// A held change of the target user; its 202 answer.
    pub async fn held(&self, thread: &Value) -> Value {
        let patch = json!({"target_user_id": 42, "requested_action": "update_email"});
        self.propose(&thread["thread"], &thread["transition"], (&self.planner, "planner"), patch).await.expect(202)
    }

    pub async fn vote(&self, who: &Account, held: &Value, verdict: VoteVerdict) -> Result<VoteOutcome, Error> {
        self.service
            .reviews
            .vote(&who.id, &held["review"]["id"].as_str().unwrap().try_into().unwrap(), &ballot(held, verdict), None)
            .await
    }

    /// Approves and gives the resume body.
    pub async fn approved(&self, held: &Value) -> Value {
        assert_eq!(self.vote(&self.alice, held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
        self.decision(held).await.expect(200)
    }

    pub async fn decision(&self, held: &Value) -> ApiResponse {
        self.get(&format!("/v1/transitions/{}/decision", held["transition"].as_str().unwrap()), &self.planner).await
    }

    pub async fn verify(&self, thread: &Value, transition: &Value, receipt: &Value, write_id: &str) -> ApiResponse {
        let mut ask = json!({"thread": thread, "transition": transition, "write_id": write_id});
        if !receipt.is_null() {
            ask["receipt"] = receipt.clone();
        }
        self.post("/v1/verify", &self.writer, ask).await
    }

    pub async fn confirm(&self, write_id: &str) -> ApiResponse {
        self.post(&format!("/v1/writes/{write_id}/confirm"), &self.writer, json!({"result": {"result_ref": "row 1"}}))
            .await
    }

    /// Moves gateway and database forward.
    pub fn pass(&self, time: Duration) {
        let so_far = self.clock.applied_to(Timestamp::from_millis(0)).millis();
        self.clock.set_millis(so_far + i64::try_from(time.as_millis()).unwrap());
    }
}

pub fn ballot(held: &Value, verdict: VoteVerdict) -> Ballot {
    Ballot {
        transition: Digest::try_from(held["transition"].as_str().unwrap()).unwrap(),
        delegation: None,
        stage: 0,
        verdict,
        nonce: countersign_adapters::random::uuid_v4().to_string(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::default(),
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}
