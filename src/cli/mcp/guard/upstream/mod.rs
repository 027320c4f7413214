//! The MCP server behind the guard: a child process, or a remote server.

pub mod child;
pub mod remote;

use std::io;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that may wait for a slow reader.
pub const QUEUED_MAX: usize = 64;

/// A message of a server, or the loss of one.
pub enum ServerLine {
    /// A message, on one line.
    Message(Vec<u8>),
    /// The response to the request with this id is lost. A call may have run.
    Lost { id: Value, why: String },
}

/// A running server.
pub struct Upstream {
    /// Takes messages to the server. When all senders are dropped, the server ends.
    pub to_server: mpsc::Sender<Vec<u8>>,
    /// The lines of the server. It ends when the server ends.
    pub from_server: mpsc::Receiver<ServerLine>,
    /// Ends after the server.
    pub running: JoinHandle<io::Result<()>>,
}
