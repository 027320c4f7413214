//! The command-line interface, with a file for each group of commands.

pub mod archive;
pub mod args;
pub mod audit;
pub mod demo;
mod doctor;
pub mod envelope;
pub mod episode;
pub mod error;
mod findings;
pub mod guard;
pub mod halt;
pub mod health;
mod hidden_input;
pub mod hooks;
mod init;
pub mod keys;
pub mod logging;
pub mod mcp;
pub mod migrate;
mod open_service;
pub mod output;
pub mod policy;
pub mod receipt;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod thread;
pub mod token;
pub mod user;
pub mod verify;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use countersign_adapters::clock::SystemClock;
use countersign_domain::primitives::sanitize;

use crate::config::Config;
use args::{Args, Command};
pub use error::CliError;
use init::{AnswerInput, AnswerSource};
use output::{CommandOutput, OutputFormat};

/// The exit code of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandExit {
    /// 0
    Yes,
    /// 1
    No,
    /// 2
    CouldNotTell,
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(match exit {
            CommandExit::Yes => 0,
            CommandExit::No => 1,
            CommandExit::CouldNotTell => 2,
        })
    }
}

/// Runs the command. Errors go to `err` with all their causes.
pub fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> CommandExit {
    let form = if args.global.json { OutputFormat::Json } else { OutputFormat::Text };
    let mut output = CommandOutput::new(form, out);
    let done = dispatch(args, &mut output);
    let mut said = output.warnings().to_vec();
    let exit = done.unwrap_or_else(|error| {
        said.push(causes(&error));
        error.exit()
    });
    for text in said {
        // The error is ignored: standard error is the last output that is left.
        let _ = writeln!(err, "countersign: {}", sanitize::printed(&text));
    }
    exit
}

fn dispatch(args: &Args, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    // The configuration is loaded on demand, because offline commands must work without a valid one.
    let config = || Config::load(&args.flags(), std::env::vars_os());
    match &args.command {
        Command::Serve(args) => serve::run(&config()?, args.clock_back(), out),
        Command::Keys(command) => keys::run(command, &config()?, &SystemClock, out),
        Command::Init(args) => {
            let mut from = AnswerSource { lines: &mut io::stdin().lock(), typed: AnswerInput::of_stdin() };
            init::run(args, &config()?, &mut from, out)
        }
        Command::Doctor => doctor::run(&config()?, out),
        Command::Health => health::run(&config()?, out),
        Command::User(command) => user::run(command, &config()?, &mut io::stdin().lock(), out),
        Command::Token(command) => token::run(command, &config()?, out),
        Command::Policy(command) => policy::run(command, config, out),
        Command::Receipt(args::ReceiptCommand::Revoke(revoke)) => receipt::revoke(revoke, &config()?, out),
        Command::Thread(command) => thread::run(command, &config()?, out),
        Command::Halt(command) => halt::run(command, &config()?, out),
        Command::Migrate => migrate::run(&config()?, out),
        Command::Verify(verify) => verify::run(verify, &SystemClock, &mut io::stdin().lock(), out),
        Command::Audit(args) => audit::run(args, config, &SystemClock, out),
        Command::Archive(command) => archive::run(command, config, out),
        Command::Demo(args) => demo::run(&config()?, args, out),
        Command::Guard(command) => guard::run(command, out),
        Command::Envelope(command) => envelope::run(command, &SystemClock, out),
        Command::Episode(command) => episode::run(command, config, out),
        Command::Mcp(args) => mcp::run(args),
        Command::Hooks(command) => hooks::run(command, out),
    }
}

/// Returns an error and its causes as one line.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        // Some errors already contain the text of their cause.
        let next_text = next.to_string();
        if !text.ends_with(&next_text) {
            write!(text, ": {next_text}").expect("text grows");
        }
        cause = next.source();
    }
    text
}
