//! `migrate`: migrates the database schema, as every start does.

use countersign_store::sqlite::SqliteOpenMode;
use serde_json::json;

use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;
use crate::wiring;

/// Opens the database, which migrates it or creates it.
pub fn run(config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::block_on(async {
        wiring::store(config, SqliteOpenMode::Beside).await?;
        Ok(())
    })?;
    out.answer("the database is up to date", || json!({"migrated": true}))?;
    Ok(CommandExit::Yes)
}
