//! Opens the service for a command beside a running gateway. The command uses the same database and keyring. Its
//! changes take effect at once, because every write checks its decision again.

use std::future::Future;
use std::sync::Arc;

use countersign_domain::primitives::id::PrincipalId;
use countersign_service::Service;
use countersign_service::error::Result;
use countersign_service::identity::actor::OPERATOR;
use countersign_store::sqlite::SqliteOpenMode;

use super::CliError;
use crate::config::{Config, DatabaseConfig};
use crate::wiring;

/// Returns the principal of commands: the operator of the host, who has access to the keyring.
pub(super) fn principal() -> PrincipalId {
    PrincipalId::try_from(OPERATOR).expect("a literal name is a name")
}

/// Runs one use case on the configured gateway.
pub(super) fn with_service<T, F: Future<Output = Result<T>>>(
    config: &Config,
    run: impl FnOnce(Arc<Service>) -> F,
) -> std::result::Result<T, CliError> {
    need_database(config)?;
    run_on(config, SqliteOpenMode::Beside, run)
}

/// Runs one use case on the configured gateway. Creates its database if there is none.
pub(super) fn with_new_service<T, F: Future<Output = Result<T>>>(
    config: &Config,
    run: impl FnOnce(Arc<Service>) -> F,
) -> std::result::Result<T, CliError> {
    let mode = if has_database(config) { SqliteOpenMode::Beside } else { SqliteOpenMode::Serving };
    run_on(config, mode, run)
}

fn run_on<T, F: Future<Output = Result<T>>>(
    config: &Config,
    mode: SqliteOpenMode,
    run: impl FnOnce(Arc<Service>) -> F,
) -> std::result::Result<T, CliError> {
    block_on(async {
        // A command has no listener of its own, so the configured address is used for links.
        let url = config.public_url(config.listen).as_str().to_owned();
        let service = wiring::open(config, url, mode).await?;
        Ok(run(service).await?)
    })
}

/// Runs a future to completion on its own runtime.
pub(super) fn block_on<T>(
    run: impl Future<Output = std::result::Result<T, CliError>>,
) -> std::result::Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(CliError::Runtime)?.block_on(run)
}

/// Returns true if the database exists. Read commands must not create one.
pub(super) fn has_database(config: &Config) -> bool {
    match &config.database {
        DatabaseConfig::Sqlite => config.sqlite_path().exists(),
        DatabaseConfig::Postgres(_) => true,
    }
}

/// Returns an error if the database does not exist.
pub(super) fn need_database(config: &Config) -> std::result::Result<(), CliError> {
    if has_database(config) { Ok(()) } else { Err(CliError::NoDatabase { path: config.sqlite_path() }) }
}
