//! Errors of commands, and the exit codes that they cause.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use countersign_adapters::keyring::KeyringError;
use countersign_domain::keys::KeysError;
use countersign_service::error::{Error, ErrorKind};
use countersign_service::log::clock_check::ClockBehind;

use super::CommandExit;
use crate::config::ConfigError;
use crate::wiring::GatewayError;

/// The reason that a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is invalid.
    #[error("the configuration is invalid")]
    Config(#[from] ConfigError),
    #[error("{}", match .0 {
        KeyringError::Refused(_) => "the keyring was not changed",
        _ => "the keyring cannot be used",
    })]
    Keyring(#[from] KeyringError),
    /// The gateway's data cannot be opened.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The gateway refused the request, or could not answer it.
    #[error(transparent)]
    Service(#[from] Error),
    /// The database does not exist.
    #[error("there is no database at {}: change to the folder in which you ran `countersign init` or `serve`, or pass the data directory with --data DIR. \
             To set up a new gateway here, run `countersign init`", std::path::absolute(path).as_ref().unwrap_or(path).display())]
    NoDatabase { path: PathBuf },
    /// Another program listens on the address.
    #[error("{address} is already in use: stop the other program, or use another address with --listen {address_free}")]
    Taken { address: SocketAddr, address_free: SocketAddr },
    #[error("{0}: set the clock. If it was ahead before and is correct now, start once with --clock-was-ahead")]
    Clock(ClockBehind),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// A file or standard input cannot be read.
    #[error("cannot read {what}")]
    Read { what: String, source: io::Error },
    /// A file or folder cannot be written.
    #[error("cannot write {what}")]
    Write { what: String, source: io::Error },
    /// An argument or a file is invalid.
    #[error("{0}")]
    Given(String),
    /// The demo cannot continue.
    #[error("the demo cannot continue: {0}")]
    Demo(String),
    /// A file of the database was removed or replaced while the gateway ran.
    #[error(
        "{0} while the gateway ran, so the gateway has stopped. Stop every other process that has the database open. Put all of \
         its files back, from a backup if they are lost. Run `countersign audit` before you start the gateway again"
    )]
    Replaced(String),
    /// The runtime or the server failed.
    #[error("the runtime or the HTTP server failed")]
    Runtime(#[source] io::Error),
    /// Standard output cannot be written.
    #[error("the output could not be written")]
    Output(#[from] io::Error),
}

impl CliError {
    /// Returns 1 if the gateway refused the request, and 2 if there was no decision.
    pub fn exit(&self) -> CommandExit {
        match self {
            // The keyring could be read, so an unknown key is an answer and not a failure.
            Self::Keyring(KeyringError::Refused(KeysError::Unknown { .. })) => CommandExit::No,
            Self::Service(error) => exit_of(error),
            Self::Config(_)
            | Self::Keyring(_)
            | Self::Gateway(_)
            | Self::NoDatabase { .. }
            | Self::Taken { .. }
            | Self::Clock(_)
            | Self::Listen { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Given(_)
            | Self::Demo(_)
            | Self::Replaced(_)
            | Self::Runtime(_)
            | Self::Output(_) => CommandExit::CouldNotTell,
        }
    }
}

const fn exit_of(error: &Error) -> CommandExit {
    match error.kind() {
        ErrorKind::Refused => CommandExit::No,
        // These errors do not say whether the request would be allowed.
        ErrorKind::Unavailable | ErrorKind::Failed => CommandExit::CouldNotTell,
    }
}
