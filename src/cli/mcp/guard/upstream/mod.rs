//! The MCP server behind the guard: a child process, or a remote server.

pub mod child;
pub mod remote;

use std::io;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that may wait for a slow reader.
pub const QUEUED_MAX: usize = 64;

/// A running server.
pub struct Upstream {
    /// Takes messages to the server. When all senders are dropped, the server ends.
    pub to_server: mpsc::Sender<Vec<u8>>,
    /// The messages of the server, each on one line. It ends when the server ends.
    pub from_server: mpsc::Receiver<Vec<u8>>,
    /// Ends after the server.
    pub running: JoinHandle<io::Result<()>>,
}
