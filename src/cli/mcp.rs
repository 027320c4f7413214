//! `mcp`: an MCP server on standard input and output, for agents that start their tools as a program.
//!
//! The command only forwards: it posts each line from standard input to the gateway's `/mcp` and prints the response.
//! The token can stay in a file, outside of the agent's configuration. The tools are defined in one place, the gateway.

mod guard;
mod message;
mod pipe;

use std::path::Path;
use std::{env, fs, io};

use countersign_domain::primitives::secret::Secret;
use url::Url;

use super::args::{McpArgs, McpCommand};
use super::{CliError, CommandExit};
use pipe::McpPipe;

/// The limit for a token file. A token is one line.
const TOKEN_BYTES_MAX: usize = 4096;

/// Runs until standard input ends.
pub fn run(args: &McpArgs) -> Result<CommandExit, CliError> {
    if let Some(McpCommand::Guard(guarded)) = &args.command {
        return guard::run(guarded);
    }
    let address = address_of(&args.gateway.gateway, "/mcp")?;
    let token = token_of(args.gateway.token_file.as_deref())?;
    let pipe = McpPipe::new(address, &token)?;
    // The command only forwards messages, so one thread is enough.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let done = runtime.block_on(pipe.run(tokio::io::BufReader::new(tokio::io::stdin()), tokio::io::stdout()));
    // The thread that reads standard input can be blocked in a read that never ends.
    runtime.shutdown_background();
    done.map_err(CliError::Output)?;
    Ok(CommandExit::Yes)
}

fn token_of(file: Option<&Path>) -> Result<Secret<String>, CliError> {
    match file {
        Some(file) => read_token(file),
        // The token is never an argument, because process lists show arguments.
        None => env::var("COUNTERSIGN_TOKEN").map(Secret::new).map_err(|_| no_token()),
    }
}

fn no_token() -> CliError {
    CliError::Given(
        "there is no token: set COUNTERSIGN_TOKEN, or pass a file that contains it with --token-file".to_owned(),
    )
}

fn read_token(file: &Path) -> Result<Secret<String>, CliError> {
    let unread = |source: io::Error| CliError::Read { what: file.display().to_string(), source };
    let text = fs::read_to_string(file).map_err(unread)?;
    let token = text.trim();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || token.contains(char::is_whitespace) {
        return Err(CliError::Given(format!("{} must contain exactly one token", file.display())));
    }
    Ok(Secret::new(token.to_owned()))
}

/// Returns a URL of the gateway. A plain HTTP URL of a remote host is refused, because the token would be readable on
/// the network.
pub(super) fn address_of(gateway: &Url, path: &str) -> Result<Url, CliError> {
    let given = |problem: &str| Err(CliError::Given(format!("--gateway: {problem}")));
    // The token is the only credential, and process lists would show a password in the URL.
    if !matches!(gateway.scheme(), "http" | "https") || !gateway.username().is_empty() || gateway.password().is_some() {
        return given("use an https:// URL without a user name or password");
    }
    if gateway.scheme() == "http" && !pipe::is_here(gateway) {
        return given("the token would cross the network unencrypted: use https://");
    }
    let mut address = gateway.clone();
    address.set_query(None);
    address.set_fragment(None);
    address.set_path(&format!("{}{path}", gateway.path().trim_end_matches('/')));
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(gateway: &str) -> Result<String, String> {
        address_of(&Url::parse(gateway).unwrap(), "/mcp").map(Into::into).map_err(|it| it.to_string())
    }

    #[test]
    fn token_is_never_sent_unencrypted() {
        assert_eq!(address("https://gate.example").unwrap(), "https://gate.example/mcp");
        assert_eq!(address("https://gate.example/below/?a#b").unwrap(), "https://gate.example/below/mcp");
        for here in ["http://localhost:8480", "http://127.0.0.1:8480", "http://[::1]:8480"] {
            assert_eq!(address(here).unwrap(), format!("{here}/mcp"));
        }
        assert!(address("http://gate.example").unwrap_err().contains("unencrypted"));
        assert!(address("http://127.0.0.1.example").unwrap_err().contains("unencrypted"));
        for other in ["ftp://gate.example", "https://me@gate.example", "https://me:secret@gate.example"] {
            let refused = address(other).unwrap_err();
            assert!(refused.contains("https://") && !refused.contains("secret@"), "{refused}");
        }
    }

    #[test]
    fn a_token_is_read_from_a_file_of_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        for (text, is_one) in [("cs_1\n", true), ("", false), ("cs_1\ncs_2\n", false), (&"c".repeat(5000), false)] {
            fs::write(&file, text).unwrap();
            let read = read_token(&file);
            assert_eq!(read.is_ok(), is_one);
            if let Ok(token) = read {
                assert_eq!(token.expose(), "cs_1");
            }
        }
        assert!(read_token(&folder.path().join("none")).is_err());
    }
}
