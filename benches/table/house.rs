//! A gateway to be measured: its real HTTP server on a store of the kind asked for.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, MachineRole, Token};
use countersign_domain::identity::party::Party;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::size::StateLimits;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::reviews::VoteVerdict;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::threads::create::NewThread;
use countersign_service::{PeopleSettings, Service, ServiceSettings, Stored};
use countersign_store::Store;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use countersign_web::limits::rate_limit::RateLimiter;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use serde_json::{Value, json};

use super::{bare, gateway, memory, postgres};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BenchStoreKind {
    Sqlite,
    /// Only to build a long chain soon; nothing is measured on it but reading.
    SqliteUnsynced,
    Postgres,
    Memory,
}

pub struct BenchGateway {
    pub service: Arc<Service>,
    pub store: Arc<dyn Store>,
    pub port: u16,
    pub planner: String,
    pub writer: String,
    folder: Option<tempfile::TempDir>,
    host: Stored<Token>,
    agent: Stored<Token>,
    alice: Account,
}

pub fn settings() -> ServiceSettings {
    ServiceSettings {
        limits: StateLimits::default(),
        public_url: "http://localhost:1".to_owned(),
        session_lifetime: Duration::from_secs(3600),
        people: PeopleSettings::default(),
    }
}

async fn open(kind: BenchStoreKind, folder: &std::path::Path) -> Arc<dyn Store> {
    let sqlite = |synchronous| {
        let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
        Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap())
    };
    match kind {
        BenchStoreKind::Sqlite => sqlite(Synchronous::Full),
        BenchStoreKind::SqliteUnsynced => sqlite(Synchronous::Off),
        BenchStoreKind::Postgres => {
            let url = postgres::new_database().await;
            Arc::new(PostgresStore::open(&url, PostgresOptions::default()).await.unwrap())
        }
        BenchStoreKind::Memory => Arc::new(memory::MemoryStore::default()),
    }
}

impl BenchGateway {
    pub async fn build(kind: BenchStoreKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(kind, folder.path()).await;
        let keyring =
            Keyring::open_or_create(&folder.path().join("keyring.json"), Some("urn:bench"), &SystemClock).unwrap();
        let service = Service::open(Arc::clone(&store), keyring, Arc::new(SystemClock), settings()).await.unwrap();
        let service = service.with_http_client(gateway::outgoing());
        let by = PrincipalId::try_from("bench").unwrap();
        service
            .policy_changes
            .activate_policy(&by, None, gateway::source(gateway::POLICY), BTreeSet::new())
            .await
            .unwrap();
        Self { folder: Some(folder), ..Self::on(Arc::new(service), store).await }
    }

    /// The people and tokens of the flow, on a gateway that has its policy.
    pub async fn on(service: Arc<Service>, store: Arc<dyn Store>) -> Self {
        let host = gateway::token(&service, "host", MachineRole::Host, &[]).await;
        let planner = gateway::token(&service, "planner", MachineRole::Agent, &["planner", "input_parser"]).await;
        let writer = gateway::token(&service, "writer", MachineRole::Writer, &["database_writer"]).await;
        let alice = gateway::person(&service, "alice", &["reviewers"]).await;
        let (host, agent) =
            (service.identity.token_of(&host).await.unwrap(), service.identity.token_of(&planner).await.unwrap());
        let port = listen(&service);
        Self { service, store, port, planner, writer, folder: None, host, agent, alice }
    }

    /// The same gateway just started, with nothing in its memory.
    pub async fn restarted(&self) -> Service {
        let keyring = Keyring::open(&self.folder.as_ref().unwrap().path().join("keyring.json"), None).unwrap();
        Service::open(Arc::clone(&self.store), keyring, Arc::new(SystemClock), settings()).await.unwrap()
    }

    pub async fn thread(&self) -> (ThreadId, Digest) {
        let flow = self.host.record.flow.clone().unwrap();
        let new = NewThread { flow, thread: None, state: state(), context: Default::default(), episode: None };
        let made = self.service.threads.create_thread(&self.host, &new).await.unwrap();
        (made.thread, made.transition)
    }

    pub async fn propose(&self, thread: &ThreadId, parent: Digest, node: &str, patch: Value) -> ProposalOutcome {
        let proposal = Proposal {
            thread: thread.clone(),
            node: node.try_into().unwrap(),
            parent,
            ask: ProposalKind::Patch { format: PatchFormat::Merge, patch },
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Default::default(),
            step: None,
        };
        self.service.proposals.propose(&self.agent, &proposal).await.unwrap()
    }

    /// A thread in which a change waits for people.
    pub async fn held(&self) {
        let (thread, head) = self.thread().await;
        let answer = self.propose(&thread, head, "planner", json!({"target_user_id": 42})).await;
        assert!(matches!(answer, ProposalOutcome::Held { .. }), "{answer:?}");
    }

    /// A thread whose head people approved: its transition and receipt.
    pub async fn approved(&self) -> (ThreadId, Digest, String) {
        let (thread, head) = self.thread().await;
        let answer = self.propose(&thread, head, "planner", json!({"target_user_id": 42})).await;
        let ProposalOutcome::Held { transition, hold, .. } = answer else { panic!("it was to be held") };
        let held = json!({"transition": transition});
        self.service
            .reviews
            .vote(&self.alice.id, &hold.id, &gateway::ballot(&held, VoteVerdict::Approve), None)
            .await
            .unwrap();
        let decision = self.service.reviews.decision(transition, &Party::Receiver).await.unwrap().1.unwrap();
        (thread, transition, decision.receipt.unwrap())
    }
}

/// Some 2 KB, as an agent's state is.
pub fn state() -> Value {
    let text = "Please change the address of customer seventeen to the one in the letter. ".repeat(24);
    json!({
        "raw_text": text, "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10, "card": "4111111111111111"},
        "execution_permissions": {"write_scope": "self"},
    })
}

pub fn listen(service: &Arc<Service>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let edge = EdgeConfig {
        body_bytes_max: 1024 * 1024,
        depth_max: 64,
        wait_max: Duration::from_secs(30),
        secure: false,
        origin: "http://localhost:1".to_owned(),
        peers: Default::default(),
        requests: RateLimiter::new(u32::MAX, Duration::from_nanos(1)),
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
        cookie_suffix: String::new(),
    };
    let app = AppState::new(Arc::clone(service), Arc::new(edge));
    tokio::spawn(serve(app, listener, bare::WORKERS, Duration::from_secs(1)).unwrap());
    port
}
