//! An MCP server as a child process, on its standard input and output.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use countersign_mcp_guard::sse::EVENT_BYTES_MAX;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::{QUEUED_MAX, ServerLine, Upstream};
use crate::cli::CliError;
use crate::cli::mcp::pipe::next_line;

/// The time for which a server may end by itself after its input is closed.
const END_TIME: Duration = Duration::from_secs(5);

/// Starts the server. Its standard error is that of the guard. Its environment has no token of the gateway. A server of
/// the same user can still read the guard's memory and files, so run a server that you do not trust as another user.
pub fn start(command: &[String]) -> Result<Upstream, CliError> {
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
    let (to_server, lines) = mpsc::channel(QUEUED_MAX);
    let (told, from_server) = mpsc::channel(QUEUED_MAX);
    let reading = tokio::spawn(read_lines(BufReader::new(output), told));
    let running = tokio::spawn(async move {
        // A server that has ended reads no more lines. That is no failure of the guard.
        let _ = write_lines(input, lines).await;
        end(process).await?;
        reading.await.map_err(io::Error::other)?
    });
    Ok(Upstream { to_server, from_server, running })
}

async fn read_lines(mut from: impl AsyncBufRead + Unpin, told: mpsc::Sender<ServerLine>) -> io::Result<()> {
    while let Some(line) = next_line(&mut from, EVENT_BYTES_MAX).await? {
        // A part of a message would be another message. Without it the client would wait forever.
        if line.len() > EVENT_BYTES_MAX {
            return Err(io::Error::other("the server sent a message of more than 64 MiB"));
        }
        if told.send(ServerLine::Message(line)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes lines until their senders are dropped.
pub async fn write_lines(mut to: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        to.write_all(&line).await?;
        // The reader waits for each line, so none may stay in a buffer.
        to.flush().await?;
    }
    Ok(())
}

/// Waits until the server ends, and ends it if it does not.
async fn end(mut process: Child) -> io::Result<()> {
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
