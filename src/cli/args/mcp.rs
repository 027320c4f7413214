//! `mcp …`: an MCP server of the gateway, and a guard for other MCP servers.

use std::path::PathBuf;

use clap::Subcommand;
use url::Url;

/// `mcp …`
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
    #[command(flatten)]
    pub gateway: McpGateway,
}

/// `mcp guard …`
#[derive(Subcommand, Debug)]
pub enum McpCommand {
    /// Require approval for the tool calls of another MCP server.
    ///
    /// The command starts the server, or connects to it, and forwards messages between it and the client on standard input and output. Each tool call needs an
    /// approval by the policy or by reviewers. All other messages pass unchanged. The token must have the role `instance`.
    Guard(McpGuardArgs),
}

/// The arguments of `mcp guard`.
#[derive(clap::Args, Debug)]
pub struct McpGuardArgs {
    #[command(flatten)]
    pub gateway: McpGateway,
    /// The name of the server. Policies then know its tools as `NAME:TOOL`.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The seconds for which a call waits for a decision. After that, the call returns a text that asks the model to call again.
    #[arg(long, value_name = "SECONDS", default_value_t = 40)]
    pub wait: u64,
    /// A folder for the descriptions of the server's tools, so that a changed description is found after a restart too.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The URL of a remote MCP server, instead of a command.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub upstream: Option<Url>,
    /// A file that contains the bearer token for the remote server.
    #[arg(long, value_name = "FILE", requires = "upstream")]
    pub upstream_token_file: Option<PathBuf>,
    /// The MCP server and its arguments.
    #[arg(last = true, required_unless_present = "upstream", value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The gateway and the token of an MCP command.
#[derive(clap::Args, Debug)]
pub struct McpGateway {
    /// The public URL of the gateway.
    #[arg(long, value_name = "URL", env = "COUNTERSIGN_URL", default_value = "http://localhost:8480")]
    pub gateway: Url,
    /// A file that contains the agent's token. Default: the variable COUNTERSIGN_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
