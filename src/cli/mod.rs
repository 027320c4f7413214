//! The command line: one file for each group of commands.

pub mod args;
pub mod health;
pub mod keys;
pub mod output;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use args::{Args, Command};
use output::{Form, Output};

use crate::clock::SystemClock;
use crate::config::{Config, ConfigError};
use crate::domain::keys::KeysError;
use crate::keyring::KeyringError;

/// What a command ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0
    Yes,
    /// 1
    No,
    /// 2
    CouldNotTell,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::CouldNotTell => 2,
        })
    }
}

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is wrong.
    #[error("the configuration does not work")]
    Config(#[from] ConfigError),
    /// There are no keys.
    #[error("the keyring cannot be used")]
    Keyring(#[from] KeyringError),
    /// The answer could not be written.
    #[error("the answer could not be written")]
    Output(#[from] io::Error),
    /// Its service is not there yet.
    #[error("this command is not built yet")]
    NotBuilt,
}

impl CliError {
    fn exit(&self) -> Exit {
        match self {
            Self::Keyring(KeyringError::Refused(KeysError::Unknown { .. })) => Exit::No,
            Self::Config(_) | Self::Keyring(_) | Self::Output(_) | Self::NotBuilt => Exit::CouldNotTell,
        }
    }
}

/// Runs the line; what went wrong goes to `err` with all its causes.
pub fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let form = if args.global.json { Form::Json } else { Form::Text };
    dispatch(args, &mut Output::new(form, out)).unwrap_or_else(|error| {
        // Nobody is left to be told if even this cannot be written.
        let _ = writeln!(err, "countersign: {}", causes(&error));
        error.exit()
    })
}

fn dispatch(args: &Args, out: &mut Output<'_>) -> Result<Exit, CliError> {
    let config = || Config::load(&args.flags(), std::env::vars_os());
    match &args.command {
        Command::Keys(command) => keys::run(command, &config()?, &SystemClock, out),
        Command::Health => health::run(&config()?, out),
        Command::Serve(_)
        | Command::Demo(_)
        | Command::User(_)
        | Command::Token(_)
        | Command::Policy(_)
        | Command::Verify(_)
        | Command::Audit(_)
        | Command::Receipt(_)
        | Command::Thread(_)
        | Command::Halt(_)
        | Command::Migrate
        | Command::Guard(_) => Err(CliError::NotBuilt),
    }
}

/// An error and why, in one line.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        write!(text, ": {next}").expect("text grows");
        cause = next.source();
    }
    text
}
