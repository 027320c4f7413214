//! `migrate`: brings the database's tables up to date, as every start does.

use serde_json::json;

use super::output::Output;
use super::{CliError, Exit};
use crate::config::{Config, Database};
use crate::gateway::GatewayError;
use crate::store::sqlite::{SqliteOptions, SqliteStore};

/// Opening a database migrates it; one that is not there is made.
pub fn run(config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    match &config.database {
        Database::Sqlite => {
            std::fs::create_dir_all(&config.data).map_err(GatewayError::Data)?;
            drop(SqliteStore::open(config.sqlite_path(), SqliteOptions::default())?);
        }
        Database::Postgres(_) => return Err(CliError::NotBuilt("PostgreSQL")),
    }
    out.answer("the database is up to date", || json!({"migrated": true}))?;
    Ok(Exit::Yes)
}
