//! `hooks …`

use clap::Subcommand;
use url::Url;

/// `hooks …`
#[derive(Subcommand, Debug)]
pub enum HooksCommand {
    /// Print the settings with which Claude Code requires approval for its tool calls.
    ///
    /// Paste them into a settings file of Claude Code, and set the variable to the token of an instance. Claude Code 2.1.295 or later is
    /// required. Earlier versions run a call if the gateway cannot be reached.
    ClaudeCode(ClaudeCodeHooks),
}

/// The arguments of `hooks claude-code`.
#[derive(clap::Args, Debug)]
pub struct ClaudeCodeHooks {
    /// The public URL of the gateway.
    #[arg(long, value_name = "URL", env = "COUNTERSIGN_URL", default_value = "http://localhost:8480")]
    pub gateway: Url,
    /// The seconds for which a call waits for a decision. The gateway's `limits.wait_secs` is the maximum.
    #[arg(long, value_name = "SECONDS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub wait: u64,
    /// The environment variable with the token of the instance. Claude Code reads it at each call.
    #[arg(long, value_name = "NAME", default_value = "COUNTERSIGN_TOKEN", value_parser = variable)]
    pub token_variable: String,
}

/// Reads the name of an environment variable, as Claude Code reads it in a header.
fn variable(text: &str) -> Result<String, String> {
    let is_name = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    let fits = !text.is_empty() && text.bytes().all(is_name) && !text.starts_with(|it: char| it.is_ascii_digit());
    if fits { Ok(text.to_owned()) } else { Err("use A-Z, 0-9 and _, such as COUNTERSIGN_TOKEN".to_owned()) }
}
