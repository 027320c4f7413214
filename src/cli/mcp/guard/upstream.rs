//! The real MCP server, as a child process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::cli::CliError;

/// The time for which a server may end by itself after its input is closed.
const END_TIME: Duration = Duration::from_secs(5);

pub struct Upstream {
    pub process: Child,
    pub input: ChildStdin,
    pub output: ChildStdout,
}

impl Upstream {
    /// Starts the server. Its standard error is that of the guard. It gets no token of the gateway.
    pub fn start(command: &[String]) -> Result<Self, CliError> {
        let (program, arguments) = command.split_first().ok_or_else(no_command)?;
        let mut process = Command::new(program)
            .args(arguments)
            .env_remove("COUNTERSIGN_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| CliError::Given(format!("the MCP server `{program}` cannot be started: {error}")))?;
        let broken = || CliError::Runtime(io::Error::other("the server has no standard input or output"));
        let (input, output) = (process.stdin.take().ok_or_else(broken)?, process.stdout.take().ok_or_else(broken)?);
        Ok(Self { process, input, output })
    }
}

/// Waits until the server ends, and ends it if it does not.
pub async fn end(mut process: Child) -> io::Result<()> {
    if tokio::time::timeout(END_TIME, process.wait()).await.is_err() {
        process.kill().await?;
    }
    Ok(())
}

fn no_command() -> CliError {
    CliError::Given(
        "name the MCP server after `--`, such as `-- npx @modelcontextprotocol/server-filesystem .`".to_owned(),
    )
}
