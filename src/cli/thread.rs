//! `thread close|reopen`: closes and reopens threads.

use serde_json::json;

use super::args;
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

pub fn run(
    command: &args::ThreadCommand,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let by = open_service::principal();
    let (thread, status) = match command {
        args::ThreadCommand::Close(close) => {
            open_service::with_service(config, |it| async move {
                it.threads.close_thread(&by, &close.id, &close.reason).await
            })?;
            (&close.id, "closed")
        }
        args::ThreadCommand::Reopen(reopen) => {
            open_service::with_service(config, |it| async move {
                it.threads.reopen_thread(&by, &reopen.id, &reopen.reason).await
            })?;
            (&reopen.id, "open")
        }
    };
    out.answer(format!("{thread} is {status}"), || json!({"thread": thread, "status": status}))?;
    Ok(CommandExit::Yes)
}
