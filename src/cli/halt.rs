//! `halt set|lift`: halts and resumes proposals or writes, for one flow or for all flows.

use countersign_domain::operations::halt::Halt;
use countersign_service::operations::halt;
use serde_json::json;

use super::args::{self, HaltAspectArg, HaltScopeArg};
use super::output::CommandOutput;
use super::{CliError, CommandExit, open_service};
use crate::config::Config;

pub fn run(command: &args::HaltCommand, config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    open_service::need_database(config)?;
    let (scope, halt) = match command {
        args::HaltCommand::Set(set) => {
            let (proposing, verifying) = match set.only {
                None => (true, true),
                Some(HaltAspectArg::Proposing) => (true, false),
                Some(HaltAspectArg::Verifying) => (false, true),
            };
            (&set.scope, Halt { proposing, verifying, reason: set.reason.clone() })
        }
        args::HaltCommand::Lift(lift) => {
            (&lift.scope, Halt { proposing: false, verifying: false, reason: lift.reason.clone() })
        }
    };
    let (name, scope) = match scope {
        HaltScopeArg::All => ("all".to_owned(), halt::HaltScope::All),
        HaltScopeArg::Flow(flow) => (flow.to_string(), halt::HaltScope::Flow(flow.clone())),
    };
    let (by, stated) = (open_service::principal(), halt.clone());
    open_service::with_service(config, |service| async move { service.operations.set_halt(&by, &scope, &halt).await })?;
    let word = |stopped: bool| if stopped { "halted" } else { "goes on" };
    let text = format!("{name}: proposing {}, verifying {}", word(stated.proposing), word(stated.verifying));
    out.answer(text, || json!({"scope": name, "proposing": stated.proposing, "verifying": stated.verifying}))?;
    Ok(CommandExit::Yes)
}
