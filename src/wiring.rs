//! Builds the service and its store from the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::SystemClock;
use countersign_adapters::http_client::{HttpClient, HttpClientError, HttpClientSettings};
use countersign_adapters::keyring::{Keyring, KeyringError};
use countersign_adapters::oidc_provider::{Provider, ProviderError};
use countersign_adapters::traces::{TraceSink, TracesError};
use countersign_domain::identity::login_throttle::LoginThrottleLimits;
use countersign_domain::json::size::StateLimits;
use countersign_domain::primitives::secret::Secret;
use countersign_service::error::Error;
use countersign_service::identity::sign_in_config::LocalAccounts;
use countersign_service::identity::sign_in_config::SignInMethods;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::StoreError;
use countersign_store::postgres::{MigrationMode, PostgresOptions, PostgresStore};
use countersign_store::records::GATEWAY_ID;
use countersign_store::row::Table;
use countersign_store::sqlite::{OpenError, SqliteOpenMode, SqliteOptions, SqliteStore};

use crate::config::{Config, DatabaseConfig};

/// The reason that a gateway does not open.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The data directory cannot be created.
    #[error("the data directory cannot be created")]
    Data(#[source] std::io::Error),
    #[error("the keyring cannot be used")]
    Keyring(#[from] KeyringError),
    /// The keyring of an existing database is missing.
    #[error(
        "there is no keyring at {}, and the database was created with one: restore it, or set `keyring` to its path",
        path.display()
    )]
    KeyringGone { path: PathBuf },
    /// The database cannot be opened.
    #[error("the database cannot be opened")]
    Open(#[from] OpenError),
    /// The provider's settings cannot be used.
    #[error("the OpenID provider cannot be used")]
    Provider(#[from] ProviderError),
    /// The client for webhooks and chats cannot be set up.
    #[error("the outgoing HTTP client cannot be set up")]
    Outgoing(#[from] HttpClientError),
    #[error("traces cannot be exported")]
    Traces(#[from] TracesError),
    /// The stored identity does not match the keyring.
    #[error("{}", match .0 {
        Error::Store(StoreError::Unsealed(_)) => {
            "the gateway does not open: the database was created with another keyring, which you have to restore, or the row was changed by hand"
        }
        _ => "the gateway does not open",
    })]
    Service(#[from] Error),
}

/// Opens the gateway of a configuration. The first start creates the database and the keyring.
pub async fn open(config: &Config, public_url: String, purpose: SqliteOpenMode) -> Result<Arc<Service>, GatewayError> {
    private_directory(&config.data).map_err(GatewayError::Data)?;
    let store = store(config, purpose).await?;
    // The database comes first, because its content shows whether a keyring must already exist.
    let keyring = keyring(config, &*store).await?;
    let limits = StateLimits {
        bytes_max: config.limits.state_bytes,
        leaves_max: config.limits.leaves,
        depth_max: config.limits.depth,
    };
    let ways = ways(config, &public_url)?;
    let sign_ins = LoginThrottleLimits { free: config.limits.sign_in_attempts, window: config.limits.sign_in_window };
    let people = PeopleSettings { lift_needs: config.lift_needs, sign_ins };
    let settings = ServiceSettings { limits, public_url, session_lifetime: config.sessions.lifetime, people };
    let outgoing = http_client(config)?;
    let service = Service::open(store, keyring, Arc::new(SystemClock), settings).await?;
    let service =
        service.with_sign_in_methods(ways).with_http_client(outgoing).with_response_ttl(config.limits.idempotency);
    let service = service.rotating_node_secrets(config.node_secrets);
    let service = service.archiving_in(Archives::in_folder(&config.archives));
    let traces = config.traces.as_ref().map(TraceSink::to).transpose()?.unwrap_or_default();
    Ok(Arc::new(service.traced_by(traces)))
}

/// Returns the client for URLs that operators and users configure.
pub fn http_client(config: &Config) -> Result<HttpClient, HttpClientError> {
    HttpClient::new(HttpClientSettings {
        allowed: config.webhooks.allow_networks.clone(),
        plain_http: config.webhooks.plain_http,
        timeout: SENDING_MAX,
    })
}

/// Returns the keyring. It is created at the first start only. A keyring that is missing later is lost or at another
/// path, and a new one would hide that.
async fn keyring(config: &Config, store: &dyn Store) -> Result<Keyring, GatewayError> {
    let issuer = config.issuer.as_deref();
    // The first start writes this row, so a database without it is new.
    if store.get(Table::Gateway, GATEWAY_ID).await.map_err(Error::Store)?.is_none() {
        return Ok(Keyring::start(&config.keyring, issuer, &SystemClock)?);
    }
    Keyring::existing(&config.keyring, issuer).map_err(|error| match error {
        KeyringError::Missing { path } => GatewayError::KeyringGone { path },
        other => other.into(),
    })
}

/// The limit for webhook requests. A slower receiver does its work before it answers, and should answer first.
const SENDING_MAX: Duration = Duration::from_secs(15);

fn ways(config: &Config, public_url: &str) -> Result<SignInMethods, ProviderError> {
    let local = if config.sign_in.local_accounts { LocalAccounts::On } else { LocalAccounts::Off };
    let provider = match &config.sign_in.oidc {
        Some(settings) => Some(Arc::new(Provider::new(settings.clone(), public_url, Arc::new(SystemClock))?)),
        None => None,
    };
    Ok(SignInMethods { local, provider })
}

/// Opens the configured database and migrates its tables.
pub async fn store(config: &Config, purpose: SqliteOpenMode) -> Result<Arc<dyn Store>, GatewayError> {
    Ok(match &config.database {
        DatabaseConfig::Sqlite => {
            private_directory(&config.data).map_err(GatewayError::Data)?;
            let options = SqliteOptions { purpose, ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(config.sqlite_path(), options)?)
        }
        DatabaseConfig::Postgres(url) => Arc::new(postgres(config, url, MigrationMode::Apply).await?),
    })
}

/// Opens the configured database for reading only.
pub async fn store_to_read(config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    Ok(match &config.database {
        DatabaseConfig::Sqlite => Arc::new(SqliteStore::open_to_read(&config.sqlite_path())?),
        DatabaseConfig::Postgres(url) => Arc::new(postgres(config, url, MigrationMode::Check).await?),
    })
}

async fn postgres(
    config: &Config,
    url: &Secret<String>,
    migrations: MigrationMode,
) -> Result<PostgresStore, OpenError> {
    let authority = config.database_authority.clone();
    PostgresStore::open(url.expose(), PostgresOptions { authority, migrations, ..PostgresOptions::default() }).await
}

/// Creates the directory with access for its owner only.
fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
