//! `halt set|lift`: stops proposing or verifying, for a flow or for all.

use serde_json::json;

use super::args::{self, Halted, Scope};
use super::output::Output;
use super::{CliError, Exit, open_service};
use crate::config::Config;
use crate::domain::operations::halt::Halt;
use crate::service::operations::halt;

/// Runs one of them.
pub fn run(command: &args::Halt, config: &Config, out: &mut Output<'_>) -> Result<Exit, CliError> {
    open_service::need_database(config)?;
    let (scope, halt) = match command {
        args::Halt::Set(set) => {
            let (proposing, verifying) = match set.only {
                None => (true, true),
                Some(Halted::Proposing) => (true, false),
                Some(Halted::Verifying) => (false, true),
            };
            (&set.scope, Halt { proposing, verifying, reason: set.reason.clone() })
        }
        args::Halt::Lift(lift) => {
            (&lift.scope, Halt { proposing: false, verifying: false, reason: lift.reason.clone() })
        }
    };
    let (name, scope) = match scope {
        Scope::All => ("all".to_owned(), halt::Scope::All),
        Scope::Flow(flow) => (flow.to_string(), halt::Scope::Flow(flow.clone())),
    };
    let (by, stated) = (open_service::principal(), halt.clone());
    open_service::with_service(config, |service| async move { service.set_halt(&by, &scope, &halt).await })?;
    let word = |stopped: bool| if stopped { "halted" } else { "goes on" };
    let text = format!("{name}: proposing {}, verifying {}", word(stated.proposing), word(stated.verifying));
    out.answer(text, || json!({"scope": name, "proposing": stated.proposing, "verifying": stated.verifying}))?;
    Ok(Exit::Yes)
}
