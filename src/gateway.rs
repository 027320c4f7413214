//! Wiring: from a configuration to a service on its store.

use std::sync::Arc;

use crate::clock::SystemClock;
use crate::config::{Config, Database};
use crate::domain::json::size::StateLimits;
use crate::keyring::{Keyring, KeyringError, KeyringSource};
use crate::service::Service;
use crate::service::error::Error;
use crate::store::Store;
use crate::store::sqlite::{OpenError, SqliteOptions, SqliteStore};

/// Why a gateway does not open.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The data directory cannot be made.
    #[error("the data directory cannot be made")]
    Data(#[source] std::io::Error),
    /// There are no keys.
    #[error("the keyring cannot be used")]
    Keyring(#[from] KeyringError),
    /// The database does not open.
    #[error("the database does not open")]
    Open(#[from] OpenError),
    /// Its identity does not agree.
    #[error("the gateway does not open")]
    Service(#[from] Error),
}

/// Opens the gateway of a configuration, making database and keyring at the very first start.
pub async fn open(config: &Config, public_url: String) -> Result<Arc<Service>, GatewayError> {
    std::fs::create_dir_all(&config.data).map_err(GatewayError::Data)?;
    let keyring = keyring(config)?;
    let store: Arc<dyn Store> = match &config.database {
        Database::Sqlite => Arc::new(SqliteStore::open(config.sqlite_path(), SqliteOptions::default())?),
        Database::Postgres(_) => return Err(GatewayError::Service(Error::WrongState("PostgreSQL is not built yet"))),
    };
    let limits = StateLimits {
        bytes_max: config.limits.state_bytes,
        leaves_max: config.limits.leaves,
        depth_max: config.limits.depth,
    };
    Ok(Arc::new(Service::open(store, keyring, Arc::new(SystemClock), limits, public_url).await?))
}

fn keyring(config: &Config) -> Result<Keyring, KeyringError> {
    match &config.keyring {
        KeyringSource::File(path) => Keyring::open_or_create(path, config.issuer.as_deref(), &SystemClock),
        KeyringSource::Given(text) => Keyring::given(text, config.issuer.as_deref()),
    }
}
