//! `mcp`: a gateway's tools for an agent that speaks the Model Context Protocol with a program it starts.
//!
//! A pipe, and nothing else: each line from standard input is posted to the gateway's `/mcp` as it came, and what the
//! gateway answers goes to standard output. So the token stays out of the agent's own configuration of servers if it is
//! kept in a file, and what may be done is said in one place, the gateway.

mod message;
mod pipe;

use std::path::Path;
use std::{env, fs, io};

use url::Url;

use super::args::McpArgs;
use super::{CliError, CommandExit};
use crate::domain::primitives::secret::Secret;
use pipe::McpPipe;

/// A token is a line; what is longer is another file.
const TOKEN_BYTES_MAX: usize = 4096;

/// Runs until standard input ends.
pub fn run(args: &McpArgs) -> Result<CommandExit, CliError> {
    let address = address_of(&args.gateway)?;
    let token = match &args.token_file {
        Some(file) => read_token(file)?,
        None => env::var("COUNTERSIGN_TOKEN").map(Secret::new).map_err(|_| no_token())?,
    };
    let pipe = McpPipe::new(address, &token)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let done = runtime.block_on(pipe.run(tokio::io::BufReader::new(tokio::io::stdin()), tokio::io::stdout()));
    // The thread that reads standard input may still wait for a line that nobody will send.
    runtime.shutdown_background();
    done.map_err(CliError::Output)?;
    Ok(CommandExit::Yes)
}

fn no_token() -> CliError {
    CliError::Given(
        "there is no token: set COUNTERSIGN_TOKEN, or name a file that holds it with --token-file".to_owned(),
    )
}

fn read_token(file: &Path) -> Result<Secret<String>, CliError> {
    let unread = |source: io::Error| CliError::Read { what: file.display().to_string(), source };
    let text = fs::read_to_string(file).map_err(unread)?;
    let token = text.trim();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || token.contains(char::is_whitespace) {
        return Err(CliError::Given(format!("{} does not hold one token", file.display())));
    }
    Ok(Secret::new(token.to_owned()))
}

/// Where the gateway takes messages. A token never crosses a network in the clear.
fn address_of(gateway: &Url) -> Result<Url, CliError> {
    let given = |problem: &str| Err(CliError::Given(format!("--gateway: {problem}")));
    if !matches!(gateway.scheme(), "http" | "https") || !gateway.username().is_empty() || gateway.password().is_some() {
        return given("say https://, a host, and nothing secret");
    }
    if gateway.scheme() == "http" && !pipe::is_here(gateway) {
        return given("the token would cross a network in the clear; say https://");
    }
    let mut address = gateway.clone();
    address.set_query(None);
    address.set_fragment(None);
    address.set_path(&format!("{}/mcp", gateway.path().trim_end_matches('/')));
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(gateway: &str) -> Result<String, String> {
        address_of(&Url::parse(gateway).unwrap()).map(Into::into).map_err(|it| it.to_string())
    }

    #[test]
    fn a_token_goes_to_a_gateway_and_never_in_the_clear() {
        assert_eq!(address("https://gate.example").unwrap(), "https://gate.example/mcp");
        assert_eq!(address("https://gate.example/below/?a#b").unwrap(), "https://gate.example/below/mcp");
        for here in ["http://localhost:8480", "http://127.0.0.1:8480", "http://[::1]:8480"] {
            assert_eq!(address(here).unwrap(), format!("{here}/mcp"));
        }
        assert!(address("http://gate.example").unwrap_err().contains("in the clear"));
        assert!(address("http://127.0.0.1.example").unwrap_err().contains("in the clear"));
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
