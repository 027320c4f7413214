//! Arguments of `init`.

use std::path::PathBuf;

use countersign_domain::primitives::id::{FlowId, GroupName};

use super::values::label;

/// `init …`
#[derive(clap::Args, Debug)]
pub struct InitArgs {
    /// The name of the flow.
    pub flow: Option<FlowId>,
    /// The name of an MCP server. Its tools are then called `NAME:TOOL`.
    #[arg(long, value_name = "NAME", conflicts_with = "keys")]
    pub server: Option<String>,
    /// The tools whose calls need approval, separated by commas. `*` means every tool.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', conflicts_with = "keys")]
    pub ask: Vec<String>,
    /// The tools that the agent may call, separated by commas. Default: every tool, of the server if one is named.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', conflicts_with = "keys")]
    pub allow: Vec<String>,
    /// The keys of a state whose changes need approval, separated by commas. For agents that change a state.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub keys: Vec<String>,
    /// The user name of the first reviewer. An account that does not exist is created.
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub approver: Option<String>,
    /// The group whose members approve.
    #[arg(long, value_name = "GROUP", default_value = "approvers")]
    pub group: GroupName,
    /// Read the password of a new account from the first line of standard input.
    #[arg(long)]
    pub password_stdin: bool,
    /// The folder for the policy and for `.env`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}
