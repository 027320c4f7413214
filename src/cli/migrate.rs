//! `migrate`: brings the database's tables up to date, as every start does.

use serde_json::json;

use super::output::Output;
use super::{CliError, Exit, open_service};
use crate::config::Config;
use crate::store::sqlite::Purpose;
use crate::wiring;

/// Opening a database migrates it; one that is not there is made.
pub fn run(config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    open_service::block_on(async {
        wiring::store(config, Purpose::Beside).await?;
        Ok(())
    })?;
    out.answer("the database is up to date", || json!({"migrated": true}))?;
    Ok(Exit::Yes)
}
