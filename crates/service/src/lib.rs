//! The use cases of the gateway.
//!
//! A use case loads the rows that it needs, decides with the pure domain, and commits one change. The change
//! lists every row that the decision relied on. On a conflict, the use case loads and decides again.

pub mod approval_requests;
pub mod archive;
pub mod audit;
pub mod branches;
pub mod delivery;
pub mod episodes;
pub mod error;
pub mod identity;
pub mod inbox;
pub mod interrupts;
pub mod log;
pub mod operations;
pub mod platform;
pub mod policies;
pub mod policy_changes;
pub mod proposals;
pub mod reviews;
pub mod threads;
pub mod writes;

use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::Clock;
use countersign_adapters::http_client::HttpClient;
use countersign_adapters::keyring::Keyring;
use countersign_adapters::traces::TraceSink;
use countersign_domain::context::Rotation;

use countersign_store::Store;
use countersign_store::watched::WatchedStore;

use approval_requests::ApprovalRequests;
use archive::VersionArchive;
use branches::Branches;
pub use countersign_store::record::Stored;
use delivery::Deliveries;
use episodes::Episodes;
use error::Result;
use identity::Identity;
use identity::sign_in_config::SignInMethods;
use inbox::Inbox;
use interrupts::Interrupts;
use log::Log;
use operations::Operations;
use platform::core::Core;
use platform::settings::CoreParts;
pub use platform::settings::{PeopleSettings, ServiceSettings};
use policies::Policies;
use policy_changes::PolicyChanges;
use proposals::Proposals;
use reviews::Reviews;
use threads::Threads;
use writes::Writes;

/// The use cases of one gateway, by capability. Each capability holds those below it.
pub struct Service {
    parts: ServiceParts,
    pub core: Arc<Core>,
    pub policies: Arc<Policies>,
    pub identity: Arc<Identity>,
    pub threads: Arc<Threads>,
    pub archive: Arc<VersionArchive>,
    pub proposals: Arc<Proposals>,
    pub branches: Arc<Branches>,
    pub writes: Arc<Writes>,
    pub log: Arc<Log>,
    pub reviews: Arc<Reviews>,
    pub approval_requests: Arc<ApprovalRequests>,
    pub interrupts: Arc<Interrupts>,
    pub policy_changes: Arc<PolicyChanges>,
    pub inbox: Arc<Inbox>,
    pub episodes: Arc<Episodes>,
    pub delivery: Arc<Deliveries>,
    pub operations: Arc<Operations>,
}

/// The parts that the capabilities are wired from.
struct ServiceParts {
    core: CoreParts,
    sign_in_methods: SignInMethods,
    /// Without a client, the gateway sends nothing.
    http_client: Option<HttpClient>,
    node_secret_rotation: Rotation,
}

impl Service {
    /// Opens the gateway on a store. The first start stores the gateway's identity, and every later start
    /// must have the same one.
    pub async fn open(
        store: Arc<dyn Store>,
        keyring: Keyring,
        clock: Arc<dyn Clock>,
        settings: ServiceSettings,
    ) -> Result<Self> {
        let store = Arc::new(WatchedStore::new(store));
        let core = CoreParts::new(store, keyring, clock, settings);
        let (sign_in_methods, http_client) = (SignInMethods::default(), None);
        let node_secret_rotation = Rotation::default();
        let service = Self::wired(ServiceParts { core, sign_in_methods, http_client, node_secret_rotation });
        // Before anything else, so that a wrong keyring changes nothing in the database.
        service.core.settle_identity().await?;
        service.core.settle_labels().await?;
        Ok(service)
    }

    /// Creates the capabilities from the lowest to the highest.
    fn wired(parts: ServiceParts) -> Self {
        let core = Arc::new(Core::new(&parts.core));
        let policies = Arc::new(Policies::new(&core));
        let identity = Arc::new(Identity::new(&core, parts.sign_in_methods.clone()));
        let threads = Arc::new(Threads::new(&core, &policies, &identity));
        let archive = Arc::new(VersionArchive::new(&core, &policies, &threads));
        let proposals = Arc::new(Proposals::new(&core, &policies, &identity, &threads));
        let branches = Arc::new(Branches::new(&core, &policies, &threads, &proposals));
        let writes = Arc::new(Writes::new(&core, &policies, &identity, &threads, &proposals));
        let log = Arc::new(Log::new(&core, &policies, &identity, &threads));
        let reviews = Arc::new(Reviews::new(&core, &policies, &identity, &threads, &proposals, &writes));
        let approval_requests = Arc::new(ApprovalRequests {
            core: Arc::clone(&core),
            policies: Arc::clone(&policies),
            identity: Arc::clone(&identity),
            threads: Arc::clone(&threads),
            proposals: Arc::clone(&proposals),
            writes: Arc::clone(&writes),
            reviews: Arc::clone(&reviews),
        });
        let interrupts = Arc::new(Interrupts::new(&core, &policies, &identity, &threads, &reviews));
        let policy_changes = Arc::new(PolicyChanges::new(&core, &policies, &identity, &threads, &proposals, &reviews));
        let inbox = Arc::new(Inbox::new(&core, &threads, &reviews, &policy_changes));
        let episodes = Arc::new(Episodes::new(&core, &policies, &threads, &log, parts.node_secret_rotation));
        let delivery =
            Arc::new(Deliveries::new(&core, &identity, &log, &reviews, &interrupts, parts.http_client.clone()));
        let operations = Arc::new(Operations::new(&core, &policies, &identity, &log, &delivery));
        Self {
            parts,
            core,
            policies,
            identity,
            threads,
            archive,
            proposals,
            branches,
            writes,
            log,
            reviews,
            approval_requests,
            interrupts,
            policy_changes,
            inbox,
            episodes,
            delivery,
            operations,
        }
    }

    /// Changes the parts of a gateway that has served nothing yet.
    #[must_use]
    fn with(mut self, change: impl FnOnce(&mut ServiceParts)) -> Self {
        change(&mut self.parts);
        Self::wired(self.parts)
    }

    /// Sets the archive directory. Without it, state stays in the database.
    #[must_use]
    pub fn archiving_in(self, archives: Archives) -> Self {
        self.with(|it| it.core.archives = Some(archives))
    }

    /// Sets the destination of traces.
    #[must_use]
    pub fn traced_by(self, traces: TraceSink) -> Self {
        self.with(|it| it.core.traces = Arc::new(traces))
    }

    /// Sets the enabled sign-in methods.
    #[must_use]
    pub fn with_sign_in_methods(self, methods: SignInMethods) -> Self {
        self.with(|it| it.sign_in_methods = methods)
    }

    /// Sets the HTTP client. Without it, the gateway sends nothing and rejects new endpoints.
    #[must_use]
    pub fn with_http_client(self, client: HttpClient) -> Self {
        self.with(|it| it.http_client = Some(client))
    }

    /// Sets how long responses are stored.
    #[must_use]
    pub fn with_response_ttl(self, time: Duration) -> Self {
        self.with(|it| it.core.response_ttl = time)
    }

    /// Sets the rotation of node secrets.
    #[must_use]
    pub fn rotating_node_secrets(self, rotation: Rotation) -> Self {
        self.with(|it| it.node_secret_rotation = rotation)
    }
}
