//! `migrate`: brings the database's tables up to date, as every start does.

use serde_json::json;

use super::output::Output;
use super::{CliError, Exit, beside};
use crate::config::Config;
use crate::gateway;
use crate::store::sqlite::Purpose;

/// Opening a database migrates it; one that is not there is made.
pub fn run(config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    beside::block_on(async {
        gateway::store(config, Purpose::Beside).await?;
        Ok(())
    })?;
    out.answer("the database is up to date", || json!({"migrated": true}))?;
    Ok(Exit::Yes)
}
