//! `receipt revoke`: revokes a receipt, which then authorizes no write.

use countersign_service::writes::revoke_receipt::Revoker;
use serde_json::json;

use super::args::ReceiptRevoke;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

pub fn revoke(revoke: &ReceiptRevoke, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let by = Revoker::Admin(open_service::principal());
    open_service::with_service(config, |service| async move {
        service.writes.revoke_receipt(&by, &revoke.jti, &revoke.reason).await
    })?;
    out.answer(format!("revoked {}", revoke.jti), || json!({"receipt": revoke.jti, "revoked": true}))?;
    Ok(CommandExit::Yes)
}
